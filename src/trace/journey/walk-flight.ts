/** A packet from where it stands to where it ends, node after node. */
import { isSameIp, printIp } from '#base/ip'
import { containsIp } from '#base/prefix'
import { keyOf } from '#model/meta'
import type { Pod } from '#model/pod'
import type { StateRow, WalkStep } from '#model/walk'
import { podBehindHostPort } from '../host-port'
import type { Way } from '../path'
import type { Party } from '../policy/party'
import { classOf, partyOfIp } from '../policy/world'
import { type Crossing, crossNode } from './cross-node'
import { type Arrival, type Fate, judged } from './fate'
import { destinationText, type Flight, isError, isIcmp, maybeFirst, sourceText, walkPacket } from './flight'
import type { JourneyWorld } from './journey-world'
import { judgePolicy } from './judge-policy'
import { memoryOf, notedRows } from './memory'
import { netfilterSteps, onTheWayIn } from './netfilter-steps'
import { firstEntry, type NodeEntry, type NodeState } from './node-state'
import { nodeAddress, type Place, placeOf } from './places'

export type FlightWalk = {
  readonly world: JourneyWorld
  readonly state: NodeState
  readonly remembered: readonly StateRow[]
  /** The one to follow where there is a choice. */
  readonly backend?: string
}

/** The packet as it comes to a node: from a pod or a process of it, or off the wire. */
export type Standing = {
  readonly node: string
  readonly way: Way
  readonly flight: Flight
  /** The pod that sends it, on its own node. */
  readonly sender?: Pod
  readonly share: number
  readonly steps: readonly WalkStep[]
  readonly entries: readonly NodeEntry[]
  readonly noted: readonly StateRow[]
  /** Nodes that it has crossed. */
  readonly crossed: number
}

/** A packet that is sent on and on goes in a circle. */
const mostNodes = 8

export function walkFlight(walk: FlightWalk, standing: Standing): readonly Fate[] {
  if (standing.crossed >= mostNodes) {
    return [
      stop(
        standing,
        judged('dropped', 'path.loop', 'nodes send it to each other in a circle until its TTL is used up'),
      ),
    ]
  }
  const { world, state, remembered } = walk
  const { node, way, flight } = standing
  const memory = memoryOf(remembered, flight)
  const crossings = crossNode({ world, node, way, flight, state, memory })
  const isSplit = crossings.length > 1
  const walked = new Map<string, Fate>()
  return crossings.flatMap((crossing) => {
    const key = isSplit ? alikeKey(walk, standing, crossing) : undefined
    const known = key === undefined ? undefined : walked.get(key)
    if (known !== undefined) return [asAlike(known, standing, crossing)]
    const fates = afterNode(walk, standing, { crossing, isSplit })
    const [only, second] = fates
    if (key !== undefined && only !== undefined && second === undefined) walked.set(key, only)
    return fates
  })
}

/**
 * Of endpoints that no policy tells apart, behind nodes whose rules do not ask for them, one is walked for all; that is most
 * of what a Service of many pods would cost. Undefined where each is to be walked.
 */
function alikeKey(
  { world, state, remembered, backend }: FlightWalk,
  from: Standing,
  crossing: Crossing,
): string | undefined {
  const { after, kind, delivered, tracked } = crossing
  const place = placeOf(world.places, after.destination)
  if (kind !== 'delivered' || delivered !== 'forwarded' || tracked !== undefined) return undefined
  if (state.size > 0 || remembered.length > 0 || destinationText(after) === backend) return undefined
  if (place.kind !== 'pod' || place.node === undefined || place.pod === from.sender) return undefined
  if (!world.isPlain(place.node, after)) return undefined
  const { id } = classOf(world.policies, { kind: 'pod', pod: place.pod }, after.destination.family)
  return `${id} ${after.port} ${sourceText(after)} ${place.node === from.node}`
}

/** What is told of it beside the target is told of the one that was walked. */
function asAlike(known: Fate, { share }: Standing, crossing: Crossing): Fate {
  const { target, ...rest } = known
  const own = target === undefined ? {} : { target: destinationText(crossing.after) }
  return { ...rest, ...own, share: share * crossing.share }
}

function stop(
  { share, steps, entries, noted }: Pick<Standing, 'share' | 'steps' | 'entries' | 'noted'>,
  verdict: Fate['verdict'],
  more: Partial<Fate> = {},
): Fate {
  return { share, steps, verdict, entries, noted, ...more }
}

