/** One packet through Cilium's nodes by their maps, program by program, and its answer back with the state that is left. */
import { parseEndpoint, printIp } from '#base/ip'
import { countOf } from '#base/text'
import { keyOf } from '#model/meta'
import type { Reason, Target, Verdict } from '#model/trace'
import type { Leg, StateRow, Walk, WalkQuestion } from '#model/walk'
import { printShare } from '../print-trace'
import { isBroadcast, isMulticast } from '../world'
import type { CiliumNet } from './cilium-net'
import { deliver, toHost } from './deliver'
import { type FlowPacket, isAnswered, isIcmp, reversePacket } from './flow-packet'
import { fromContainer } from './from-container'
import { fromHost, fromProcess } from './from-host'
import { fromNetdev, fromOverlay } from './from-netdev'
import { keepInPod } from './keep-in-pod'
import { encapsulate, leave, wire } from './leave-node'
import { end, type Next } from './next'
import { atSocket } from './socket-lb'
import { type CiliumState, newState } from './state-tables'
import { arrive, type Draft, type Ending, type Stop, tell, unknown } from './walk-draft'
import { withoutFrontend } from './without-frontend'

/** Programs that one packet may run; more than any way through a cluster has. */
const mostHops = 40

/** `state` is written to: a second walk with the same one finds what the first left. */
export function walkCilium(
  net: CiliumNet,
  question: WalkQuestion,
  state: CiliumState = newState(net.settings.policy.version),
): Walk {
  const before = state.rows()
  const untouched = state.copy()
  const request = newDraft(net, question, state, packetOf(question))
  const went = withoutFrontend(request, run(request, start(request)))
  const others = otherFates(net, question, { untouched, request, went })
  const requestLeg = legOf(request, { ...went, verdict: withReasons(went.verdict, others) })
  const reply = question.isReplyWanted ? walkReply(request, went) : undefined
  const known = new Set(before.map(rowKey))
  const after = state.rows().map((row): StateRow => ({ ...row, isNew: !known.has(rowKey(row)) }))
  return {
    datapath: 'cilium',
    request: requestLeg,
    ...(reply !== undefined && { reply }),
    before,
    after,
    findings: net.findings(),
  }
}

function rowKey({ node, table, row }: StateRow): string {
  return `${node} ${table} ${row}`
}

type Followed = { readonly untouched: CiliumState; readonly request: Draft; readonly went: Ending }

/** Backends that are followed beside the chosen one, and nodes whose maps are computed for them. */
const most = { others: 32, nodes: 8 } as const

/** Backends that chance may choose as well, and how they fare where that is another fate. */
function otherFates(net: CiliumNet, question: WalkQuestion, { untouched, request, went }: Followed): readonly Reason[] {
  const { targets } = request
  if (targets.length < 2) return []
  const own = fateText(went)
  const passed = new Set(request.steps.map(({ packet }) => packet.destination))
  const others = targets.filter(({ address }) => !passed.has(address))
  const near = nearOnes(net, others)
  const reasons = near.flatMap(({ address, share }) => {
    const asked = { ...question, backend: address }
    const draft = newDraft(net, asked, untouched.copy(), packetOf(asked))
    const ending = withoutFrontend(draft, run(draft, start(draft)))
    const fate = fateText(ending)
    if (fate === own) return []
    const sentence = `${printShare(share)} go to ${address} instead and are ${fate}: ${ending.verdict.because[0].sentence}`
    return [{ ...ending.verdict.because[0], code: 'cilium.other-backend', sentence }]
  })
  if (near.length === others.length) return reasons
  const sentence = `${countOf(others.length - near.length, 'other backend')} on more nodes are not followed; name one with --backend`
  return [...reasons, { code: 'cilium.other-backends', sentence }]
}

function nearOnes(net: CiliumNet, others: readonly Target[]): readonly Target[] {
  const nodes = new Set<string>()
  return others.slice(0, most.others).filter(({ address }) => {
    const ip = parseEndpoint(address)?.ip
    const name = ip === undefined ? undefined : (net.nodeOfAddress(ip) ?? net.nodeOfPod(ip))
    if (name === undefined || net.isLoaded(name) || nodes.has(name)) return true
    if (nodes.size >= most.nodes) return false
    nodes.add(name)
    return true
  })
}

function fateText({ verdict, drop }: Ending): string {
  return drop === undefined ? verdict.kind : `${verdict.kind} with ${drop.number} (${drop.name})`
}

function withReasons({ kind, because: [first, ...rest] }: Verdict, more: readonly Reason[]): Verdict {
  return { kind, because: [first, ...rest, ...more] }
}

function newDraft(net: CiliumNet, question: WalkQuestion, state: CiliumState, packet: FlowPacket): Draft {
  return { net, question, state, packet, steps: [], targets: [], doubts: [], share: 1, hops: 0 }
}

/** Echoes alone have an identifier. */
function packetOf({ source, destination, protocol, sourcePort, port, icmpCode, about }: WalkQuestion): FlowPacket {
  const ends = { source: source.ip, destination: destination.ip, wrappings: [] }
  const plain = { protocol, ...ends, ...(about !== undefined && { about }) }
  if (!isIcmp(protocol)) return { ...plain, sourcePort, port }
  const isAnswer = port === 0 || port === 129
  const id = isAnswer || port === 8 || port === 128 ? sourcePort : 0
  const told = { icmpType: port, ...(icmpCode !== undefined && { icmpCode }) }
  return { ...plain, sourcePort: isAnswer ? 0 : id, port: isAnswer ? id : 0, ...told }
}

