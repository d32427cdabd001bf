/** Services met from outside: ranges, backends, and the ways to a backend of another node; and answers to translated connections. Mirrors bpf/lib/nodeport.h, Cilium 1.16 to 1.19. */
import { type Ip, printEndpoint, printIp } from '#base/ip'
import type { BackendRow, ServiceRow } from '#compile/cilium/lb-rows'
import { serviceFlags } from '#compile/cilium/service-flags'
import { isAtLeast } from '#model/cilium-version'
import type { WalkPlace } from '#model/walk'
import { answerThroughGateway } from './egress-gateway'
import { findService, findWildcard, hasFlag } from './find-service'
import { type DsrInfo, isError, isIcmp, rewriteDestination, rewritePlace } from './flow-packet'
import { reverseError } from './icmp-error'
import { translateSource } from './masquerade'
import { end, type Next } from './next'
import { type NodeTables, worldOf } from './node-tables'
import { reverseFromBackend } from './reverse-nat'
import { backToClient } from './routes'
import { noBackend, selectBackend } from './select-backend'
import { serviceText } from './socket-lb'
import { ctFlags } from './state-rows'
import { createCt, lookUpCt, lookUpNat, natTable } from './state-tables'
import { type Draft, drop, type Ending, stateOf, tell, tellRewrite, unknown } from './walk-draft'

/** `local` goes on at this node; undefined where the packet is for no Service. */
export type Balanced = { readonly kind: 'local' } | { readonly kind: 'next'; readonly next: Next } | undefined

export function balanceAtNic(draft: Draft, node: NodeTables, at: WalkPlace): Balanced {
  const { packet } = draft
  if (isIcmp(packet.protocol)) return undefined
  const { row, lookups } = findService(node, packet, false)
  if (row === undefined) {
    const wild = isAtLeast(node.maps.settings.policy.version, '1.18') ? findWildcard(node, packet) : { lookups: [] }
    const all = [...lookups, ...wild.lookups]
    if (wild.row !== undefined) {
      tell(draft, at, ['found the address', 'it is a Service’s, and no Service has this port'], { lookups: all })
      const sentence = 'no Service has this port at the address'
      return next(drop(draft, at, 158, { sentence, ...blame(wild.row) }))
    }
    tell(draft, at, ['looked for a Service', 'the destination is no Service’s frontend'], { lookups })
    return undefined
  }
  tell(draft, at, ['found the Service', serviceText(row.type, row.slots.length)], { lookups })
  const refused = checkRange(draft, node, at, row)
  if (refused !== undefined) return next(refused)
  return forward(draft, node, at, row)
}

function next(ending: Ending): Balanced {
  return { kind: 'next', next: end(ending) }
}

function blame({ source }: ServiceRow) {
  return {
    ...(source.object !== undefined && { object: source.object }),
    ...(source.origin !== undefined && { origin: source.origin }),
  }
}

/** A range that holds the client lets it in, or keeps it out where the Service says deny. */
function checkRange(draft: Draft, node: NodeTables, at: WalkPlace, row: ServiceRow): Ending | undefined {
  if (!hasFlag(row, serviceFlags.sourceRange)) return undefined
  const { source } = draft.packet
  const found = node.sourceRange(row, source)
  const isDeny = hasFlag(row, serviceFlags.quarantined)
  const isFine = (found.row !== undefined) !== isDeny
  const what = found.row === undefined ? 'no source range holds the client' : 'a source range holds the client'
  tell(draft, at, ['checked the source ranges', `${what}${isDeny ? ', and ranges deny here' : ''}`], {
    lookups: [found.lookup],
  })
  if (isFine) return undefined
  const sentence = `${printIp(source)} is ${isDeny ? 'in a range that is denied' : 'in none of the Service’s loadBalancerSourceRanges'}`
  return drop(draft, at, 177, { sentence, ...blame(row) })
}

