/** A packet's whole way between kube-proxy nodes and its answer's way back: rules, routing, policies at both ends, state. */
import type { Finding } from '#base/finding'
import { isSameIp, parseIp, printIp } from '#base/ip'
import { compareText, countOf } from '#base/text'
import { keyOf } from '#model/meta'
import type { Pod } from '#model/pod'
import type { Leg, StateRow, Walk, WalkInner, WalkQuestion, WalkStep } from '#model/walk'
import { localEntry } from '../local-entry'
import { staysWithSender } from '../own-address'
import { isBroadcast, isMulticast } from '../world'
import { type Arrival, type Fate, judged } from './fate'
import { journeyFinding } from './findings'
import { answerOf, destinationText, type Flight, hasAnswer, sourceText, walkPacket } from './flight'
import { joinFates } from './join-fates'
import type { JourneyWorld } from './journey-world'
import { answeredEntry, type NodeEntry, nodeState, stateRow } from './node-state'
import { type Place, placeOf } from './places'
import { type FlightWalk, type Standing, walkFlight } from './walk-flight'

export function walkJourney(world: JourneyWorld, question: WalkQuestion): Walk {
  const given = [...(world.setting.conntrack ?? [])].flatMap(([node, entries]) =>
    entries.map((entry): NodeEntry => ({ node, entry, isNew: false })),
  )
  const walk: FlightWalk = {
    world,
    state: nodeState(given),
    remembered: world.setting.remembered ?? [],
    ...(question.backend !== undefined && { backend: question.backend }),
  }
  const flight = flightOf(question)
  const start = startOf(world, question, flight)
  const fates = start.kind === 'stands' ? walkFlight(walk, start.standing) : [start.fate]
  const { leg, followed } = joinFates(fates, question.backend)
  const reply =
    question.isReplyWanted && followed?.arrival !== undefined
      ? walkAnswer(walk, { flight, start, followed, given })
      : undefined
  const fresh = reply === undefined ? (followed?.entries ?? []) : (followed?.entries ?? []).map(answeredEntry)
  return {
    datapath: world.setting.datapath,
    request: leg,
    ...(reply !== undefined && { reply: reply.leg }),
    before: [...given.map(stateRow), ...walk.remembered].filter(({ node }) => isCrossed(followed, node)),
    after: afterRows(walk, { given, fresh, followed }),
    findings: findingsOf(world, followed),
  }
}

function flightOf({ source, destination, protocol, sourcePort, port, icmpCode, about }: WalkQuestion): Flight {
  return {
    ...{ protocol, source: source.ip, sourcePort, destination: destination.ip, port },
    ...(icmpCode !== undefined && { icmpCode }),
    ...(about !== undefined && { about: innerFlight(about) }),
  }
}

/** Of an echo its request. */
function innerFlight(about: WalkInner): Flight {
  const request = { ICMP: 8, ICMPv6: 128 }[about.protocol as string]
  return request === undefined ? about : { ...about, port: request }
}

type Start =
  | { readonly kind: 'stands'; readonly standing: Standing; readonly arrival: Arrival['kind'] }
  /** The pod is the receiver itself. */
  | { readonly kind: 'stays'; readonly fate: Fate; readonly pod: Pod; readonly node: string }
  | { readonly kind: 'stuck'; readonly fate: Fate }

const nothing = { share: 1, entries: [], noted: [], crossed: 0 }

function startOf(world: JourneyWorld, question: WalkQuestion, flight: Flight): Start {
  const { pod, node } = question.source
  const ip = printIp(flight.destination)
  if (isMulticast(flight.destination) || isBroadcast(flight.destination))
    return stuck(`${ip} is for many receivers: where its copies go is not in the input`, 'path.many-receivers')
  if (pod !== undefined && !pod.hostNetwork) {
    if (pod.nodeName === undefined) return stuck(`the input does not tell the node of ${keyOf(pod.meta)}`)
    const device = keyOf(pod.meta)
    const own = pod.podIPs.flatMap((text) => parseIp(text) ?? [])
    if (staysWithSender(flight.destination, own)) {
      return { kind: 'stays', pod, node: pod.nodeName, fate: keptInPod(pod, pod.nodeName, flight) }
    }
    const step: WalkStep = {
      at: { node: pod.nodeName, device, hook: 'pod' },
      did: 'sent',
      because: `${device} has ${printIp(flight.source)}`,
      packet: walkPacket(flight),
      object: { kind: 'Pod', namespace: pod.meta.namespace, name: pod.meta.name },
      origin: pod.meta.origin,
    }
    return {
      kind: 'stands',
      arrival: 'pod',
      standing: { ...nothing, node: pod.nodeName, way: 'wire', flight, sender: pod, steps: [step] },
    }
  }
  const host = node ?? pod?.nodeName
  if (host !== undefined) {
    const step: WalkStep = {
      at: { node: host, hook: 'process', ...(pod !== undefined && { device: keyOf(pod.meta) }) },
      did: 'sent',
      because: `a process of node ${host} sends it`,
      packet: walkPacket(flight),
    }
    return {
      kind: 'stands',
      arrival: 'process',
      standing: { ...nothing, node: host, way: 'process', flight, steps: [step] },
    }
  }
  if (pod !== undefined) return stuck(`the input does not tell the node of ${keyOf(pod.meta)}`)
  return fromOutside(world, question, flight)
}

