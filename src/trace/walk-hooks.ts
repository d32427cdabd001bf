/** Takes a packet through netfilter's hooks and tables in the kernel's order, and through the routing decision between them. */
import { type Ip, isSameIp, printIp } from '#base/ip'
import { containsIp } from '#base/prefix'
import type { EntryWalk, HookEntry } from './hook-entries'
import { isLoopbackOfWire, routeLocalnet, whyMartian } from './martian'
import { destinationIsLocal } from './matches/address'
import { assume, type Fields, type HopEvent, type Path, withHop } from './path'
import type { Question } from './question'
import type { Hook } from './view'
import { isBroadcast, isLocal, isMulticast, type World } from './world'

/** `delivered`: how the packet left the rules alive. */
export type Outcome = {
  readonly path: Path
  readonly kind: 'delivered' | 'dropped' | 'rejected' | 'unknown'
  readonly delivered?: 'forwarded' | 'local' | 'sent'
}

export type HookWalk = EntryWalk & {
  /** In the kernel's order. */
  readonly entries: readonly HookEntry[]
  /** What the user said of the outgoing interface; it wins over what the rules tell. */
  readonly outInterface: string | undefined
}

export function walkHooks(walk: HookWalk, start: Path): readonly Outcome[] {
  return start.fields.way === 'wire' ? walkFromWire(walk, start) : walkFromProcess(walk, start)
}

function walkFromWire(walk: HookWalk, start: Path): readonly Outcome[] {
  const taken = walkEntries(walk, 'INGRESS', [start])
  const arrived = walkEntries(walk, 'PREROUTING', taken.live)
  const outcomes = [...taken.ended, ...arrived.ended]
  for (const path of arrived.live) {
    for (const routed of route(walk, path)) {
      if (routed.kind === 'martian') outcomes.push({ path: routed.path, kind: 'dropped' })
      else if (routed.kind === 'local') outcomes.push(...finish(walkEntries(walk, 'INPUT', [routed.path]), 'local'))
      else {
        const forwarded = walkEntries(walk, 'FORWARD', [routed.path])
        outcomes.push(...forwarded.ended, ...finish(walkEntries(walk, 'POSTROUTING', forwarded.live), 'forwarded'))
      }
    }
  }
  return outcomes
}

/**
 * All of OUTPUT sees the interface that was chosen for the first destination; after it the routes are asked again
 * (nf_nat_proto.c nf_nat_ipv4_local_fn). A local packet for a local address comes back in through `lo`; its connection
 * keeps the translation it has.
 */
function walkFromProcess(walk: HookWalk, start: Path): readonly Outcome[] {
  const first = setOut(walk, start, destinationStands(walk, start))
  const sent = walkEntries(walk, 'OUTPUT', [first])
  const outcomes = [...sent.ended]
  for (const path of sent.live) {
    const isLoop = destinationStands(walk, path)
    const isRerouted = !isSameIp(path.fields.destination, start.fields.destination)
    const routed = { ...path, fields: { ...path.fields, isRerouted } }
    const left = walkEntries(walk, 'POSTROUTING', [setOut(walk, routed, isLoop)])
    if (!isLoop) {
      outcomes.push(...finish(left, 'sent'))
      continue
    }
    const looped = left.live.map((one) => ({ ...one, fields: { ...one.fields, inInterface: 'lo' } }))
    const back = walkEntries(walk, 'PREROUTING', looped, withoutNat)
    const inside = walkEntries(walk, 'INPUT', back.live, withoutNat)
    outcomes.push(...left.ended, ...back.ended, ...finish(inside, 'local'))
  }
  return outcomes
}

function destinationStands(walk: HookWalk, path: Path): boolean {
  return path.fields.isRedirected || isLocal(walk.world, path.fields.destination) === true
}

type Walked = { readonly live: readonly Path[]; readonly ended: readonly Outcome[] }

function finish(walked: Walked, delivered: 'forwarded' | 'local' | 'sent'): readonly Outcome[] {
  return [...walked.ended, ...walked.live.map((path): Outcome => ({ path, kind: 'delivered', delivered }))]
}

const withoutNat = (entry: HookEntry): boolean => !entry.isNat

function walkEntries(
  walk: HookWalk,
  hook: Hook,
  starts: readonly Path[],
  isWanted: (entry: HookEntry) => boolean = () => true,
): Walked {
  const ended: Outcome[] = []
  let live: readonly Path[] = starts
  for (const group of groupNat(walk.entries.filter((entry) => entry.hook === hook && isWanted(entry)))) {
    const next: Path[] = []
    for (const path of live) {
      for (const walked of walkGroup(walk, group, path)) {
        if (walked.end === undefined || walked.end.kind === 'accept') next.push({ ...walked, end: undefined })
        else ended.push({ path: walked, kind: kindOf(walked.end.kind) })
      }
    }
    live = next
  }
  return { live, ended }
}

/** Neighbouring nat chains are one group: the first that translates decides for all. */
function groupNat(entries: readonly HookEntry[]): readonly (readonly HookEntry[])[] {
  const groups: HookEntry[][] = []
  for (const entry of entries) {
    const last = groups.at(-1)
    if (entry.isNat && last?.[0]?.isNat === true) last.push(entry)
    else groups.push([entry])
  }
  return groups
}

