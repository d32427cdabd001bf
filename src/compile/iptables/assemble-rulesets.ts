/** Joins the groups of a dump into one ruleset for each family and iptables variant, and tells what does not fit together. */
import type { Finding, Parsed } from '#base/finding'
import type { Family } from '#base/ip'
import { rulesetFinding } from './findings'
import type { DraftChain, Group } from './group'
import { builtinChains, type Chain, type Ruleset, type Table, type Variant } from './rule'

type Draft = { family: Family; variant: Variant | undefined; tables: Map<string, Group> }

export function assembleRulesets(groups: readonly Group[], file: string): Parsed<readonly Ruleset[]> {
  const findings: Finding[] = []
  const drafts: Draft[] = []
  const told = groups.map((group) => group.family ?? familyOfRules(group))
  const only = soleFamily(told)
  for (const [index, group] of groups.entries()) {
    const table = group.table ?? guessTable(group, file, findings)
    const family = told[index] ?? only ?? drafts.at(-1)?.family ?? 'ipv4'
    addGroup(drafts, { ...group, table, family }, { file, findings })
  }
  const value = drafts.map(finishRuleset)
  for (const draft of drafts) {
    for (const group of draft.tables.values()) findings.push(...danglingJumps(group, file), ...loops(group, file))
  }
  return { value, findings }
}

/** A table without addresses is of the family that all others of the text are of. */
function soleFamily(families: readonly (Family | undefined)[]): Family | undefined {
  const known = new Set(families.filter((family) => family !== undefined))
  return known.size === 1 ? [...known][0] : undefined
}

function addGroup(drafts: Draft[], group: Group & { table: string; family: Family }, told: Told): void {
  const draft = drafts.find((candidate) => candidate.family === group.family && isSameVariant(candidate, group))
  if (draft === undefined) {
    drafts.push({ family: group.family, variant: group.variant, tables: new Map([[group.table, group]]) })
    return
  }
  draft.variant ??= group.variant
  const earlier = draft.tables.get(group.table)
  if (earlier !== undefined) {
    const message = `table ${group.table} stands here again (first at line ${earlier.line}); the later one is used`
    told.findings.push(rulesetFinding('ruleset.table-twice', { message, file: told.file, line: group.line }))
  }
  draft.tables.set(group.table, group)
}

type Told = { readonly file: string; readonly findings: Finding[] }

function isSameVariant(draft: Draft, group: Group): boolean {
  return draft.variant === undefined || group.variant === undefined || draft.variant === group.variant
}

/** `iptables -S` names no table: its built-in chains tell which one it listed. */
function guessTable(group: Group, file: string, findings: Finding[]): string {
  const builtins = [...group.chains.values()].filter((chain) => chain.policy !== undefined).map((chain) => chain.name)
  const has = (name: string): boolean => builtins.includes(name) || group.chains.has(name)
  let table = 'filter'
  if (has('PREROUTING') && has('FORWARD')) table = 'mangle'
  else if (has('POSTROUTING')) table = 'nat'
  else if (has('PREROUTING')) table = 'raw'
  const message = `these rules name no table; their built-in chains are those of ${table}`
  const hint = 'iptables-save prints all tables with their names'
  findings.push(rulesetFinding('ruleset.table-guessed', { message, file, line: group.line, hint }))
  return table
}

function familyOfRules(group: Group): Family | undefined {
  for (const chain of group.chains.values()) {
    for (const rule of chain.rules) {
      for (const clause of rule.clauses) {
        if (clause.kind === 'source' || clause.kind === 'destination')
          return clause.value.includes(':') ? 'ipv6' : 'ipv4'
        if (clause.kind === 'protocol' && (clause.value === 'ipv6-icmp' || clause.value === 'icmpv6')) return 'ipv6'
      }
      const reject = rule.action?.options.find((option) => option.flag === '--reject-with')?.values[0]
      if (reject !== undefined && reject !== 'tcp-reset') return reject.startsWith('icmp6') ? 'ipv6' : 'ipv4'
    }
  }
  return undefined
}

function finishRuleset(draft: Draft): Ruleset {
  const tables = new Map<string, Table>()
  for (const [name, group] of draft.tables) {
    const chains = new Map<string, Chain>()
    for (const builtin of builtinChains[name] ?? []) {
      chains.set(builtin, { policy: 'ACCEPT', ...(group.chains.get(builtin) ?? emptyChain(builtin)) })
    }
    for (const chain of group.chains.values()) if (!chains.has(chain.name)) chains.set(chain.name, chain)
    tables.set(name, { name, chains })
  }
  return draft.variant === undefined
    ? { family: draft.family, tables }
    : { family: draft.family, variant: draft.variant, tables }
}

function emptyChain(name: string): DraftChain {
  return { name, line: 0, rules: [], jumps: [] }
}

/** Jumps to names that are neither a chain of the table nor a target of iptables: the first of each. */
function danglingJumps(group: Group, file: string): Finding[] {
  const findings: Finding[] = []
  const told = new Set<string>()
  for (const chain of group.chains.values()) {
    for (const { target, rule } of chain.jumps) {
      if (told.has(target) || hasChain(group, target)) continue
      told.add(target)
      const message = `${chain.name} refers to a chain that is not in this dump: ${target} (table ${group.table})`
      const hint = 'the kernel would not have taken this ruleset: the dump is partial, or a line was lost'
      findings.push(rulesetFinding('ruleset.missing-chain', { message, file, line: rule.line ?? 0, hint }))
    }
  }
  return findings
}

function hasChain(group: Group, name: string): boolean {
  return group.chains.has(name) || (builtinChains[group.table ?? '']?.includes(name) ?? false)
}

/** Chains from which a walk comes back to itself; the kernel refuses such a ruleset. */
function loops(group: Group, file: string): Finding[] {
  const findings: Finding[] = []
  const state = new Map<string, 'open' | 'closed'>()
  for (const root of group.chains.keys()) {
    const loop = state.has(root) ? undefined : findLoop(group, root, state)
    if (loop === undefined) continue
    const message = `chain ${loop.chain} jumps to ${loop.target}, which leads back to it (table ${group.table})`
    const hint = 'the kernel refuses a loop: this text was not saved by it; repair the rule'
    findings.push(rulesetFinding('ruleset.loop', { message, file, line: loop.line, hint }))
  }
  return findings
}

type Loop = { readonly chain: string; readonly target: string; readonly line: number }

/** Depth first without recursion: rulesets may nest deeper than the stack. */
function findLoop(group: Group, root: string, state: Map<string, 'open' | 'closed'>): Loop | undefined {
  const stack = [{ name: root, next: 0 }]
  state.set(root, 'open')
  let found: Loop | undefined
  for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
    const jump = group.chains.get(top.name)?.jumps[top.next++]
    if (jump === undefined) {
      state.set(top.name, 'closed')
      stack.pop()
      continue
    }
    const seen = state.get(jump.target)
    if (seen === 'open') found ??= { chain: top.name, target: jump.target, line: jump.rule.line ?? 0 }
    else if (seen === undefined && group.chains.has(jump.target)) {
      state.set(jump.target, 'open')
      stack.push({ name: jump.target, next: 0 })
    }
  }
  return found
}