type Crossed = { readonly crossing: Crossing; readonly isSplit: boolean }

function afterNode(walk: FlightWalk, standing: Standing, { crossing, isSplit }: Crossed): readonly Fate[] {
  const { world } = walk
  const { node, flight } = standing
  const share = standing.share * crossing.share
  const mark = (steps: readonly WalkStep[]): readonly WalkStep[] =>
    isSplit || share < 1 - 1e-9 ? steps.map((step) => ({ ...step, share })) : steps
  const hooks = netfilterSteps(world, node, { before: flight, crossing })
  const moved = { ...standing, share, steps: [...standing.steps, ...mark(hooks.before)] }
  const isReplyTracked = crossing.tracked?.isReply === true || crossing.tracked?.isRelated === true
  if (crossing.kind !== 'delivered' || crossing.delivered === 'local') {
    const steps = [...moved.steps, ...mark(hooks.after)]
    if (crossing.kind !== 'delivered') return [stop({ ...moved, steps }, crossing.verdict())]
    return [atProcess(world, { ...keep(moved, crossing), steps }, { after: crossing.after, mark })]
  }
  const moving = onTheWayIn(flight, crossing.after)
  const routed = routingStep(world, node, { flight: moving })
  const steps = [...moved.steps, ...mark([routed.step])]
  const { sender } = standing
  const out = sender === undefined || isReplyTracked ? undefined : egressOf(world, node, { sender, flight: moving })
  const judgedSteps = out === undefined ? steps : [...steps, ...mark([out.step])]
  if (out?.verdict !== undefined) return [stop({ ...moved, steps: judgedSteps }, out.verdict)]
  const gone = { ...keep(moved, crossing), steps: [...judgedSteps, ...mark(hooks.after)] }
  return leaveNode(walk, { standing: gone, after: crossing.after, isReplyTracked, mark })
}

/** A connection is confirmed, and its client noted, once its packet has passed the node's rules. */
function keep(standing: Standing, { after, tracked, hops }: Crossing): Standing {
  const { node, flight } = standing
  return {
    ...standing,
    entries:
      tracked === undefined && maybeFirst(flight)
        ? [...standing.entries, firstEntry(node, flight, after)]
        : standing.entries,
    noted: [...standing.noted, ...notedRows(node, hops, flight)],
  }
}

function egressOf(
  world: JourneyWorld,
  node: string,
  { sender, flight }: { readonly sender: Pod; readonly flight: Flight },
) {
  const source: Party = { kind: 'pod', pod: sender }
  const target = partyOfIp(world.policies, flight.destination)
  return judgePolicy(world, { direction: 'egress', source, target, flight, node, device: keyOf(sender.meta) })
}

function atProcess(world: JourneyWorld, standing: Standing, { after, mark }: Pick<Leaving, 'after' | 'mark'>): Fate {
  const { node } = standing
  const { protocol, port } = after
  const behind = podBehindHostPort(world.setting.cluster, { node, protocol, port })
  if (behind !== undefined && world.rulesOf(node, standing.flight).isComputed) {
    const name = keyOf(behind.meta)
    const sentence = `port ${port} of node ${node} is a hostPort of ${name}, which rules of the network plugin (portmap) translate, and they are not in the input; give them with --ruleset ${node}=FILE`
    const object = { kind: 'Pod', namespace: behind.meta.namespace, name: behind.meta.name }
    return stop(standing, judged('unknown', 'path.host-port', sentence, { object }))
  }
  const sentence = `delivered to node ${node}${whoTakes(after)}`
  const step: WalkStep = {
    at: { node, hook: 'process' },
    did: 'delivered',
    because: `${printIp(after.destination)} is an address of this node`,
    packet: walkPacket(after),
  }
  const arrival: Arrival = { kind: 'process', node, flight: after }
  const steps = [...standing.steps, ...mark([step])]
  return stop({ ...standing, steps }, judged('allowed', 'path.delivered', sentence), {
    arrival,
    target: destinationText(after),
  })
}

function whoTakes(flight: Flight): string {
  if (!isIcmp(flight)) return `: a process must listen on ${destinationText(flight)}`
  return flight.port === (flight.protocol === 'ICMP' ? 8 : 128)
    ? ', whose kernel answers it'
    : ', whose kernel takes it'
}

type Routed = { readonly step: WalkStep }

