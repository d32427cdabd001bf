/** What the kernel calls at each hook, in its order: iptables' built-in chains and nftables' base chains. */
import type { Family } from '#base/ip'
import type { Ruleset as IptablesRuleset } from '#compile/iptables/rule'
import type { BaseChain, Chain, Ruleset as NftRuleset, Table } from '#compile/nftables/ruleset'
import { inInterfaceIs } from './ask-source'
import { type Part, split } from './nft/split'
import { tableName, walkNftBase } from './nft/walk-nft-chain'
import type { Path } from './path'
import type { Hook, View } from './view'
import { walkBaseChain } from './walk-chain'
import type { World } from './world'

/** What a walk through one entry may spend. */
export type EntryWalk = { readonly world: World; readonly budget: { left: number }; readonly mayMerge: boolean }

export type HookEntry = {
  readonly hook: Hook
  readonly priority: number
  /** As notes name it. */
  readonly table: string
  /** Chains of type nat hang on conntrack, which calls them for a connection's first packet alone. */
  readonly isNat: boolean
  readonly walk: (walk: EntryWalk, path: Path) => readonly Path[]
}

const hooks: readonly Hook[] = ['INGRESS', 'PREROUTING', 'INPUT', 'FORWARD', 'OUTPUT', 'POSTROUTING']

/** netfilter_ipv4.h; iptables-nft hangs security at 150 (iptables/nft.c), which matters where nat is between the two. */
function iptablesPriority(table: string, hook: Hook, isLegacy: boolean): number | undefined {
  if (table === 'nat') return natPriority(hook)
  if (table === 'security') return isLegacy ? 50 : 150
  return { raw: -300, mangle: -150, filter: 0 }[table]
}

/** Conntrack calls destination translation at −100 and source translation at 100, whatever a chain's own priority. */
function natPriority(hook: Hook): number {
  return hook === 'PREROUTING' || hook === 'OUTPUT' ? -100 : 100
}

export function iptablesEntries(rulesets: readonly IptablesRuleset[]): readonly HookEntry[] {
  return rulesets.flatMap((ruleset) => {
    const known = hung.get(ruleset) ?? hangRuleset(ruleset)
    hung.set(ruleset, known)
    return known
  })
}

/** Many packets are walked through one ruleset. */
const hung = new WeakMap<IptablesRuleset, readonly HookEntry[]>()

function hangRuleset(ruleset: IptablesRuleset): readonly HookEntry[] {
  const entries: HookEntry[] = []
  for (const table of ruleset.tables.values()) {
    for (const hook of hooks) {
      const chain = table.chains.get(hook)
      const priority = iptablesPriority(table.name, hook, ruleset.variant === 'legacy')
      if (chain === undefined || priority === undefined) continue
      const walk: HookEntry['walk'] = (entryWalk, path) => walkBaseChain({ ...entryWalk, hook, table }, chain, path)
      entries.push({ hook, priority, table: table.name, isNat: table.name === 'nat', walk })
    }
  }
  return entries
}

const nftFamilies: Readonly<Record<Family, readonly string[]>> = {
  ipv4: ['ip', 'inet', 'netdev'],
  ipv6: ['ip6', 'inet', 'netdev'],
}

/** Of chains with one priority the kernel calls the newest first (nf_hook_entries_grow in netfilter/core.c). */
export function nftEntries(ruleset: NftRuleset, family: Family): readonly HookEntry[] {
  const entries: HookEntry[] = []
  for (const table of ruleset.tables.values()) {
    if (!nftFamilies[family].includes(table.family) || table.flags.includes('dormant')) continue
    for (const chain of table.chains.values()) {
      const entry = chain.base === undefined ? undefined : nftEntry(table, chain, chain.base)
      if (entry !== undefined) entries.unshift(entry)
    }
  }
  return entries
}

function nftEntry(table: Table, chain: Chain, base: BaseChain): HookEntry | undefined {
  const hook = hooks.find((name) => name.toLowerCase() === base.hook)
  if (hook === undefined) return undefined
  const isNat = base.type === 'nat'
  // Ingress comes before connection tracking, whatever the chain's own priority.
  const order = hook === 'INGRESS' ? beforeTracking : base.priority
  const walkAll: HookEntry['walk'] = (walk, path) => walkNftBase({ ...walk, hook, table, priority: order }, chain, path)
  return {
    hook,
    priority: isNat ? natPriority(hook) : base.priority,
    table: tableName(table),
    isNat,
    walk: hook === 'INGRESS' ? (walk, path) => walkDevices(walk, path, { devices: base.devices, walkAll }) : walkAll,
  }
}

const beforeTracking = -1000

type Ingress = { readonly devices: readonly string[]; readonly walkAll: HookEntry['walk'] }

/** A chain of ingress is called for what comes in through its devices; the rest passes it by. */
function walkDevices(walk: EntryWalk, start: Path, { devices, walkAll }: Ingress): readonly Path[] {
  const walked: Path[] = []
  let rest: readonly Part[] = [{ path: start, conditions: [] }]
  for (const device of devices) {
    const next: Part[] = []
    for (const part of rest) {
      const { holds, fails } = split(part, [(path) => inInterfaceIs(viewOf(walk, path), device)])
      if (holds !== undefined) walked.push(...walkAll(walk, holds.path))
      next.push(...fails)
    }
    rest = next
  }
  return [...walked, ...rest.map((part) => part.path)]
}

function viewOf({ world }: EntryWalk, path: Path): View {
  return { path, fields: path.fields, hook: 'INGRESS', table: 'raw', world }
}

/** Stable: entries of one priority stay as they were given. */
export function sortEntries(entries: readonly HookEntry[]): readonly HookEntry[] {
  return [...entries].sort((a, b) => a.priority - b.priority)
}
