/** A pod or the host receives. Mirrors cil_lxc_policy of bpf/bpf_lxc.c and cil_to_host of bpf/bpf_host.c, Cilium 1.16 to 1.19. */
import { type Ip, isSameIp, printIp } from '#base/ip'
import { identityNumbers } from '#compile/identities/numbers'
import type { WalkPlace } from '#model/walk'
import { isLoopbackOrUnspecified } from '../own-address'
import { isBroadcast, isMulticast } from '../world'
import { askPolicy } from './ask-policy'
import { addressText, destinationText, type FlowPacket } from './flow-packet'
import { answerTo } from './icmp-error'
import { type Delivery, end, type Next } from './next'
import { type NodeTables, worldOf } from './node-tables'
import { reverseByNumber } from './reverse-nat'
import { backAtSocket } from './socket-lb'
import { ctFlags } from './state-rows'
import { type CtAnswer, createCt, ctSentence, kernelKey, lookUpCt, nodePortRow } from './state-tables'
import { answerThroughProxy, redirectToProxy } from './to-proxy'
import { arrive, type Draft, endpointName, onDevice, policySide, stateOf, tell, tellRewrite } from './walk-draft'

export function deliver(draft: Draft, delivery: Delivery): Next {
  const { node, endpoint, identity, isHairpin = false, isFromProxy = false } = delivery
  const at = policySide(node.name, endpoint, 'cil_lxc_policy')
  const ct = lookUpCt(stateOf(draft, node), draft.packet, 'ingress')
  const call = { map: 'cilium_call_policy', key: String(endpoint.id), value: `policy program of ${endpoint.title}` }
  tell(draft, at, [`asked connection tracking: ${ct.result}`, ctSentence(ct)], { lookups: [call, ...ct.lookups] })
  if (ct.result === 'REPLY' || ct.result === 'RELATED') return deliverAnswer(draft, delivery, ct)
  if (isHairpin || isLoopback(ct) || hasLoopbackRow(draft, node)) {
    tell(draft, at, ['skipped policy', 'a pod may always reach itself through a Service'])
    if (isLoopback(ct) || hasLoopbackRow(draft, node)) track(draft, delivery, { ct, proxyPort: 0, isLoopback: true })
    return arrived(draft, delivery)
  }
  if (isFromProxy) {
    tell(draft, at, ['skipped policy', 'the proxy has judged it already (from-proxy)'])
    return arrived(draft, delivery)
  }
  const fate = askPolicy(draft, node, at, { endpoint, direction: 'ingress', identity })
  if ('ending' in fate) return end(fate.ending)
  track(draft, delivery, { ct, proxyPort: fate.proxyPort, isLoopback: false })
  if (fate.proxyPort === 0) return arrived(draft, delivery)
  redirectToProxy(draft, node, at, { proxyPort: fate.proxyPort, parser: fate.parser ?? 'L7', direction: 'ingress' })
  return { kind: 'from-host', node, identity, isProxy: true }
}

function isLoopback({ row }: CtAnswer): boolean {
  return row !== undefined && (row.flags & ctFlags.loopback) !== 0
}

/** The sender's own row tells that the packet came back to it. */
function hasLoopbackRow(draft: Draft, node: NodeTables): boolean {
  return (lookUpCt(stateOf(draft, node), draft.packet, 'egress').row?.flags ?? 0) === ctFlags.loopback
}

type Tracking = { readonly ct: CtAnswer; readonly proxyPort: number; readonly isLoopback: boolean }

function track(
  draft: Draft,
  { node, identity, isFromTunnel = false }: Delivery,
  { ct, proxyPort, isLoopback: isSelf }: Tracking,
): void {
  if (ct.result !== 'NEW') return
  const state = stateOf(draft, node)
  const came = nodePortRow(state, draft.packet)
  const own = lookUpCt(state, draft.packet, 'egress').row
  createCt(state, draft.packet, {
    direction: 'IN',
    flags:
      ((came?.flags ?? 0) & (ctFlags.nodePort | ctFlags.dsr)) |
      (proxyPort > 0 ? ctFlags.proxyRedirect : 0) |
      (isFromTunnel ? ctFlags.fromTunnel : 0) |
      (isSelf ? ctFlags.loopback : 0),
    revNat: isSelf ? (own?.revNat ?? 0) : 0,
    sourceIdentity: identity,
  })
}

/** A client that was translated per packet gets its answer from the frontend. */
function deliverAnswer(draft: Draft, delivery: Delivery, { row }: CtAnswer): Next {
  const { node, endpoint } = delivery
  const at = policySide(node.name, endpoint, 'cil_lxc_policy')
  const isSelf = ((row?.flags ?? 0) & ctFlags.loopback) !== 0
  answerThroughProxy(draft, node, at, row?.flags ?? 0)
  if (row !== undefined && row.revNat > 0 && !isSelf) {
    reverseByNumber(draft, node, at, { revNat: row.revNat })
  }
  return arrived(draft, delivery)
}