function routingStep(world: JourneyWorld, node: string, { flight }: { readonly flight: Flight }): Routed {
  const place = placeOf(world.places, flight.destination)
  return {
    step: { at: { node, hook: 'routing' }, ...routeTold(world, node, place, flight), packet: walkPacket(flight) },
  }
}

function routeTold(
  { setting: { cluster } }: JourneyWorld,
  node: string,
  place: Place,
  { destination }: Flight,
): { readonly did: string; readonly because: string } {
  const ip = printIp(destination)
  const via = (peer: string): string => {
    const address = nodeAddress(cluster.nodes.get(peer), destination.family)
    return address === undefined ? `node ${peer}` : `node ${peer} (${printIp(address)})`
  }
  switch (place.kind) {
    case 'pod': {
      const name = keyOf(place.pod.meta)
      if (place.node === undefined)
        return { did: 'not known', because: `${name} has ${ip}, and the input does not tell its node` }
      if (place.node === node) return { did: `to the pod’s interface`, because: `${name} of this node has ${ip}` }
      return { did: `to ${via(place.node)}`, because: `${name} has ${ip} and runs there` }
    }
    case 'node':
      return place.node === node
        ? { did: 'to a process', because: `${ip} is an address of this node` }
        : { did: `to ${via(place.node)}`, because: `${ip} is an address of that node` }
    case 'range':
      return place.node === node
        ? { did: 'to no interface', because: `${ip} is in this node’s pod range ${place.range}, and no pod has it` }
        : { did: `to ${via(place.node)}`, because: `${ip} is in its pod range ${place.range}` }
    case 'service':
      return { did: 'out by the default route', because: `${ip} is a Service’s address, and on no interface` }
    case 'outside':
      return { did: 'out by the default route', because: `${ip} is no address of the cluster` }
    default:
      return place satisfies never
  }
}

type Leaving = {
  readonly standing: Standing
  readonly after: Flight
  readonly isReplyTracked: boolean
  readonly mark: (steps: readonly WalkStep[]) => readonly WalkStep[]
}

function leaveNode(walk: FlightWalk, leaving: Leaving): readonly Fate[] {
  const { standing, after } = leaving
  const { node } = standing
  const place = placeOf(walk.world.places, after.destination)
  const ip = printIp(after.destination)
  switch (place.kind) {
    case 'pod':
      if (place.node === undefined) {
        const sentence = `the input does not tell the node of ${keyOf(place.pod.meta)}, which has ${ip}`
        return [stop(standing, judged('unknown', 'path.unknown-node', sentence))]
      }
      return place.node === node ? [intoPod(walk.world, leaving, place.pod)] : toPeer(walk, leaving, place.node)
    case 'node':
      if (place.node !== node) return toPeer(walk, leaving, place.node)
      return [atProcess(walk.world, standing, leaving)]
    case 'range':
      if (place.node !== node) return toPeer(walk, leaving, place.node)
      return [
        stop(
          standing,
          judged(
            'dropped',
            'path.no-holder',
            `no pod of the input has ${ip}, which is in the pod range ${place.range} of node ${node}: nobody answers, and the node tells that the host is unreachable`,
          ),
        ),
      ]
    case 'service':
      return [lostAtService(standing, place, ip)]
    case 'outside':
      return [outside(walk.world, leaving)]
    default:
      return place satisfies never
  }
}

function toPeer(walk: FlightWalk, { standing, after }: Leaving, node: string): readonly Fate[] {
  return walkFlight(walk, {
    node,
    way: 'wire',
    flight: after,
    share: standing.share,
    steps: standing.steps,
    entries: standing.entries,
    noted: standing.noted,
    crossed: standing.crossed + 1,
  })
}

function intoPod(world: JourneyWorld, { standing, after, isReplyTracked, mark }: Leaving, pod: Pod): Fate {
  const { node } = standing
  const device = keyOf(pod.meta)
  const steps = [...standing.steps]
  if (!isReplyTracked) {
    const source = sourceParty(world, standing, after)
    const { step, verdict } = judgePolicy(world, {
      direction: 'ingress',
      source,
      target: { kind: 'pod', pod },
      flight: after,
      node,
      device,
    })
    steps.push(...mark([step]))
    if (verdict !== undefined) return stop({ ...standing, steps }, verdict)
  }
  const step: WalkStep = {
    at: { node, device, hook: 'pod' },
    did: 'delivered',
    because: isReplyTracked
      ? `policies let ${isError(after) ? 'errors about' : 'the answers of'} a connection through`
      : `${device} has ${printIp(after.destination)}`,
    packet: walkPacket(after),
    object: { kind: 'Pod', namespace: pod.meta.namespace, name: pod.meta.name },
    origin: pod.meta.origin,
  }
  const sentence = `delivered to ${device} on node ${node} as ${sourceText(after)} to ${destinationText(after)}`
  return stop({ ...standing, steps: [...steps, ...mark([step])] }, judged('allowed', 'path.delivered', sentence), {
    arrival: { kind: 'pod', node, flight: after },
    target: destinationText(after),
  })
}

