/** Which packets leave through a gateway, and what comes back there. Mirrors bpf/lib/egress_gateway.h, Cilium 1.16 to 1.19. */
import { type Ip, isSameIp, printIp } from '#base/ip'
import { listOf } from '#base/text'
import { excludedRange, gatewayNotFound } from '#compile/cilium/render-egress'
import { identityNumbers, isInCluster } from '#compile/identities/numbers'
import { isAtLeast } from '#model/cilium-version'
import type { WalkPlace } from '#model/walk'
import { end, type Next } from './next'
import { type NodeTables, worldOf } from './node-tables'
import { tunnelTo } from './routes'
import { type Draft, drop, tell, unknown } from './walk-draft'

/** `identity` of the destination, `own` of the sender. */
export type GatewayQuestion = { readonly identity: number; readonly own: number }

/** Undefined where the packet goes on by itself; to a gateway the tunnel is taken, with native routing as well. */
export function requestGateway(
  draft: Draft,
  node: NodeTables,
  at: WalkPlace,
  { identity, own }: GatewayQuestion,
): Next | undefined {
  const { packet, net } = draft
  if (!hasGateways(draft, packet.source) || own === identityNumbers.host) return undefined
  if (isInCluster(identity)) {
    if (node.egress(packet.source, packet.destination).row !== undefined) {
      tell(draft, at, ['passed the egress gateway over', 'the destination is inside the cluster'])
    }
    return undefined
  }
  const { row, lookup } = node.egress(packet.source, packet.destination)
  if (row === undefined) return undefined
  const lookups = [lookup]
  if (isSameIp(row.gatewayIp, excludedRange)) {
    tell(draft, at, ['passed the egress gateway over', 'the policy excludes the range: it leaves as without it'], {
      lookups,
    })
    return undefined
  }
  if (isSameIp(row.gatewayIp, gatewayNotFound)) {
    const { object, origin } = row.source
    tell(draft, at, ['asked for the egress gateway', 'none was found'], { lookups })
    return end(
      drop(draft, at, 194, { sentence: 'an egress policy selects the pod and no node as its gateway', object, origin }),
    )
  }
  if (row.otherGateways.length > 0) {
    const all = [row.gatewayIp, ...row.otherGateways].map(printIp)
    const named = [...new Set(all)]
    const which =
      named.length === 1 ? `the policy’s ${all.length} entries for ${named[0]}` : `the gateways ${listOf(named)}`
    const sentence = `which of ${which} is the pod’s comes of a hash of its CiliumEndpoint’s uid; the first is followed`
    draft.doubts.push({ code: 'cilium.several-gateways', sentence })
  }
  if (net.nodeOfAddress(row.gatewayIp) === node.name) {
    tell(draft, at, ['asked for the egress gateway', 'this node is the gateway: it leaves here'], { lookups })
    return undefined
  }
  const { device = '', hook, program = '' } = at
  const why = `the egress policy names ${printIp(row.gatewayIp)} as the gateway`
  return { kind: 'encapsulate', node, at: { device, hook, program }, to: row.gatewayIp, identity: own, why, lookups }
}

export function hasGateways({ net }: Draft, source: Ip): boolean {
  if (!net.settings.hasEgressGateway) return false
  return source.family === 'ipv4' || isAtLeast(net.settings.policy.version, '1.18')
}

/** At the gateway, out of the tunnel: the packet is not for this node, and a row lends it an address. */
export function isForGateway(draft: Draft, node: NodeTables): boolean {
  const { packet, net } = draft
  if (!hasGateways(draft, packet.source)) return false
  const { row } = node.egress(packet.source, packet.destination)
  if (row === undefined || net.nodeOfAddress(row.gatewayIp) !== node.name) return false
  const there = node.ipcache(packet.destination).row
  return there === undefined || !isInCluster(there.identity)
}

/** An answer at the gateway goes back through the tunnel to the pod's node. */
export function answerThroughGateway(draft: Draft, node: NodeTables, at: WalkPlace): Next | undefined {
  const { packet, net } = draft
  if (!hasGateways(draft, packet.destination)) return undefined
  const { row, lookup } = node.egress(packet.destination, packet.source)
  if (row === undefined || net.nodeOfAddress(row.gatewayIp) !== node.name) return undefined
  const tunnel = tunnelTo(node, packet.destination)
  if (tunnel.to === undefined) {
    if (node.lxc(packet.destination).row !== undefined) return undefined
    return end(unknown(draft, at, 'cilium.no-tunnel', `no row tells the node of ${printIp(packet.destination)}`))
  }
  const { device = '', hook, program = '' } = at
  const identity = worldOf(node, packet.source)
  const why = 'it answers a connection of the egress gateway: back to the pod’s node'
  return {
    kind: 'encapsulate',
    node,
    at: { device, hook, program },
    to: tunnel.to,
    identity,
    why,
    lookups: [lookup, ...tunnel.lookups],
  }
}