function stuck(sentence: string, code = 'path.unknown-node'): Start {
  return {
    kind: 'stuck',
    fate: { share: 1, steps: [], entries: [], noted: [], verdict: judged('unknown', code, sentence) },
  }
}

/** Over the loopback interface of the pod: neither the node's rules nor policies see it. */
function keptInPod(pod: Pod, node: string, flight: Flight): Fate {
  const device = keyOf(pod.meta)
  const step: WalkStep = {
    at: { node, device, hook: 'loopback' },
    did: 'stayed in the pod',
    because: `${printIp(flight.destination)} is the pod’s own: its kernel keeps the packet, and no rule or policy is asked`,
    packet: walkPacket(flight),
    object: { kind: 'Pod', namespace: pod.meta.namespace, name: pod.meta.name },
    origin: pod.meta.origin,
  }
  const sentence = `it reaches ${device} as ${destinationText(flight)} without leaving the pod`
  return {
    ...nothing,
    steps: [step],
    verdict: judged('allowed', 'path.kept-in-pod', sentence),
    target: destinationText(flight),
    arrival: { kind: 'pod', node, flight },
  }
}

function fromOutside(world: JourneyWorld, { entryNode }: WalkQuestion, flight: Flight): Start {
  const place = placeOf(world.places, flight.destination)
  const held = nodeOfPlace(place)
  const node = entryNode ?? held ?? firstFor(world, place)
  if (node === undefined) return stuck('the input has no node at which a packet from outside could come in')
  const chosen =
    entryNode !== undefined
      ? `it comes in at node ${node}`
      : held !== undefined
        ? `${printIp(flight.destination)} is reached at node ${node}`
        : `any node may take it; followed at ${node} (another: --node NAME)`
  const step: WalkStep = {
    at: { hook: 'wire' },
    did: `to node ${node}`,
    because: `${printIp(flight.source)} is outside of the cluster; ${chosen}`,
    packet: walkPacket(flight),
  }
  return { kind: 'stands', arrival: 'outside', standing: { ...nothing, node, way: 'wire', flight, steps: [step] } }
}

function nodeOfPlace(place: Place): string | undefined {
  return place.kind === 'service' || place.kind === 'outside' ? undefined : place.node
}

function firstFor({ setting: { cluster, slices } }: JourneyWorld, place: Place): string | undefined {
  const nodes = [...cluster.nodes.keys()].sort(compareText)
  return (place.kind === 'service' ? localEntry(place.service, slices, nodes) : undefined) ?? nodes[0]
}

type Answering = {
  readonly flight: Flight
  readonly start: Start
  readonly followed: Fate
  readonly given: readonly NodeEntry[]
}

type Answered = { readonly leg: Leg }

function walkAnswer(walk: FlightWalk, { flight, start, followed, given }: Answering): Answered | undefined {
  const { arrival } = followed
  if (arrival === undefined || start.kind === 'stuck' || !hasAnswer(arrival.flight)) return undefined
  const answer = answerOf(arrival.flight)
  if (start.kind === 'stays') return { leg: joinFates([keptInPod(start.pod, start.node, answer)], undefined).leg }
  const state = nodeState([...followed.entries, ...given])
  const standing = answerStart(walk.world, arrival, answer)
  if (standing === undefined) return undefined
  const fates = walkFlight({ ...walk, state }, standing).map((fate) => checkAnswer(fate, { flight, start }))
  return { leg: joinFates(fates, undefined).leg }
}