/** A pod that reaches itself is let through as itself, whatever its packet's source has become. */
function sourceParty({ policies }: JourneyWorld, { sender, flight }: Standing, after: Flight): Party {
  if (sender !== undefined && isSameIp(after.destination, flight.source)) return { kind: 'pod', pod: sender }
  return partyOfIp(policies, after.source)
}

function lostAtService(standing: Standing, place: Extract<Place, { kind: 'service' }>, ip: string): Fate {
  const name = keyOf(place.service.meta)
  const object = { kind: 'Service', namespace: place.service.meta.namespace, name: place.service.meta.name }
  if (place.isClusterIp) {
    const sentence = `no rule takes it, and ${ip}, the ClusterIP of ${name}, is on no interface: nothing answers, and the client times out`
    return stop(standing, judged('dropped', 'path.no-rule', sentence, { object }))
  }
  const sentence = place.isProxied
    ? `${ip} of Service ${name} is served by its load balancer (ipMode Proxy), to which it goes; what that does is not in the input`
    : `no rule takes it: it leaves the cluster for ${ip} of Service ${name}, and what is there is not in the input`
  return stop(standing, judged('unknown', 'path.beyond-cluster', sentence, { object }))
}

function outside(world: JourneyWorld, { standing, after, isReplyTracked, mark }: Leaving): Fate {
  const masked = isReplyTracked || !maybeFirst(after) ? undefined : assumedMasquerade(world, standing, after)
  const sent = masked?.after ?? after
  const sentence = `leaves the cluster from node ${standing.node} as ${sourceText(sent)} to ${destinationText(sent)}`
  const step: WalkStep = {
    at: { hook: 'wire' },
    did: 'left the cluster',
    because: `${printIp(sent.destination)} is outside of it`,
    packet: walkPacket(sent),
  }
  const steps = [...standing.steps, ...mark([...(masked === undefined ? [] : [masked.step]), step])]
  const entries = masked === undefined ? standing.entries : [...standing.entries.slice(0, -1), masked.entry]
  return stop({ ...standing, steps, entries }, judged('allowed', 'path.left-cluster', sentence), {
    arrival: { kind: 'outside', flight: sent },
    target: destinationText(sent),
    ...(masked !== undefined && world.unmasked === undefined && { isMasqueradeAssumed: true }),
  })
}

type Masked = { readonly after: Flight; readonly step: WalkStep; readonly entry: NodeEntry }

/** Computed rules are kube-proxy's alone: what hides pods from the world outside is the network plugin's. */
function assumedMasquerade(world: JourneyWorld, standing: Standing, after: Flight): Masked | undefined {
  const { node, sender, flight } = standing
  const { isComputed } = world.rulesOf(node, flight)
  const own = nodeAddress(world.setting.cluster.nodes.get(node), after.source.family)
  if (!isComputed || sender === undefined || own === undefined || !isSameIp(after.source, flight.source))
    return undefined
  if (world.unmasked?.some((prefix) => containsIp(prefix, after.destination)) === true) return undefined
  const sent = { ...after, source: own }
  const by =
    world.unmasked === undefined
      ? 'assumed of the network plugin, whose rules are not in the input (give them with --ruleset NODE=FILE)'
      : 'ip-masq-agent does so for all but its nonMasqueradeCIDRs'
  const step: WalkStep = {
    at: { node, hook: 'POSTROUTING' },
    did: `source becomes ${sourceText(sent)}`,
    because: `the world outside knows no pod: ${by}`,
    packet: walkPacket(sent),
    changes: [{ field: 'source', before: sourceText(after), after: sourceText(sent), by: 'conntrack' }],
  }
  return { after: sent, step, entry: firstEntry(node, flight, sent) }
}