/** Whether the frontend is for the outside at all is asked after a backend is chosen. */
function forward(draft: Draft, node: NodeTables, at: WalkPlace, row: ServiceRow): Balanced {
  const frontend = { ip: draft.packet.destination, port: draft.packet.port }
  const backend = selectBackend(draft, node, at, { service: row, place: 'nic' })
  if (backend === undefined) return next(noBackend(draft, at, row))
  if (!hasFlag(row, serviceFlags.routable)) {
    const sentence = 'the frontend is for the inside of the cluster alone'
    return next(drop(draft, at, 174, { sentence, ...blame(row) }))
  }
  if (draft.packet.protocol === 'SCTP' && backend.port !== draft.packet.port) {
    return next(
      drop(draft, at, 154, {
        sentence: 'ports of SCTP are not rewritten: the target port must equal the port',
        ...blame(row),
      }),
    )
  }
  const isLocal = node.lxc(backend.ip).row !== undefined
  if (!isLocal && hasFlag(row, serviceFlags.hostPort)) {
    return next(drop(draft, at, 134, { sentence: 'a host port has its pod on the same node', ...blame(row) }))
  }
  const isDsr = !isLocal && usesDsr(draft)
  const written = rewriteDestination(draft.packet, backend, rewritePlace(at))
  tellRewrite(draft, at, ['rewrote the destination', `policy at the backend sees port ${backend.port}`], written)
  if (!isDsr) trackNodePort(draft, node, row)
  if (isLocal) return { kind: 'local' }
  return {
    kind: 'next',
    next: isDsr ? sendDirect(draft, node, at, { backend, frontend }) : sendTranslated(draft, node, at, backend),
  }
}

function usesDsr({ net, packet }: Draft): boolean {
  if (net.path.mode === 'snat') return false
  return net.path.mode === 'dsr' || packet.protocol === 'TCP'
}

/** An OUT row from the client to the backend, as by a connection of the world's. */
function trackNodePort(draft: Draft, node: NodeTables, { revNat }: ServiceRow): void {
  const state = stateOf(draft, node)
  if (lookUpCt(state, draft.packet, 'egress').result !== 'NEW') return
  createCt(state, draft.packet, {
    direction: 'OUT',
    flags: ctFlags.nodePort,
    revNat,
    sourceIdentity: worldOf(node, draft.packet.source),
  })
}

/** From the router's address through the tunnel, or from the node's own. */
function sendTranslated(draft: Draft, node: NodeTables, at: WalkPlace, { ip }: BackendRow): Next {
  const { net } = draft
  const { row, lookup } = node.ipcache(ip)
  const tunnel = net.settings.isTunnel ? row?.tunnel : undefined
  const place = { ...at, program: 'tail_nodeport_nat_egress' }
  const own = tunnel === undefined ? net.internalIp(node.name, ip.family) : net.router(node.name, ip.family)
  if (own === undefined)
    return end(unknown(draft, place, 'cilium.no-node-address', `${node.name} has no address to translate to`))
  const what = tunnel === undefined ? 'the node’s own address' : 'the router’s address'
  const ended = translateSource(draft, node, place, {
    ip: own,
    needsCt: false,
    why: `the backend is on another node: answers come back here by ${what}`,
    lookups: [lookup],
  })
  if (ended !== undefined) return end(ended)
  if (at.hook !== 'xdp') draft.packet = { ...draft.packet, mark: 0x300 }
  const identity = worldOf(node, ip)
  if (tunnel === undefined)
    return {
      kind: 'leave',
      node,
      identity,
      isTranslated: true,
      isXdp: at.hook === 'xdp',
      why: 'to the backend’s node, as the node’s routes say (fib lookup)',
    }
  const { device = '', hook } = at
  return {
    kind: 'encapsulate',
    node,
    at: { device, hook, program: 'tail_nodeport_nat_egress' },
    to: tunnel,
    identity,
    why: 'the backend is behind the tunnel',
    lookups: [lookup],
  }
}

type Direct = { readonly backend: BackendRow; readonly frontend: { readonly ip: Ip; readonly port: number } }

