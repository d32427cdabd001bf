/** What one node's hooks did to a packet, a step for each hook that it passed. */
import { printIp } from '#base/ip'
import type { Hop } from '#model/trace'
import type { HeaderChange, WalkStep } from '#model/walk'
import type { Crossing } from './cross-node'
import {
  destinationText,
  type Flight,
  isError,
  isSameDestination,
  isSameSource,
  sourceText,
  walkPacket,
} from './flight'
import type { JourneyWorld } from './journey-world'
import { placeOf } from './places'

export type HookSteps = { readonly before: readonly WalkStep[]; readonly after: readonly WalkStep[] }

/** Destinations change on the way in, sources on the way out; `routing` stands between the two. */
export function netfilterSteps(
  world: JourneyWorld,
  node: string,
  { before, crossing }: { readonly before: Flight; readonly crossing: Crossing },
): HookSteps {
  const groups = groupByHook(crossing.hops)
  const split = groups.findIndex(([hook]) => hook === 'FORWARD' || hook === 'INPUT' || hook === 'POSTROUTING')
  const at = split < 0 ? groups.length : split
  const middle = onTheWayIn(before, crossing.after)
  const step = (flights: readonly [Flight, Flight], isLast: boolean) => (group: HookGroup) =>
    hookStep({ world, node, crossing, flights, isLast }, group)
  const into = groups.slice(0, at).map((group, index) => {
    const isLast = split < 0 && index === at - 1
    return step(changesDestination(group[0]) ? [before, middle] : [before, before], isLast)(group)
  })
  const out = groups.slice(at).map((group, index, all) => {
    const isLast = index === all.length - 1
    return step(isLast && crossing.kind === 'delivered' ? [middle, crossing.after] : [middle, middle], isLast)(group)
  })
  return { before: into, after: out }
}

/** Its destination is the new one, its source still the old; of the packet that an error carries it is the other way round. */
export function onTheWayIn(before: Flight, after: Flight): Flight {
  const { destination, port } = after
  if (before.about === undefined || after.about === undefined) return { ...before, destination, port }
  const { source, sourcePort } = after.about
  return { ...before, destination, port, about: { ...before.about, source, sourcePort } }
}

type HookGroup = readonly [hook: string, hops: readonly Hop[]]

function changesDestination(hook: string): boolean {
  return hook === 'PREROUTING' || hook === 'OUTPUT'
}

/** The rules' own note of routing is left to the step that tells where the packet goes. */
function groupByHook(hops: readonly Hop[]): readonly HookGroup[] {
  const groups: [string, Hop[]][] = []
  for (const hop of hops) {
    if (hop.at.hook === 'routing' && hop.did !== 'dropped') continue
    const last = groups.at(-1)
    if (last?.[0] === hop.at.hook) last[1].push(hop)
    else groups.push([hop.at.hook, [hop]])
  }
  return groups
}

type Told = {
  readonly world: JourneyWorld
  readonly node: string
  readonly crossing: Crossing
  readonly flights: readonly [before: Flight, after: Flight]
  readonly isLast: boolean
}

function hookStep(told: Told, [hook, hops]: HookGroup): WalkStep {
  const { world, node, crossing, flights, isLast } = told
  const [before, after] = flights
  const changes = changesOf(before, after)
  const isStopped = isLast && crossing.kind !== 'delivered'
  const { did, because } = isStopped ? stopped(crossing) : passed(told, changes, hops)
  const service = placeOf(world.places, before.destination)
  return {
    at: { node, hook },
    did,
    because,
    packet: walkPacket(after),
    ...(changes.length > 0 && { changes }),
    ...(service.kind === 'service' &&
      (changes.length > 0 || isStopped) && {
        object: {
          kind: 'Service',
          namespace: service.service.meta.namespace,
          name: service.service.meta.name,
        },
        origin: service.service.meta.origin,
      }),
    hops,
  }
}

function changesOf(before: Flight, after: Flight): readonly HeaderChange[] {
  return [
    ...(isSameSource(before, after)
      ? []
      : [{ field: 'source', before: sourceText(before), after: sourceText(after), by: 'conntrack' }]),
    ...(isSameDestination(before, after)
      ? []
      : [{ field: 'destination', before: destinationText(before), after: destinationText(after), by: 'conntrack' }]),
    ...(before.about === undefined || after.about === undefined
      ? []
      : changesOf(before.about, after.about).map((change) => ({ ...change, field: `${change.field} inside` }))),
  ]
}

function stopped({ kind, verdict }: Crossing): { readonly did: string; readonly because: string } {
  const words = { dropped: 'dropped', rejected: 'rejected', unknown: 'not known', delivered: '' }
  return { did: words[kind], because: verdict().because[0].sentence }
}

function passed(
  told: Told,
  changes: readonly HeaderChange[],
  hops: readonly Hop[],
): { readonly did: string; readonly because: string } {
  const { crossing, flights } = told
  const [before] = flights
  const [change] = changes
  const { tracked } = crossing
  if (change === undefined && tracked === undefined && changesDestination(hops[0]?.at.hook ?? '') && isError(before)) {
    return { did: 'let through', because: 'it is about no connection that this node tracks: INVALID to the rules' }
  }
  if (change === undefined) return { did: 'let through', because: 'no rule of this hook stops or changes it' }
  if (tracked !== undefined) {
    if (tracked.isRelated === true) {
      const because =
        'it is about a connection that this node tracks, and is translated as an answer to what it carries'
      return { did: `${change.field} becomes ${change.after}`, because }
    }
    const what = tracked.isReply ? 'it answers a connection that this node tracks' : 'this node tracks the connection'
    return {
      did: `${change.field} becomes ${change.after}`,
      because: `${what}, and translates each of its packets alike`,
    }
  }
  const because = change.field === 'destination' ? whyDestination(told, hops) : whySource(crossing, hops)
  const word = change.field === 'destination' ? 'sent to' : 'source becomes'
  const from = change.field === 'destination' ? `, for ${printIp(before.destination)}` : ''
  return { did: `${word} ${change.after}${from}`, because }
}

function whyDestination({ crossing, flights: [before] }: Told, hops: readonly Hop[]): string {
  const service = hops.map(serviceNamed).find((name) => name !== undefined)
  const whose = service === undefined ? 'a rule' : `the rules of Service ${service}`
  const which = crossing.share < 1 - 1e-9 ? 'one of the endpoints, chosen at random' : 'the endpoint'
  return `${whose} for ${destinationText(before)}: ${which}`
}

/** kube-proxy names the Service in comments of iptables rules and in names of nftables chains. */
function serviceNamed({ rule = '', at }: Hop): string | undefined {
  const comment = /--comment "?([a-z0-9-]+\/[a-z0-9.-]+)/.exec(rule)?.[1]
  return comment ?? /^(?:service|external|endpoint)-[A-Z0-9]{8}-([a-z0-9-]+\/[a-z0-9.-]+)\//.exec(at.chain ?? '')?.[1]
}

function whySource({ sourceNote }: Crossing, hops: readonly Hop[]): string {
  const rule = hops.findLast(({ did }) => did.startsWith('source'))
  return sourceNote ?? rule?.because ?? 'a rule replaces it'
}