function arrived(draft: Draft, { node, endpoint }: Delivery): Next {
  const at = policySide(node.name, endpoint, 'cil_lxc_policy')
  const name = endpointName(endpoint)
  const { source } = draft.packet
  const isFromItself = endpoint.ips.some(({ ip }) => isSameIp(ip, source))
  if (isFromItself && source.family === 'ipv6') return answersItself(draft, at, name)
  if (isFromItself) {
    return martian(draft, at, `the kernel in ${name} drops what comes from its own address as a martian`)
  }
  if (isNobodys(source)) {
    return martian(draft, at, `the kernel in ${name} drops what comes from ${printIp(source)} as a martian`)
  }
  if (draft.packet.mark !== undefined) draft.packet = withoutMark(draft.packet)
  const how = draft.net.path.hasEndpointRoutes ? 'cil_to_container at its veth' : 'redirected to its device'
  tell(draft, at, ['delivered', `${name} receives it, ${how} (to-endpoint)`])
  backAtSocket(draft, node, { title: endpoint.title, isHost: false })
  finishTargets(draft)
  return end(
    arrive(draft, 'cilium.delivered', `it reaches ${name} on ${node.name} as ${destinationText(draft.packet)}`, {
      kind: 'pod',
      node: node.name,
      endpoint,
    }),
  )
}

/** What comes from a pod's own address and was not turned around for it. */
function martian(draft: Draft, at: WalkPlace, sentence: string): Next {
  tell(draft, at, ['delivered, and dropped', sentence])
  return end({
    verdict: { kind: 'dropped', because: [{ code: 'cilium.martian', sentence }] },
    stop: { kind: 'nowhere' },
  })
}

/** IPv6 takes packets from one's own address, and answers them by its own loopback, where no program restores the frontend. */
function answersItself(draft: Draft, at: WalkPlace, name: string): Next {
  const { packet, question } = draft
  const asked = addressText(packet, question.destination.ip, question.port)
  const sentence = `${name} receives it from its own address and answers by its own loopback from ${destinationText(packet)}, where the client waits for ${asked}: the connection never comes up`
  tell(draft, at, ['delivered, and answered amiss', sentence])
  return end({
    verdict: { kind: 'dropped', because: [{ code: 'cilium.answers-itself', sentence }] },
    stop: { kind: 'nowhere' },
  })
}

/** ip_route_input_slow of net/ipv4/route.c and ip6_rcv_core of net/ipv6/ip6_input.c refuse them as sources. */
function isNobodys(source: Ip): boolean {
  if (isMulticast(source) || isBroadcast(source)) return true
  const [first = 0] = source.words
  return source.family === 'ipv4' ? [0, 127].includes(first >>> 24) : isLoopbackOrUnspecified(source)
}

function withoutMark({ mark: _, ...packet }: Draft['packet']): Draft['packet'] {
  return packet
}

function finishTargets(draft: Draft): void {
  if (draft.targets.length === 0) draft.targets.push({ address: destinationText(draft.packet), share: 1 })
}

/** Of ICMP no socket has to listen. */
export function whoTakes({ icmpType }: Pick<FlowPacket, 'icmpType'>): string {
  if (icmpType === undefined) return '; what listens there no map tells'
  return icmpType === 8 || icmpType === 128 ? ', whose kernel answers it' : ', whose kernel takes it'
}

/** The host firewall judges what is for the node itself; then its stack has it. */
export function toHost(draft: Draft, node: NodeTables, identity: number): Next {
  const host = node.maps.world.endpoints.find(({ kind }) => kind === 'host')
  const at = onDevice(node.name, 'cilium_host', 'tc ingress', 'cil_to_host')
  if (host !== undefined && node.maps.settings.policy.hasHostFirewall && identity !== identityNumbers.host) {
    const ct = lookUpCt(stateOf(draft, node), draft.packet, 'ingress')
    tell(draft, at, [`asked connection tracking: ${ct.result}`, ctSentence(ct)], { lookups: ct.lookups })
    if (ct.result === 'NEW' || ct.result === 'ESTABLISHED') {
      const fate = askPolicy(draft, node, at, { endpoint: host, direction: 'ingress', identity })
      if ('ending' in fate) return end(fate.ending)
      if (ct.result === 'NEW')
        createCt(stateOf(draft, node), draft.packet, { direction: 'IN', sourceIdentity: identity })
    }
  }
  const { about } = draft.packet
  const back = stateOf(draft, node).kernel.get(kernelKey(about === undefined ? draft.packet : answerTo(about)))
  if (back !== undefined) {
    const inside = about === undefined ? {} : { about: { ...about, source: back.ip, sourcePort: back.port } }
    const port = about === undefined ? back.port : draft.packet.port
    const written = { packet: { ...draft.packet, destination: back.ip, port, ...inside }, changes: [] }
    const stack = { node: node.name, hook: 'PREROUTING', program: 'netfilter' }
    tellRewrite(
      draft,
      stack,
      ['translated the destination back', 'the kernel’s connection tracking knows the masqueraded connection'],
      written,
    )
    return { kind: 'from-host', node, identity: worldOf(node, draft.packet.source) }
  }
  const { source } = draft.packet
  if (identity !== identityNumbers.host && isNobodys(source)) {
    const sentence = `the kernel of ${node.name} drops what comes from ${printIp(source)} as a martian`
    return martian(draft, at, sentence)
  }
  tell(draft, at, [
    'handed it to the host',
    'the address is one of the node itself: its stack looks for a socket (to-host)',
  ])
  backAtSocket(draft, node, { title: node.name, isHost: true })
  finishTargets(draft)
  const what = addressText(draft.packet, draft.packet.destination, draft.packet.port)
  return end(
    arrive(draft, 'cilium.to-host', `it reaches the node ${node.name} itself as ${what}${whoTakes(draft.packet)}`, {
      kind: 'host',
      node: node.name,
    }),
  )
}
