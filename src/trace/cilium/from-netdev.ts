/** A packet comes in, from the wire or out of the tunnel. Mirrors cil_from_netdev of bpf/bpf_host.c, cil_xdp_entry of bpf/bpf_xdp.c and cil_from_overlay of bpf/bpf_overlay.c, Cilium 1.16 to 1.19. */
import { printEndpoint, printIp } from '#base/ip'
import { identityNumbers } from '#compile/identities/numbers'
import type { WalkPlace } from '#model/walk'
import { isForGateway } from './egress-gateway'
import { decrypt } from './encrypt'
import { isRemoteNode } from './find-service'
import { destinationText, isIcmp } from './flow-packet'
import { end, type Next } from './next'
import { type NodeTables, worldOf } from './node-tables'
import { balanceAtNic, recordDirect, reverseSource } from './nodeport'
import { isOwnRange } from './routes'
import { type Draft, drop, endpointName, onDevice, tell, unknown } from './walk-draft'

export function fromNetdev(draft: Draft, node: NodeTables): Next {
  if (decrypt(draft, node)) return fromNetdev(draft, node)
  const at = onDevice(node.name, 'NIC', 'tc ingress', 'cil_from_netdev')
  const outer = draft.packet.wrappings.at(-1)
  if (outer?.kind === 'VXLAN' || outer?.kind === 'Geneve') {
    const port = printEndpoint(printIp(outer.destination), outer.port ?? 0)
    const why = `UDP to ${port} is no Service’s and below 32768, so that no translation is looked for: the stack gives it to the tunnel`
    tell(draft, at, ['handed it to the tunnel', why])
    return { kind: 'from-overlay', node }
  }
  if (draft.packet.dsr?.carrier === 'ipip') {
    return end(unknown(draft, at, 'cilium.ipip', 'what takes the packet out of IPIP at the backend stands in no map'))
  }
  const first = firstPlace(draft, node, at)
  // The driver's program runs before the packet has an identity.
  const early = first === at ? identityFromWire(draft, node, at) : undefined
  const service = balanceFirst(draft, node, first)
  if (service.next !== undefined) return service.next
  if (!service.isService && !recordDirect(draft, node, first)) {
    const isAsked = node.maps.settings.replacesKubeProxy || draft.net.path.isBpfMasquerade
    const reversed = isAsked ? reverseSource(draft, node, first) : undefined
    if (reversed !== undefined) return reversed
  }
  const identity = early ?? identityFromWire(draft, node, at)
  return goOn(draft, node, { at, identity, isFromTunnel: false })
}

/** What claims to be this host and comes from outside is not believed. */
function identityFromWire(draft: Draft, node: NodeTables, at: WalkPlace): number {
  const { source } = draft.packet
  const world = worldOf(node, source)
  const { row, lookup } = node.ipcache(source)
  const found = row?.identity ?? world
  const identity = found === identityNumbers.host ? world : found
  const why = `identity ${identity} (${draft.net.identityName(identity)}), by the source’s address (from-network)`
  tell(draft, at, ['took the packet', why], { lookups: [lookup] })
  return identity
}

type Place = { readonly at: WalkPlace; readonly identity: number }

/** Where Cilium is not in kube-proxy's place it answers for no Service here. */
function balanceFirst(
  draft: Draft,
  node: NodeTables,
  at: WalkPlace,
): { readonly next?: Next; readonly isService: boolean } {
  if (!node.maps.settings.replacesKubeProxy) return { isService: false }
  const found = balanceAtNic(draft, node, at)
  if (found === undefined) return { isService: false }
  return found.kind === 'next' ? { next: found.next, isService: true } : { isService: true }
}

/** With acceleration the driver's program comes first. What comes out of the tunnel has passed the driver before. */
function firstPlace({ net }: Draft, node: NodeTables, at: WalkPlace): WalkPlace {
  const isFirst = net.path.isXdp && net.settings.replacesKubeProxy && at.device === 'NIC'
  return isFirst ? onDevice(node.name, 'NIC', 'xdp', 'cil_xdp_entry') : at
}

type Incoming = Place & { readonly isFromTunnel: boolean }

