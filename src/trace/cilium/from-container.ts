/** A pod sends: its source address, its Service, its connection, its policy, and where the packet goes. Mirrors cil_from_container of bpf/bpf_lxc.c, Cilium 1.16 to 1.19. */
import { isSameIp, printIp } from '#base/ip'
import type { ServiceRow } from '#compile/cilium/lb-rows'
import type { LocalEndpoint } from '#compile/cilium/node-world'
import { serviceFlags } from '#compile/cilium/service-flags'
import { isAtLeast } from '#model/cilium-version'
import type { MapLookup, WalkPlace } from '#model/walk'
import { askPolicy } from './ask-policy'
import { requestGateway } from './egress-gateway'
import { findService, hasFlag } from './find-service'
import { isIcmp, rewriteDestination, rewriteSource, sourceText } from './flow-packet'
import { end, type Next } from './next'
import { type NodeTables, worldOf } from './node-tables'
import { reverseFromBackend } from './reverse-nat'
import { backToClient, isOwnRange, tunnelTo } from './routes'
import { noBackend, selectBackend } from './select-backend'
import { isBalancedAtSocket, serviceText } from './socket-lb'
import { ctFlags } from './state-rows'
import { type CtAnswer, createCt, ctSentence, lookUpCt } from './state-tables'
import { answerThroughProxy, redirectToProxy } from './to-proxy'
import {
  type Draft,
  drop,
  type Ending,
  endpointName,
  endpointObject,
  podSide,
  stateOf,
  tell,
  tellRewrite,
} from './walk-draft'

export function fromContainer(draft: Draft, node: NodeTables, endpoint: LocalEndpoint): Next {
  const at = podSide(node.name, endpoint, 'cil_from_container')
  const { packet } = draft
  if (!endpoint.ips.some(({ ip }) => isSameIp(ip, packet.source))) {
    const sentence = `${printIp(packet.source)} is no address of ${endpointName(endpoint)}`
    return end(drop(draft, at, 132, { sentence, ...endpointObject(endpoint) }))
  }
  tell(draft, at, ['took the packet', `${sourceText(packet)} is the pod’s own address (from-endpoint)`])
  const balanced = balance(draft, node, at, endpoint)
  if ('verdict' in balanced) return end(balanced)
  return track(draft, node, at, { endpoint, balanced })
}

type Balanced = { readonly service?: ServiceRow; readonly isLoopback: boolean }

/** Per packet, where sockets do not do it: always at random, never by Maglev. */
function balance(draft: Draft, node: NodeTables, at: WalkPlace, endpoint: LocalEndpoint): Balanced | Ending {
  const { packet } = draft
  const plain = { isLoopback: false }
  if (isIcmp(packet.protocol) || isBalancedAtSocket(draft, { title: endpoint.title, isHost: false })) return plain
  const { row, lookups } = findService(node, packet, true)
  if (row === undefined) {
    tell(draft, at, ['looked for a Service', 'the destination is no Service’s frontend'], { lookups })
    return plain
  }
  tell(draft, at, ['found the Service', serviceText(row.type, row.slots.length)], { lookups })
  if (row.slots.length === 0) return noBackend(draft, at, row)
  const backend = selectBackend(draft, node, at, { service: row, place: 'pod' })
  if (backend === undefined) return noBackend(draft, at, row)
  const loopbackIp = draft.net.path.loopbacks[backend.ip.family]
  const isLoopback = isSameIp(backend.ip, packet.source) && loopbackIp !== undefined
  if (isLoopback) {
    const written = rewriteSource(draft.packet, { ip: loopbackIp, port: packet.sourcePort }, 'tc')
    tellRewrite(
      draft,
      at,
      ['rewrote the source', 'the backend is the sender itself, which must not answer itself directly'],
      written,
    )
  }
  const ports = draft.packet.protocol === 'SCTP' && backend.port !== draft.packet.port
  if (ports) {
    const sentence = 'ports of SCTP are not rewritten: the target port of the Service must equal its port'
    return drop(draft, at, 154, { sentence, ...(row.source.object && { object: row.source.object }) })
  }
  const why = hasFlag(row, serviceFlags.localRedirect)
    ? 'a local redirect policy sends it to a pod of this node'
    : `from now on the packet is for the backend, and policy sees port ${backend.port}`
  tellRewrite(draft, at, ['rewrote the destination', why], rewriteDestination(draft.packet, backend, 'tc'))
  return { service: row, isLoopback }
}