function legOf({ steps, targets }: Draft, { verdict, drop }: Ending): Leg {
  const isReached = verdict.kind === 'allowed'
  return {
    steps,
    verdict,
    ...(drop !== undefined && { drop }),
    targets: isReached || targets.length > 1 ? targets : [],
  }
}

/** From the pod, the node, or the world. */
function start(draft: Draft): Next {
  const { net, question } = draft
  const { source } = question
  const { destination } = draft.packet
  if (isMulticast(destination) || isBroadcast(destination)) {
    const sentence = `${printIp(destination)} is for many receivers: where its copies go is in no map`
    return end(unknown(draft, { hook: 'routing' }, 'cilium.many-receivers', sentence))
  }
  const isOnHost = source.pod === undefined || source.pod.hostNetwork
  if (isOnHost && source.node !== undefined) {
    const node = net.node(source.node)
    return node === undefined ? noNode(draft, source.node) : { kind: 'from-process', node }
  }
  if (source.pod === undefined) return enter(draft)
  const name = source.pod.nodeName
  if (name === undefined) return noNode(draft, undefined)
  const node = net.node(name)
  if (node === undefined) return noNode(draft, name)
  const key = keyOf(source.pod.meta)
  const endpoint = node.maps.world.endpoints.find(({ kind, title }) => kind === 'pod' && title === key)
  if (endpoint === undefined) {
    const sentence = `Cilium does not manage pod ${key}: no map knows it, so that what it may send is not in them`
    return end(unknown(draft, { node: name, hook: 'veth' }, 'cilium.unmanaged', sentence))
  }
  const refused = atSocket(draft, node, { title: key, isHost: false })
  return refused === undefined ? { kind: 'from-pod', node, endpoint } : end(refused)
}

function noNode(draft: Draft, name: string | undefined): Next {
  const sentence =
    name === undefined ? 'the pod has no node' : `node ${name} is not in the input, so that no map of it is known`
  return end(unknown(draft, { hook: 'node' }, 'cilium.no-node', sentence))
}

/** Where it comes in: as asked, at the node that holds the address, or at the first of all. */
function enter(draft: Draft): Next {
  const { net, question } = draft
  const holder = net.nodeOfAddress(question.destination.ip) ?? net.nodeOfPod(question.destination.ip)
  const local = net.entryOf(question.destination.ip)
  const name = question.entryNode ?? holder ?? local ?? net.nodeNames[0]
  const node = name === undefined ? undefined : net.node(name)
  if (node === undefined) return noNode(draft, name ?? 'at which it comes in')
  const why =
    question.entryNode !== undefined
      ? 'as is asked'
      : holder !== undefined
        ? `which ${printIp(question.destination.ip)} is routed to`
        : local !== undefined
          ? 'where an endpoint is, as its traffic stays local and the load balancer asks for the health of nodes; name another one with --node'
          : 'the first by name, as nothing tells where the network brings the address; name another one with --node'
  tell(draft, { hook: 'wire' }, [`comes in at ${node.name}`, why])
  return { kind: 'from-netdev', node }
}

function run(draft: Draft, first: Next): Ending {
  let next = first
  while (next.kind !== 'end') {
    draft.hops++
    if (draft.hops > mostHops) {
      return unknown(draft, { hook: 'routing' }, 'cilium.loop', 'the packet goes around in a circle')
    }
    next = runOne(draft, next)
  }
  return next.ending
}

function runOne(draft: Draft, next: Exclude<Next, { readonly kind: 'end' }>): Next {
  switch (next.kind) {
    case 'from-pod':
      return keepInPod(draft, next) ?? fromContainer(draft, next.node, next.endpoint)
    case 'deliver':
      return deliver(draft, next)
    case 'from-process':
      return fromProcess(draft, next)
    case 'from-host':
      return fromHost(draft, next)
    case 'to-host':
      return toHost(draft, next.node, next.identity)
    case 'encapsulate':
      return encapsulate(draft, next)
    case 'leave':
      return leave(draft, next)
    case 'wire':
      return wire(draft, next.from)
    case 'from-netdev':
      return fromNetdev(draft, next.node)
    case 'from-overlay':
      return fromOverlay(draft, next.node)
    default:
      return next satisfies never
  }
}

/** From where the request ended, with the packet turned around. */
function walkReply(request: Draft, { stop, verdict }: Ending): Leg | undefined {
  if (verdict.kind !== 'allowed' || stop.kind === 'nowhere' || !isAnswered(request.packet)) return undefined
  const { net, question, state } = request
  const draft = newDraft(net, question, state, reversePacket(request.packet))
  return legOf(draft, run(draft, answerFrom(draft, stop)))
}

function answerFrom(draft: Draft, stop: Exclude<Stop, { readonly kind: 'nowhere' }>): Next {
  const { net } = draft
  if (stop.kind === 'outside') {
    const name = net.nodeOfAddress(draft.packet.destination) ?? net.nodeOfPod(draft.packet.destination)
    const node = name === undefined ? undefined : net.node(name)
    if (node === undefined) {
      const at = { hook: 'wire' }
      tell(draft, at, ['answered', 'outside, to an address that no node of the input has'])
      return end(
        arrive(draft, 'cilium.left', `the answer goes to ${printIp(draft.packet.destination)}`, { kind: 'outside' }),
      )
    }
    tell(draft, { hook: 'wire' }, [`comes in at ${node.name}`, `which has ${printIp(draft.packet.destination)}`])
    return { kind: 'from-netdev', node }
  }
  const node = net.node(stop.node)
  if (node === undefined) return noNode(draft, stop.node)
  return stop.kind === 'host'
    ? { kind: 'from-process', node, isAnswer: true }
    : { kind: 'from-pod', node, endpoint: stop.endpoint }
}
