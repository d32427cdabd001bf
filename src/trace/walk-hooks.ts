/** Takes a packet through netfilter's hooks and tables in the kernel's order, and through the routing decision between them. */
import { type Ip, isSameIp, printIp } from '#base/ip'
import { containsIp } from '#base/prefix'
import type { Ruleset, Table } from '#compile/iptables/rule'
import { destinationIsLocal } from './matches/address'
import { type Fields, type HopEvent, type Path, withHop } from './path'
import type { Hook } from './view'
import { walkBaseChain } from './walk-chain'
import { isBroadcast, isLocal, isMulticast, type World } from './world'

/** `delivered`: how the packet left the rules alive. */
export type Outcome = {
  readonly path: Path
  readonly kind: 'delivered' | 'dropped' | 'rejected' | 'unknown'
  readonly delivered?: 'forwarded' | 'local' | 'sent'
}

export type HookWalk = {
  readonly world: World
  /** Rulesets of the packet's family: a node may hold one of each iptables variant. */
  readonly rulesets: readonly Ruleset[]
  /** What the user said of the outgoing interface; it wins over what the rules tell. */
  readonly outInterface: string | undefined
  readonly budget: { left: number }
  readonly mayMerge: boolean
}

/**
 * Tables at each hook by priority (netfilter_ipv4.h: raw −300, mangle −150, nat −100, filter 0, security 50, source nat 100).
 * iptables-nft hangs security at 150 (iptables/nft.c), which makes a difference where nat is between the two.
 */
const order: Readonly<Record<Hook, readonly string[]>> = {
  PREROUTING: ['raw', 'mangle', 'nat'],
  INPUT: ['mangle', 'filter', 'legacy security', 'nat', 'nf_tables security'],
  FORWARD: ['mangle', 'filter', 'security'],
  OUTPUT: ['raw', 'mangle', 'nat', 'filter', 'security'],
  POSTROUTING: ['mangle', 'nat'],
}

export function walkHooks(walk: HookWalk, start: Path): readonly Outcome[] {
  return start.fields.way === 'wire' ? walkFromWire(walk, start) : walkFromProcess(walk, start)
}

function walkFromWire(walk: HookWalk, start: Path): readonly Outcome[] {
  const arrived = walkTables(walk, 'PREROUTING', [start])
  const outcomes = [...arrived.ended]
  for (const path of arrived.live) {
    const routed = route(walk, path)
    if (routed.isLocal) outcomes.push(...finish(walkTables(walk, 'INPUT', [routed.path]), 'local'))
    else {
      const forwarded = walkTables(walk, 'FORWARD', [routed.path])
      outcomes.push(...forwarded.ended, ...finish(walkTables(walk, 'POSTROUTING', forwarded.live), 'forwarded'))
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
  const sent = walkTables(walk, 'OUTPUT', [first])
  const outcomes = [...sent.ended]
  for (const path of sent.live) {
    const isLoop = destinationStands(walk, path)
    const isRerouted = !isSameIp(path.fields.destination, start.fields.destination)
    const routed = { ...path, fields: { ...path.fields, isRerouted } }
    const left = walkTables(walk, 'POSTROUTING', [setOut(walk, routed, isLoop)])
    if (!isLoop) {
      outcomes.push(...finish(left, 'sent'))
      continue
    }
    const looped = left.live.map((one) => ({ ...one, fields: { ...one.fields, inInterface: 'lo' } }))
    const back = walkTables(walk, 'PREROUTING', looped, ['raw', 'mangle'])
    const inside = walkTables(walk, 'INPUT', back.live, ['mangle', 'filter', 'security'])
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

function walkTables(walk: HookWalk, hook: Hook, starts: readonly Path[], tables = order[hook]): Walked {
  let live = starts
  const ended: Outcome[] = []
  for (const table of tables) {
    const next: Path[] = []
    for (const path of live) {
      for (const walked of walkTable(walk, { hook, table }, path)) {
        if (walked.end === undefined || walked.end.kind === 'accept') next.push({ ...walked, end: undefined })
        else ended.push({ path: walked, kind: kindOf(walked.end.kind) })
      }
    }
    live = next
  }
  return { live, ended }
}

function kindOf(end: 'drop' | 'reject' | 'unknown'): 'dropped' | 'rejected' | 'unknown' {
  if (end === 'drop') return 'dropped'
  return end === 'reject' ? 'rejected' : 'unknown'
}

type TableAt = { readonly hook: Hook; readonly table: string }

/** Both variants' tables hang on the same hook; of two nat tables, the first that translates decides. */
function walkTable(walk: HookWalk, at: TableAt, path: Path): readonly Path[] {
  let paths: readonly Path[] = [path]
  for (const ruleset of walk.rulesets) {
    const table = tableAt(ruleset, at)
    const chain = table?.chains.get(at.hook)
    if (table === undefined || chain === undefined) continue
    const next: Path[] = []
    for (const one of paths) {
      const isOver = one.end !== undefined && one.end.kind !== 'accept'
      if (isOver || (at.table === 'nat' && isTranslated(one, path))) next.push(one)
      else if (at.table === 'nat' && !isNatConsulted(one.fields)) next.push(withHop(one, natNote(at, one.fields)))
      else {
        const tableWalk = { world: walk.world, hook: at.hook, table, budget: walk.budget, mayMerge: walk.mayMerge }
        next.push(...walkBaseChain(tableWalk, chain, { ...one, end: undefined }))
      }
    }
    paths = next
  }
  return paths
}

function tableAt(ruleset: Ruleset, at: TableAt): Table | undefined {
  const [name = '', variant] = at.table.split(' ').reverse()
  return variant === undefined || variant === (ruleset.variant ?? 'nf_tables') ? ruleset.tables.get(name) : undefined
}

function isTranslated(path: Path, before: Path): boolean {
  return path.fields.isDnat !== before.fields.isDnat || path.fields.isSnat !== before.fields.isSnat
}

/** Only a connection's first packet meets the nat table; RELATED ones do unless they are ICMP errors (nf_nat_core.c). */
function isNatConsulted(fields: Fields): boolean {
  const isIcmp = fields.protocol === 'icmp' || fields.protocol === 'icmpv6'
  return fields.state === 'NEW' || (fields.state === 'RELATED' && !isIcmp)
}

function natNote(at: TableAt, fields: Fields): HopEvent {
  const because =
    fields.state === 'UNTRACKED' || fields.state === 'INVALID'
      ? `an ${fields.state} packet is not translated`
      : 'the connection was translated by its first packet, and conntrack repeats that'
  return { hook: at.hook, table: 'nat', kind: 'note', did: 'nat not consulted', because }
}

/**
 * INPUT for the node's own addresses and for those of many receivers, which only a multicast router forwards; FORWARD for
 * others, and for an address whose place is not known unless the path assumed it local.
 */
function route(walk: HookWalk, path: Path): { readonly path: Path; readonly isLocal: boolean } {
  const { destination } = path.fields
  const test = destinationIsLocal({ path, fields: path.fields, hook: 'PREROUTING', table: '', world: walk.world })
  const isOwn = isMulticast(destination) || isBroadcast(destination) || (test.kind === 'known' && test.holds)
  const text = printIp(destination)
  const [did, because] = isOwn
    ? ['delivered to this node', whyDelivered(path, text)]
    : ['forwarded', whyForwarded(test.kind === 'known', text)]
  const routed = withHop(path, { hook: 'routing', kind: 'note', did, because })
  return { path: isOwn ? routed : setOut(walk, routed, false), isLocal: isOwn }
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