type Tracked = { readonly endpoint: LocalEndpoint; readonly balanced: Balanced }

function track(draft: Draft, node: NodeTables, at: WalkPlace, { endpoint, balanced }: Tracked): Next {
  const state = stateOf(draft, node)
  const ct = lookUpCt(state, draft.packet, 'egress')
  tell(draft, at, [`asked connection tracking: ${ct.result}`, ctSentence(ct)], { lookups: ct.lookups })
  if (ct.result === 'REPLY' || ct.result === 'RELATED') return answer(draft, node, at, { endpoint, ct })
  const { row: there, lookup } = node.ipcache(draft.packet.destination)
  const identity = there?.identity ?? worldOf(node, draft.packet.destination)
  const name = draft.net.identityName(identity)
  tell(
    draft,
    at,
    [
      'looked up the destination',
      `identity ${identity} (${name})${there?.tunnel === undefined ? '' : ` behind ${printIp(there.tunnel)}`}`,
    ],
    { lookups: [lookup] },
  )
  if (balanced.isLoopback) {
    tell(draft, at, ['skipped policy', 'a pod may always reach itself through a Service'])
    openConnection(draft, node, { endpoint, balanced, ct, proxyPort: 0 })
    return route(draft, node, at, { endpoint, identity, isReply: false, isHairpin: true })
  }
  const fate = askPolicy(draft, node, at, { endpoint, direction: 'egress', identity })
  if ('ending' in fate) return end(fate.ending)
  openConnection(draft, node, { endpoint, balanced, ct, proxyPort: fate.proxyPort })
  if (fate.proxyPort > 0)
    return toProxy(draft, node, at, { endpoint, proxyPort: fate.proxyPort, parser: fate.parser ?? 'L7' })
  return route(draft, node, at, { endpoint, identity, isReply: false, isHairpin: false })
}

type Opening = Tracked & { readonly ct: CtAnswer; readonly proxyPort: number }

function openConnection(draft: Draft, node: NodeTables, { endpoint, balanced, ct, proxyPort }: Opening): void {
  if (ct.result !== 'NEW') return
  const flags = (balanced.isLoopback ? ctFlags.loopback : 0) | (proxyPort > 0 ? ctFlags.proxyRedirect : 0)
  createCt(stateOf(draft, node), draft.packet, {
    direction: 'OUT',
    flags,
    revNat: balanced.service?.revNat ?? 0,
    sourceIdentity: endpoint.identity,
  })
}

type Answering = { readonly endpoint: LocalEndpoint; readonly ct: CtAnswer }

/** To clients of a node port the answer comes from where they sent to. */
function answer(draft: Draft, node: NodeTables, at: WalkPlace, { endpoint, ct }: Answering): Next {
  const { row } = ct
  const flags = row?.flags ?? 0
  answerThroughProxy(draft, node, at, flags)
  if (row !== undefined && (flags & ctFlags.loopback) !== 0) {
    const frontend = node.reverseNat(row.revNat, draft.packet.source)
    const { source, port } = draft.packet
    if (frontend.row !== undefined) {
      const back = rewriteSource(draft.packet, frontend.row, 'tc')
      const turned = rewriteDestination(back.packet, { ip: source, port }, 'tc')
      const changes = [...back.changes, ...turned.changes]
      tellRewrite(draft, at, ['turned the packet back', 'the pod answered itself: the answer comes from the Service'], {
        packet: turned.packet,
        changes,
        lookups: [frontend.lookup],
      })
    }
    return route(draft, node, at, { endpoint, identity: endpoint.identity, isReply: true, isHairpin: true })
  }
  if ((flags & (ctFlags.nodePort | ctFlags.dsr)) !== 0) {
    const reversed = reverseFromBackend(draft, node, { ...at, program: 'tail_nodeport_rev_dnat' })
    if (reversed) return backToClient(draft, node, { ...at, program: 'tail_nodeport_rev_dnat' })
  }
  const { row: there, lookup } = node.ipcache(draft.packet.destination)
  const identity = there?.identity ?? worldOf(node, draft.packet.destination)
  tell(draft, at, ['looked up the destination', `identity ${identity} (${draft.net.identityName(identity)})`], {
    lookups: [lookup],
  })
  return route(draft, node, at, { endpoint, identity, isReply: true, isHairpin: false })
}

