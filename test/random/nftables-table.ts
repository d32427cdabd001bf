/** kube-proxy's nftables table for a sketched cluster. */
import { selectSlices } from '#compile/endpointslices/select-slices'
import type { Layout } from '#compile/nftables/layout'
import { renderNftables } from '#compile/nftables/render-nftables'
import type { Table } from '#compile/nftables/ruleset'
import { planServices, proxyNodeOf } from '#compile/services/plan-services'
import { clusterOfSketch } from './cluster-objects'
import { nodeName } from './node-layout'
import type { ClusterSketch } from './random-cluster'

const serviceCidrs = ['10.96.0.0/16', '10.97.0.0/16', 'fd00:10:96::/112']

export function tableOfSketch(sketch: ClusterSketch, layout: Layout): Table {
  const cluster = clusterOfSketch(sketch)
  const plan = planServices(cluster, selectSlices(cluster, 'computed').value, {
    family: sketch.family,
    node: proxyNodeOf(cluster, nodeName),
    settings: sketch.settings,
  })
  return renderNftables(plan.value, { layout, serviceCidrs }).value
}
