/** kube-proxy's nftables table of node-a in scenario G1. */
import { selectSlices } from '#compile/endpointslices/select-slices'
import type { Layout } from '#compile/nftables/layout'
import { renderNftables } from '#compile/nftables/render-nftables'
import type { Table } from '#compile/nftables/ruleset'
import { planServices, proxyNodeOf } from '#compile/services/plan-services'
import type { ServicePlan } from '#compile/services/service-plan'
import { g1, g1ClusterCidr, g1NodeName } from './g1'

export const g1ServiceCidrs = ['10.96.0.0/12']

export function g1NftablesPlan(): ServicePlan {
  return planServices(g1, selectSlices(g1, 'computed').value, {
    family: 'ipv4',
    node: proxyNodeOf(g1, g1NodeName),
    settings: { detectLocal: { kind: 'ClusterCIDR', cidrs: [g1ClusterCidr] } },
  }).value
}

export function g1Table(layout: Layout): Table {
  return renderNftables(g1NftablesPlan(), { layout, serviceCidrs: g1ServiceCidrs }).value
}