type Routing = {
  readonly endpoint: LocalEndpoint
  readonly identity: number
  readonly isReply: boolean
  readonly isHairpin: boolean
}

/** Endpoints of this node first, then the egress gateway until 1.17, the tunnel, and the host's routes. */
function route(
  draft: Draft,
  node: NodeTables,
  at: WalkPlace,
  { endpoint, identity, isReply, isHairpin }: Routing,
): Next {
  const { packet, net } = draft
  const local = node.lxc(packet.destination)
  if (local.row !== undefined) return toLocal(draft, node, at, { endpoint, lookup: local.lookup, isHairpin })
  const { version } = net.settings.policy
  if (!isAtLeast(version, '1.18') && !isReply) {
    const gateway = requestGateway(draft, node, at, { identity, own: endpoint.identity })
    if (gateway !== undefined) return gateway
  }
  const tunnel = tunnelTo(node, packet.destination)
  if (net.settings.isTunnel && tunnel.to !== undefined) {
    const { device = '', hook } = at
    return {
      kind: 'encapsulate',
      node,
      at: { device, hook, program: 'cil_from_container' },
      to: tunnel.to,
      identity: endpoint.identity,
      why: 'no endpoint of this node has the address, and its row names the node behind the tunnel',
      lookups: [local.lookup, ...tunnel.lookups],
    }
  }
  if (isOwnRange(node, packet.destination)) {
    const why = 'no endpoint of this node has the address; the route of the pod range leads to cilium_host'
    tell(draft, at, ['handed it to the host', why], { lookups: [local.lookup] })
    return { kind: 'from-host', node, identity: endpoint.identity }
  }
  const way = net.path.isLegacyRouting ? 'by the host’s stack (to-stack)' : 'by a fib lookup (to-network)'
  return {
    kind: 'leave',
    node,
    identity: endpoint.identity,
    why: `no endpoint of this node and no tunnel: routed ${way}`,
  }
}

type Local = { readonly endpoint: LocalEndpoint; readonly lookup: MapLookup; readonly isHairpin: boolean }

function toLocal(draft: Draft, node: NodeTables, at: WalkPlace, { endpoint, lookup, isHairpin }: Local): Next {
  const row = node.lxc(draft.packet.destination).row
  if (row === undefined || (row.flags & 3) !== 0) {
    tell(draft, at, ['handed it to the host', 'the address is one of the node itself (to-stack)'], {
      lookups: [lookup],
    })
    return { kind: 'to-host', node, identity: endpoint.identity }
  }
  const target = node.maps.world.endpoints.find(({ id }) => id === row.endpointId)
  if (target === undefined) {
    return end(drop(draft, at, 203, { sentence: `endpoint ${row.endpointId} has no policy program` }))
  }
  tell(draft, at, ['delivers on this node', `the address is that of ${endpointName(target)}`], { lookups: [lookup] })
  return { kind: 'deliver', node, endpoint: target, identity: endpoint.identity, isHairpin }
}

type Proxying = { readonly endpoint: LocalEndpoint; readonly proxyPort: number; readonly parser: string }

/** The proxy opens a connection of its own, with the pod's identity in its mark, which policy then passes over. */
function toProxy(draft: Draft, node: NodeTables, at: WalkPlace, { endpoint, proxyPort, parser }: Proxying): Next {
  redirectToProxy(draft, node, at, { proxyPort, parser, direction: 'egress' })
  return { kind: 'from-host', node, identity: endpoint.identity, isProxy: true }
}