/** To an endpoint, to the node itself, or to the stack's routes. */
function goOn(draft: Draft, node: NodeTables, { at, identity, isFromTunnel }: Incoming): Next {
  const { destination } = draft.packet
  const { row, lookup } = node.lxc(destination)
  if (row !== undefined && (row.flags & 3) !== 0) {
    tell(draft, at, ['handed it to the host', 'the address is one of the node itself'], { lookups: [lookup] })
    return { kind: 'to-host', node, identity }
  }
  const endpoint = row === undefined ? undefined : node.maps.world.endpoints.find(({ id }) => id === row.endpointId)
  if (endpoint !== undefined) {
    const way = draft.net.path.isLegacyRouting ? ', by way of the host’s stack' : ''
    tell(draft, at, ['delivers on this node', `the address is that of ${endpointName(endpoint)}${way}`], {
      lookups: [lookup],
    })
    return { kind: 'deliver', node, endpoint, identity, isFromTunnel }
  }
  if (draft.net.nodeOfAddress(destination) === node.name) {
    tell(draft, at, ['handed it to the host', 'the address is one of the node’s devices'], { lookups: [lookup] })
    return { kind: 'to-host', node, identity }
  }
  if (isOwnRange(node, destination)) {
    tell(draft, at, ['handed it to the host', 'no endpoint has the address; its route leads to cilium_host'], {
      lookups: [lookup],
    })
    return { kind: 'from-host', node, identity }
  }
  const sentence = `${destinationText(draft.packet)} is no address of ${node.name}: its routes decide, and no object tells them`
  return end(unknown(draft, at, 'cilium.routes', sentence))
}

export function fromOverlay(draft: Draft, node: NodeTables): Next {
  const { wrappings } = draft.packet
  const outer = wrappings.at(-1)
  const isGeneve = outer?.kind === 'Geneve'
  const at = onDevice(node.name, isGeneve ? 'cilium_geneve' : 'cilium_vxlan', 'tc ingress', 'cil_from_overlay')
  draft.packet = { ...draft.packet, wrappings: wrappings.slice(0, -1) }
  const carried = outer?.identity
  if (carried === undefined) return end(drop(draft, at, 147, { sentence: 'the tunnel’s header carries no identity' }))
  if (carried === identityNumbers.host) {
    const sentence = 'identity 1 (host) never travels in a tunnel: what claims it is not believed'
    return end(drop(draft, at, 171, { sentence }))
  }
  const identity = believed(draft, node, at, carried)
  decrypt(draft, node)
  const isNodePort = node.maps.settings.replacesKubeProxy
  const service = isNodePort && isOwnFrontend(draft, node) ? balanceFirst(draft, node, at) : { isService: false }
  if (service.next !== undefined) return service.next
  const mayAnswer = isIcmp(draft.packet.protocol) || draft.packet.port >= 32768
  if (!service.isService && !recordDirect(draft, node, at) && isNodePort && mayAnswer) {
    const reversed = reverseSource(draft, node, at)
    if (reversed !== undefined) return reversed
  }
  if (isForGateway(draft, node)) {
    draft.packet = { ...draft.packet, mark: 0x500 }
    const why =
      'the destination is outside and the policy makes this node the gateway: fib lookup from the address it lends'
    tell(draft, at, ['sends it out as the gateway', why], {
      lookups: [node.egress(draft.packet.source, draft.packet.destination).lookup],
    })
    return { kind: 'leave', node, identity, why: 'as the egress gateway' }
  }
  return goOn(draft, node, { at, identity, isFromTunnel: true })
}

/** A node that sends for its pods is told apart by the inner source, where that is known. */
function believed(draft: Draft, node: NodeTables, at: WalkPlace, carried: number): number {
  const { row, lookup } = node.ipcache(draft.packet.source)
  const isReplaced = isRemoteNode(carried) && row !== undefined && row.identity !== identityNumbers.host
  const identity = isReplaced ? row.identity : carried
  const name = draft.net.identityName(identity)
  const why =
    isReplaced && identity !== carried
      ? `the header carries ${carried}, and the source’s row says ${identity} (${name})`
      : `the header carries identity ${identity} (${name})`
  tell(draft, at, ['took it out of the tunnel', `${why} (from-overlay)`], isReplaced ? { lookups: [lookup] } : {})
  return identity
}

function isOwnFrontend(draft: Draft, node: NodeTables): boolean {
  return draft.net.nodeOfAddress(draft.packet.destination) === node.name && draft.packet.port < 32768
}
