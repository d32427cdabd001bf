/** Random rulesets in the style of those that people write: any match and target, chains that jump and go to others. */
import type { Family } from '#base/ip'
import { builtinChains } from '#compile/iptables/rule'
import type { Hook } from '#trace/view'
import { type Random, randomOf } from './random'
import { randomMark } from './random-addresses'
import { randomAskingMatch, randomMatch } from './random-matches'
import { randomSets } from './random-sets'
import { randomTarget } from './random-targets'
import type { RulePlace, RuleProtocol } from './rule-place'

export type ChainSketch = { readonly name: string; readonly policy: string; readonly rules: readonly string[] }
export type TableSketch = { readonly name: string; readonly chains: readonly ChainSketch[] }
export type RulesetSketch = {
  readonly seed: number
  readonly family: Family
  /** For `ipset restore`. */
  readonly sets: string
  readonly tables: readonly TableSketch[]
}

/** More matches of the kind that splits a walk would make too many paths. */
const mostAsking = 5

export function randomRuleset(seed: number, family: Family): RulesetSketch {
  const random = randomOf(seed)
  const sets = randomSets(random, family)
  const names = ['raw', 'mangle', 'nat', 'filter', 'security'].filter(
    (name) => name === 'filter' || random.chance(name === 'security' ? 0.3 : 0.75),
  )
  const asking = { left: mostAsking }
  return { seed, family, sets, tables: names.map((name) => randomTable(random, { family, name, asking })) }
}

/** Every table that iptables has: what the sketch leaves out is emptied. */
export function printRuleset({ tables }: RulesetSketch): string {
  const lines = Object.keys(builtinChains).flatMap((name) => {
    const chains = tables.find((table) => table.name === name)?.chains ?? []
    const declared = chains.map((chain) => `:${chain.name} ${chain.policy} [0:0]`)
    const rules = chains.flatMap((chain) => chain.rules.map((rule) => `-A ${chain.name} ${rule}`.trimEnd()))
    return [`*${name}`, ...declared, ...rules, 'COMMIT']
  })
  return `${lines.join('\n')}\n`
}

/** The sketch without each table, each chain's rules, or each single rule: the ways a failing case is made smaller. */
export function smallerRulesets(sketch: RulesetSketch): readonly RulesetSketch[] {
  const { tables } = sketch
  const without = (keep: (chain: ChainSketch, rule: number, table: TableSketch) => boolean): RulesetSketch => ({
    ...sketch,
    tables: tables.map((table) => ({
      ...table,
      chains: table.chains.map((chain) => ({ ...chain, rules: chain.rules.filter((_, at) => keep(chain, at, table)) })),
    })),
  })
  const withRules = tables.flatMap((table) => table.chains.filter((chain) => chain.rules.length > 0))
  return [
    ...tables.map((gone) => ({ ...sketch, tables: tables.filter((table) => table !== gone) })),
    ...withRules.filter((gone) => gone.rules.length > 1).map((gone) => without((chain) => chain !== gone)),
    ...withRules.flatMap((gone) => gone.rules.map((_, at) => without((chain, rule) => chain !== gone || rule !== at))),
  ]
}

type Asking = { left: number }
type TablePlace = { readonly family: Family; readonly name: string; readonly asking: Asking }
type OpenChain = { readonly name: string; readonly hooks: readonly Hook[]; readonly isBuiltin: boolean }

/** Source and destination translation are for different hooks, so their chains are kept apart. */
function hookGroups(table: string): readonly [readonly Hook[], ...(readonly Hook[])[]] {
  const hooks = (builtinChains[table] ?? []) as readonly Hook[]
  if (table === 'nat') return [['PREROUTING', 'OUTPUT'], ['POSTROUTING'], ['INPUT']]
  return [hooks, ...hooks.map((hook) => [hook])]
}

function randomTable(random: Random, { family, name, asking }: TablePlace): TableSketch {
  const user = Array.from({ length: random.between(1, 4) }, (_, at): OpenChain => {
    return { name: `USER-${at}`, hooks: random.pick(hookGroups(name)), isBuiltin: false }
  })
  const builtin = (builtinChains[name] ?? []).map((hook): OpenChain => {
    return { name: hook, hooks: [hook as Hook], isBuiltin: true }
  })
  const chains = [...builtin, ...user].map((chain): ChainSketch => {
    // A chain jumps only to later ones, so that no loop comes about.
    const inner = user.filter((one) => chain.isBuiltin || user.indexOf(one) > user.indexOf(chain))
    const reachable = inner.filter((one) => chain.hooks.every((hook) => one.hooks.includes(hook)))
    // Long chains are entered by an index of their own.
    const count = random.chance(0.06) ? random.between(33, 45) : random.between(0, 5)
    const rules = Array.from({ length: count }, () =>
      randomRule(random, { family, table: name, chain, reachable, asking }),
    )
    // Marks are seldom met by chance: many packets get one as they come in.
    const marks =
      chain.isBuiltin && name === 'mangle' && random.chance(0.4) ? [`-j MARK --set-mark ${randomMark(random)}`] : []
    const isDropping = chain.isBuiltin && name !== 'nat' && random.chance(0.02)
    return {
      name: chain.name,
      policy: chain.isBuiltin ? (isDropping ? 'DROP' : 'ACCEPT') : '-',
      rules: [...marks, ...rules],
    }
  })
  return { name, chains }
}

type RuleSite = {
  readonly family: Family
  readonly table: string
  readonly chain: OpenChain
  readonly reachable: readonly OpenChain[]
  readonly asking: Asking
}

function randomRule(random: Random, { family, table, chain, reachable, asking }: RuleSite): string {
  const protocol = random.pick<RuleProtocol>([undefined, undefined, 'tcp', 'tcp', 'udp', 'sctp', 'icmp'])
  const place: RulePlace = { family, table, hooks: chain.hooks, isBuiltin: chain.isBuiltin, protocol }
  const matches = Array.from({ length: random.pick([0, 1, 1, 1, 2, 3]) }, () => {
    if (asking.left <= 0 || random.chance(0.85)) return randomMatch(random, place)
    asking.left--
    return randomAskingMatch(random, place)
  })
  const jump = random.pickFrom(reachable)
  const target =
    jump !== undefined && random.chance(0.4)
      ? `${random.chance(0.75) ? '-j' : '-g'} ${jump.name}`
      : randomTarget(random, place)
  return [headerOf(random, place), ...onceEach(matches), target].filter((part) => part !== '').join(' ')
}

/** iptables takes `-s`, `-d`, `-i` and `-o` once in a rule, and joins two matches of one protocol in what it saves. */
function onceEach(matches: readonly string[]): readonly string[] {
  const kindOf = (match: string): string => match.replace('connmark', 'mark').match(onceOnly)?.[1] ?? match
  return [...new Map(matches.map((match) => [kindOf(match), match])).values()]
}

const onceOnly = /^(?:! )?(-[sdio] |-m (?:tcp|udp|sctp|icmp6?|policy|mark) )/

function headerOf(random: Random, { protocol, family }: RulePlace): string {
  if (protocol !== undefined) return `-p ${protocol === 'icmp' && family === 'ipv6' ? 'ipv6-icmp' : protocol}`
  return random.chance(0.1) ? `! -p ${random.pick(['tcp', 'udp'])}` : ''
}