function kindOf(end: 'drop' | 'reject' | 'unknown'): 'dropped' | 'rejected' | 'unknown' {
  if (end === 'drop') return 'dropped'
  return end === 'reject' ? 'rejected' : 'unknown'
}

function walkGroup(walk: HookWalk, group: readonly HookEntry[], start: Path): readonly Path[] {
  let paths: readonly Path[] = [start]
  for (const entry of group) {
    paths = paths.flatMap((path) => {
      const isOver = path.end !== undefined && path.end.kind !== 'accept'
      if (isOver || (entry.isNat && isTranslated(path, start))) return [path]
      if (entry.isNat && !isNatConsulted(path.fields)) return [withHop(path, natNote(entry, path.fields))]
      return entry.walk(walk, { ...path, end: undefined })
    })
  }
  return paths
}

function isTranslated(path: Path, before: Path): boolean {
  return path.fields.isDnat !== before.fields.isDnat || path.fields.isSnat !== before.fields.isSnat
}

/** Only a connection's first packet meets the nat table; RELATED ones do unless they are ICMP errors (nf_nat_core.c). */
function isNatConsulted(fields: Fields): boolean {
  const isIcmp = fields.protocol === 'icmp' || fields.protocol === 'icmpv6'
  return fields.state === 'NEW' || (fields.state === 'RELATED' && !isIcmp)
}

function natNote({ hook, table }: HookEntry, fields: Fields): HopEvent {
  const because =
    fields.state === 'UNTRACKED' || fields.state === 'INVALID'
      ? `an ${fields.state} packet is not translated`
      : 'the connection was translated by its first packet, and conntrack repeats that'
  return { hook, table, kind: 'note', did: 'nat not consulted', because }
}

type Routed = { readonly path: Path; readonly kind: 'local' | 'forwarded' | 'martian' }

/**
 * INPUT for the node's own addresses and for those of many receivers, which only a multicast router forwards; FORWARD for
 * others. For an address whose place is not known both: the main answer is the forwarded packet's.
 */
function route(walk: HookWalk, path: Path): readonly Routed[] {
  const martian = whyMartian(walk.world, path.fields)
  if (martian !== undefined) return [refuse(path, martian)]
  const { destination } = path.fields
  if (isLoopbackOfWire(path.fields) && walk.world.takesLoopback !== true) {
    const why = `a martian: ${printIp(destination)} is not reached from outside unless route_localnet is set`
    return [refuse(assume(path, routeLocalnet, false), why), deliver(assume(path, routeLocalnet, true))]
  }
  if (isMulticast(destination) || isBroadcast(destination)) return [deliver(path)]
  const test = destinationIsLocal({ path, fields: path.fields, hook: 'PREROUTING', table: '', world: walk.world })
  if (test.kind === 'known') return [test.holds ? deliver(path) : forward(walk, path, true)]
  if (test.kind === 'chance') return [forward(walk, path, false)]
  const question: Question = { ...test.question, key: `routed-${test.question.key}`, subject: { kind: 'packet' } }
  return [forward(walk, assume(path, question, false), false), deliver(assume(path, question, true))]
}

function refuse(path: Path, because: string): Routed {
  const hop: HopEvent = { hook: 'routing', kind: 'note', did: 'dropped', because }
  return { path: { ...withHop(path, hop), end: { kind: 'drop', place: hop } }, kind: 'martian' }
}

function deliver(path: Path): Routed {
  const because = whyDelivered(path, printIp(path.fields.destination))
  return {
    path: withHop(path, { hook: 'routing', kind: 'note', did: 'delivered to this node', because }),
    kind: 'local',
  }
}

function forward(walk: HookWalk, path: Path, isKnown: boolean): Routed {
  const because = whyForwarded(isKnown, printIp(path.fields.destination))
  const routed = withHop(path, { hook: 'routing', kind: 'note', did: 'forwarded', because })
  return { path: setOut(walk, routed, false), kind: 'forwarded' }
}

function whyDelivered({ fields }: Path, text: string): string {
  if (fields.isRedirected) return 'a rule redirected it'
  if (isMulticast(fields.destination)) return `${text} is a group, and a process of the node may have joined it`
  return isBroadcast(fields.destination) ? `${text} is for every node` : `${text} is an address of this node`
}

function whyForwarded(isKnown: boolean, text: string): string {
  return isKnown
    ? `${text} is not an address of this node`
    : `${text} is taken for an address elsewhere: the node's own addresses were not given`
}

function setOut(walk: HookWalk, path: Path, isLoop: boolean): Path {
  const out = isLoop ? 'lo' : (walk.outInterface ?? routeFor(walk.world, path.fields.destination))
  return { ...path, fields: { ...path.fields, outInterface: out } }
}

/** The interface that the longest known range of an address lies behind. */
export function routeFor(world: World, ip: Ip): string | undefined {
  let best: World['routes'][number] | undefined
  for (const entry of world.routes) {
    if (containsIp(entry.prefix, ip) && entry.prefix.length > (best?.prefix.length ?? -1)) best = entry
  }
  return best?.interface
}
