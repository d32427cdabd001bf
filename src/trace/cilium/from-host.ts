/** A process of the host sends, and what the host or the proxy sends by way of cilium_host. Mirrors cil_from_host of bpf/bpf_host.c, Cilium 1.16 to 1.19. */
import { printIp } from '#base/ip'
import { identityNumbers } from '#compile/identities/numbers'
import type { WalkPlace } from '#model/walk'
import { isLoopbackOrUnspecified } from '../own-address'
import { whoTakes } from './deliver'
import { destinationText, sourceText } from './flow-packet'
import { end, type Next } from './next'
import type { NodeTables } from './node-tables'
import { isOwnRange, tunnelTo } from './routes'
import { atSocket } from './socket-lb'
import { lookUpCt } from './state-tables'
import { arrive, type Draft, drop, endpointName, onDevice, stateOf, tell } from './walk-draft'

type FromProcess = Extract<Next, { readonly kind: 'from-process' }>

/** The route of the pods’ ranges names the router’s address as the source. */
export function fromProcess(draft: Draft, { node, isAnswer = false }: FromProcess): Next {
  const { net, question } = draft
  const at: WalkPlace = { node: node.name, hook: 'routing', program: 'host stack' }
  const refused = isAnswer ? undefined : atSocket(draft, node, { title: node.name, isHost: true })
  if (refused !== undefined) return end(refused)
  const { destination } = draft.packet
  if (isLoopbackOrUnspecified(destination)) return keptByNode(draft, node)
  const own = node.lxc(destination)
  if (own.row !== undefined && (own.row.flags & 3) !== 0) {
    tell(draft, at, ['stays on the node', 'the destination is one of its own addresses'], { lookups: [own.lookup] })
    return { kind: 'to-host', node, identity: identityNumbers.host }
  }
  const router = net.router(node.name, destination.family)
  const isPods = isOwnRange(node, destination)
  if (isPods && router !== undefined && question.source.isByName === true && !isAnswer) {
    draft.packet = { ...draft.packet, source: router }
    const assumed = net.isAssumed(router) ? ' (the range’s first free one: no CiliumNode tells the router’s)' : ''
    const why = `the route to ${printIp(destination)} leads to cilium_host and names ${printIp(router)} as the source${assumed}`
    tell(draft, at, ['chose the source', why])
  }
  if (isPods) {
    draft.packet = { ...draft.packet, mark: 0xc00 }
    return { kind: 'from-host', node, identity: identityNumbers.host }
  }
  return { kind: 'leave', node, identity: identityNumbers.host, why: `routed from ${sourceText(draft.packet)}` }
}

/** Over its loopback interface, which no program watches. */
function keptByNode(draft: Draft, { name }: NodeTables): Next {
  const { packet } = draft
  const why = `${printIp(packet.destination)} is the node’s own: its kernel keeps the packet`
  tell(draft, { node: name, device: 'lo', hook: 'loopback' }, ['stayed on the node', why])
  if (draft.targets.length === 0) draft.targets.push({ address: destinationText(packet), share: 1 })
  const sentence = `it reaches the node ${name} itself as ${destinationText(packet)}${whoTakes(packet)}`
  return end(arrive(draft, 'cilium.to-host', sentence, { kind: 'host', node: name }))
}

type FromHost = Extract<Next, { readonly kind: 'from-host' }>

export function fromHost(draft: Draft, { node, identity, isProxy = false }: FromHost): Next {
  const at = onDevice(node.name, 'cilium_host', 'tc egress', 'cil_from_host')
  const who = isProxy
    ? 'the proxy’s connection carries'
    : identity === identityNumbers.host
      ? 'the host’s mark means'
      : 'the packet carries'
  tell(draft, at, ['took the packet', `${who} identity ${identity} (${draft.net.identityName(identity)}) (from-host)`])
  const { destination } = draft.packet
  const local = node.lxc(destination)
  if (local.row !== undefined && (local.row.flags & 3) !== 0) return { kind: 'to-host', node, identity }
  const endpoint =
    local.row === undefined ? undefined : node.maps.world.endpoints.find(({ id }) => id === local.row?.endpointId)
  if (endpoint !== undefined) {
    tell(draft, at, ['delivers on this node', `the address is that of ${endpointName(endpoint)}`], {
      lookups: [local.lookup],
    })
    return { kind: 'deliver', node, endpoint, identity, ...(isProxy && { isFromProxy: isOwnConnection(draft, node) }) }
  }
  const tunnel = tunnelTo(node, destination)
  if (draft.net.settings.isTunnel && tunnel.to !== undefined) {
    const why = 'no endpoint of this node has the address, and its row names the node behind the tunnel'
    const place = { device: 'cilium_host', hook: 'tc egress', program: 'cil_from_host' }
    return {
      kind: 'encapsulate',
      node,
      at: place,
      to: tunnel.to,
      identity,
      why,
      lookups: [local.lookup, ...tunnel.lookups],
    }
  }
  if (isOwnRange(node, destination)) {
    const sentence = `${printIp(destination)} is in a pod range, and neither an endpoint nor a row of the ipcache has it`
    tell(draft, at, ['looked for the address', 'no endpoint and no node behind a tunnel'], {
      lookups: [local.lookup, ...tunnel.lookups],
    })
    return end(drop(draft, at, 151, { sentence }))
  }
  return { kind: 'leave', node, identity, why: 'no endpoint of this node and no tunnel: the host’s stack routes it' }
}

/** Ingress policy has judged the packet before the proxy did; after egress it has not. */
function isOwnConnection(draft: Draft, node: NodeTables): boolean {
  return lookUpCt(stateOf(draft, node), draft.packet, 'ingress').result !== 'NEW'
}
