/** The IPv6 scenario: a Service with affinity and node ports on every address, one without endpoints. */
import type { Layout } from '#compile/nftables/layout'
import { renderNftables } from '#compile/nftables/render-nftables'
import type { Table } from '#compile/nftables/ruleset'
import { planServices } from '#compile/services/plan-services'
import { clusterOf, endpointOf, portOf, serviceOf, sliceOf, slicePortOf } from './objects'

const services = [
  serviceOf('shop/web', {
    type: 'NodePort',
    clusterIPs: ['fd00:10:96::a01'],
    affinitySeconds: 10800,
    ports: [portOf(80, { targetPort: 8080, nodePort: 31081 })],
  }),
  serviceOf('shop/void', { clusterIPs: ['fd00:10:96::a03'], ports: [portOf(80)] }),
]

const slice = sliceOf('shop/web-1', 'web', {
  addressType: 'IPv6',
  ports: [slicePortOf(8080)],
  endpoints: [
    endpointOf('fd00:10:244:1::9', { nodeName: 'node-a' }),
    endpointOf('fd00:10:244:2::3', { nodeName: 'node-b' }),
  ],
})

export function ipv6Table(layout: Layout): Table {
  const plan = planServices(clusterOf({ services }), [slice], {
    family: 'ipv6',
    node: { name: 'node-a', ips: ['fd00:192:168:50::11'], labels: {}, podCIDRs: [] },
    settings: { detectLocal: { kind: 'ClusterCIDR', cidrs: ['fd00:10:244::/56'] }, nodePortAddresses: ['::/0'] },
  })
  return renderNftables(plan.value, { layout, serviceCidrs: ['fd00:10:96::/112'] }).value
}