function answerStart(world: JourneyWorld, { kind, node }: Arrival, answer: Flight): Standing | undefined {
  const packet = walkPacket(answer)
  const because = `it answers ${packet.destination}`
  if (kind === 'outside') {
    const target = placeOf(world.places, answer.destination)
    const entry = nodeOfPlace(target)
    if (entry === undefined) return undefined
    const step: WalkStep = {
      at: { hook: 'wire' },
      did: `answered, to node ${entry}`,
      because: `${because}, which is found there`,
      packet,
    }
    return { ...nothing, node: entry, way: 'wire', flight: answer, steps: [step] }
  }
  if (node === undefined) return undefined
  const place = placeOf(world.places, answer.source)
  const pod = kind === 'pod' && place.kind === 'pod' ? place.pod : undefined
  const device = pod === undefined ? {} : { device: keyOf(pod.meta) }
  const step: WalkStep = {
    at: { node, ...device, hook: kind === 'pod' ? 'pod' : 'process' },
    did: 'answered',
    because,
    packet,
  }
  return {
    ...nothing,
    node,
    way: kind === 'pod' ? 'wire' : 'process',
    flight: answer,
    steps: [step],
    ...(pod !== undefined && { sender: pod }),
  }
}

/** A client takes an answer only from the address that it asked, at the port that it asked from. */
function checkAnswer(fate: Fate, { flight, start }: Pick<Answering, 'flight' | 'start'>): Fate {
  const { arrival } = fate
  if (arrival === undefined || start.kind !== 'stands') return fate
  const wanted = answerOf(flight)
  const got = arrival.flight
  const isSame = isSameIp(got.source, wanted.source) && isSameIp(got.destination, wanted.destination)
  if (isSame && got.sourcePort === wanted.sourcePort && got.port === wanted.port) {
    const sentence = `the answer comes back as ${sourceText(got)} to ${destinationText(got)}, which is what the client asked`
    return { ...fate, verdict: judged('allowed', 'path.answered', sentence) }
  }
  const sentence = `the answer comes back as ${sourceText(got)} to ${destinationText(got)}, where the client waits for ${sourceText(wanted)} to ${destinationText(wanted)}: it does not take it`
  return { ...fate, verdict: judged('dropped', 'path.answer-not-recognised', sentence) }
}

function isCrossed(followed: Fate | undefined, node: string): boolean {
  return followed?.steps.some(({ at }) => at.node === node) ?? false
}

type After = {
  readonly given: readonly NodeEntry[]
  readonly fresh: readonly NodeEntry[]
  readonly followed: Fate | undefined
}

function afterRows({ remembered }: FlightWalk, { given, fresh, followed }: After): readonly StateRow[] {
  const noted = followed?.noted ?? []
  const isNoted = (row: StateRow): boolean =>
    noted.some(
      (one) => one.node === row.node && one.table === row.table && one.row.split(' ')[0] === row.row.split(' ')[0],
    )
  return [
    ...given.filter(({ node }) => isCrossed(followed, node)).map(stateRow),
    ...fresh.map(stateRow),
    ...remembered.filter((row) => isCrossed(followed, row.node) && !isNoted(row)),
    ...noted,
  ]
}

function findingsOf({ setting: { cluster } }: JourneyWorld, followed: Fate | undefined): readonly Finding[] {
  const nodes = new Set((followed?.steps ?? []).flatMap(({ at }) => at.node ?? []))
  const unknown = [...nodes].filter((node) => !cluster.nodes.has(node))
  return [
    ...(followed?.isMasqueradeAssumed === true
      ? [
          journeyFinding(
            'path.assumed-masquerade',
            'that the pod’s address is hidden from the world outside is assumed of the network plugin',
            'give the node’s rules: --ruleset NODE=FILE',
          ),
        ]
      : []),
    ...(cluster.ciliumPolicies.size > 0
      ? [
          journeyFinding(
            'path.cilium-policies',
            `${countOf(cluster.ciliumPolicies.size, 'policy', 'policies')} of Cilium’s in the input ${cluster.ciliumPolicies.size === 1 ? 'is' : 'are'} not asked here, as kube-proxy’s nodes know NetworkPolicies alone`,
            'where Cilium runs, leave --datapath out',
          ),
        ]
      : []),
    ...unknown.map((node) =>
      journeyFinding(
        'path.node-without-object',
        `the packet passes node ${node}, which is no Node of the input: its addresses are not known`,
        'add the Node objects: kubectl get nodes -o json',
      ),
    ),
  ]
}