/** The backend answers the client itself: it is told where the client sent to. */
function sendDirect(draft: Draft, node: NodeTables, at: WalkPlace, { backend, frontend }: Direct): Next {
  const { net } = draft
  const { dispatch } = net.path
  const place = { ...at, program: 'tail_nodeport_dsr' }
  if (net.settings.isTunnel && !(dispatch === 'geneve' && net.settings.tunnelProtocol === 'geneve')) {
    const sentence = `the agent does not start with DSR by ${dispatch} and a ${net.settings.tunnelProtocol} tunnel`
    return end(unknown(draft, place, 'cilium.bad-mode', sentence))
  }
  const identity = worldOf(node, backend.ip)
  const what = printEndpoint(printIp(frontend.ip), frontend.port)
  const dsr: DsrInfo = { ...frontend, carrier: dispatch === 'opt' ? 'option' : dispatch }
  draft.packet = { ...draft.packet, dsr }
  if (dispatch === 'geneve') {
    const { row, lookup } = node.ipcache(backend.ip)
    const to = row?.tunnel ?? backend.ip
    tell(draft, place, ['added a Geneve option', `it says that the client sent to ${what}`], { lookups: [lookup] })
    const { device = '', hook } = at
    return {
      kind: 'encapsulate',
      node,
      at: { device, hook, program: 'tail_nodeport_dsr' },
      to,
      identity,
      why: 'the option travels in Geneve',
      lookups: [],
    }
  }
  const how =
    dispatch === 'ipip'
      ? (['wrapped in IPIP', `the outer header is for the backend, the inner one keeps ${what}`] as const)
      : (['added an IP option', optionText(draft, what)] as const)
  tell(draft, place, how)
  if (at.hook !== 'xdp') draft.packet = { ...draft.packet, mark: 0x300 }
  return {
    kind: 'leave',
    node,
    identity,
    isTranslated: true,
    isXdp: at.hook === 'xdp',
    why: 'to the backend’s node with the client’s address (fib lookup)',
  }
}

/** Of IPv6 it is an extension header; of TCP the first packet alone has it. */
function optionText({ packet }: Draft, what: string): string {
  const option =
    packet.source.family === 'ipv4' ? 'option 0x9a of 8 bytes' : 'destination option 0x1b in a header of 24 bytes'
  return `${option} says that the client sent to ${what}${packet.protocol === 'TCP' ? ', on the SYN alone' : ''}`
}

/** At the backend's node: the row of the connection keeps what the client sent to. */
export function recordDirect(draft: Draft, node: NodeTables, at: WalkPlace): boolean {
  const { dsr, ...packet } = draft.packet
  if (dsr === undefined) return false
  draft.packet = packet
  const nat = { ip: dsr.ip, port: dsr.port }
  createCt(stateOf(draft, node), packet, {
    direction: 'OUT',
    flags: ctFlags.dsr,
    revNat: 0,
    sourceIdentity: worldOf(node, dsr.ip),
    nat,
  })
  const where = isAtLeast(node.maps.settings.policy.version, '1.18')
    ? 'in the connection’s row'
    : `in ${natTable(dsr.ip.family)}`
  tell(draft, at, [
    'took the client’s destination',
    `${printEndpoint(printIp(nat.ip), nat.port)} is kept ${where}, for the answer`,
  ])
  return true
}

/** Whether the packet answers a connection that this node translated; undefined where it goes on as it is. */
export function reverseSource(draft: Draft, node: NodeTables, at: WalkPlace): Next | undefined {
  const { packet } = draft
  const place = { ...at, program: 'tail_nodeport_nat_ingress' }
  if (!isIcmp(packet.protocol) && packet.port < 32768) {
    tell(draft, place, ['skipped reverse NAT', `port ${packet.port} is below 32768, which no translation uses`])
    return undefined
  }
  if (isError(packet)) {
    const found = reverseError(draft, node, place)
    if (found === undefined) return undefined
    return found === 'translated' ? afterReverse(draft, node, { ...at, program: 'tail_nodeport_rev_dnat' }) : end(found)
  }
  const { row, lookup } = lookUpNat(stateOf(draft, node), packet, 'IN')
  if (row === undefined) {
    tell(
      draft,
      place,
      ['asked for reverse NAT', 'no mapping: it answers no translated connection, and goes on as it is'],
      { lookups: [lookup] },
    )
    return undefined
  }
  const written = rewriteDestination(packet, row.to, rewritePlace(at))
  const isOwn = written.changes.length === 0
  const why = isOwn
    ? 'it answers a connection of the node itself: nothing changes'
    : 'it answers a translated connection'
  tellRewrite(draft, place, [isOwn ? 'asked for reverse NAT' : 'translated the destination back', why], {
    packet: isOwn || at.hook === 'xdp' ? written.packet : { ...written.packet, mark: 0x300 },
    changes: written.changes,
    lookups: [lookup],
  })
  if (isOwn) return undefined
  return afterReverse(draft, node, { ...at, program: 'tail_nodeport_rev_dnat' })
}

/** To the client of a node port, to the pod behind a gateway, or on to a pod of this node. */
function afterReverse(draft: Draft, node: NodeTables, at: WalkPlace): Next | undefined {
  if (reverseFromBackend(draft, node, at)) return backToClient(draft, node, at)
  return answerThroughGateway(draft, node, at)
}
