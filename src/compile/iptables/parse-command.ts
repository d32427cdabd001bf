/** Lines of a ruleset that begin with a command: `-A`, and what `iptables -S` and scripts for iptables-restore use beside it. */
import type { DraftChain, Group } from './group'
import { normalizeRule } from './normalize-rule'
import { appendRule, chainOf, excerpt, ignoreLine, openGroup, passOver, type Reader, tell } from './parse-reader'
import type { Rule } from './rule'
import { parseRuleLine } from './saved-rule'

export function applyCommand(reader: Reader, text: string, line: number): void {
  if (text.startsWith('-A ')) {
    appendRule(reader, { text, line })
    return
  }
  const [command = '', name, value] = text.split(/\s+/)
  if (name === undefined && command !== '-F' && command !== '-X') ignoreLine(reader, text, line)
  else if (command === '-P' && name !== undefined && value !== undefined) setPolicy(reader, { name, value, text, line })
  else if (command === '-N' && name !== undefined) addChain(reader, name, line)
  else if (command === '-X') deleteChains(reader, name, { text, line })
  else if (command === '-F') flush(reader, name, { text, line })
  else if (command === '-I') insert(reader, text, line)
  else if (command === '-D') deleteRule(reader, text, line)
  else if (command === '-R') replace(reader, text, line)
  else passOver(reader, text, line)
}

/** `iptables -S` names no table: a policy that is there already, or comes after rules, is another table's. */
function setPolicy(reader: Reader, given: { name: string; value: string; text: string; line: number }): void {
  const { name, value, text, line } = given
  const { group } = reader
  if (group !== undefined && group.table === undefined) {
    const isFirst = name === 'PREROUTING' && group.chains.size > 0
    if (isFirst || hasRules(group) || group.chains.get(name)?.policy !== undefined) openGroup(reader, undefined, line)
  }
  const chain = chainOf(reader, name, line)
  chain.policy = value
  const counters = /\s-c (\d+) (\d+)$/.exec(text)
  if (counters !== null) chain.counters = { packets: Number(counters[1]), bytes: Number(counters[2]) }
}

function addChain(reader: Reader, name: string, line: number): void {
  const { group } = reader
  if (group !== undefined && group.table === undefined && hasRules(group)) openGroup(reader, undefined, line)
  chainOf(reader, name, line)
}

function hasRules(group: Group): boolean {
  for (const chain of group.chains.values()) if (chain.rules.length > 0) return true
  return false
}

type Place = { readonly text: string; readonly line: number }

/** `-X` without a name deletes every chain that is empty and has no policy. */
function deleteChains(reader: Reader, name: string | undefined, place: Place): void {
  const chains = reader.group?.chains
  if (name === undefined) {
    for (const chain of [...(chains?.values() ?? [])]) {
      if (chain.policy === undefined && chain.rules.length === 0) chains?.delete(chain.name)
    }
    return
  }
  const chain = chains?.get(name)
  if (chain === undefined) tellUnapplied(reader, place, 'there is no such chain')
  else if (chain.rules.length > 0) tellUnapplied(reader, place, 'the chain has rules')
  else chains?.delete(name)
}

function flush(reader: Reader, name: string | undefined, place: Place): void {
  const chains = reader.group?.chains
  const chain = name === undefined ? undefined : chains?.get(name)
  if (name !== undefined && chain === undefined) tellUnapplied(reader, place, 'there is no such chain')
  for (const one of name === undefined ? (chains?.values() ?? []) : chain === undefined ? [] : [chain]) {
    one.rules.splice(0)
    one.jumps.splice(0)
  }
}

/** `-I CHAIN [N] …`: at place N, the first when there is none. */
function insert(reader: Reader, text: string, line: number): void {
  const match = /^-I (\S+) (?:(\d+) )?(.*)$/.exec(text)
  if (match === null) {
    tellUnapplied(reader, { text, line }, 'it cannot be read')
    return
  }
  const chain = chainOf(reader, match[1] ?? '', line)
  const at = Number(match[2] ?? 1)
  if (at < 1 || at > chain.rules.length + 1) {
    tellUnapplied(reader, { text, line }, `the chain has ${chain.rules.length} rules`)
    return
  }
  const added = takeAppended(reader, chain, { text: `-A ${match[1]} ${match[3]}`, line })
  if (added !== undefined) chain.rules.splice(at - 1, 0, added)
}

/** The rule of a line, read as if it were appended. */
function takeAppended(reader: Reader, chain: DraftChain, place: Place): Rule | undefined {
  const before = chain.rules.length
  appendRule(reader, place)
  return chain.rules.length > before ? chain.rules.pop() : undefined
}

function replace(reader: Reader, text: string, line: number): void {
  const match = /^-R (\S+) (\d+) (.*)$/.exec(text)
  const chain = reader.group?.chains.get(match?.[1] ?? '')
  const at = Number(match?.[2] ?? 0)
  const old = chain?.rules[at - 1]
  if (match === null || chain === undefined || old === undefined) {
    tellUnapplied(reader, { text, line }, 'there is no such rule')
    return
  }
  const added = takeAppended(reader, chain, { text: `-A ${match[1]} ${match[3]}`, line })
  if (added === undefined) return
  forget(chain, old)
  chain.rules.splice(at - 1, 1, added)
}

/** `-D CHAIN N`, or `-D CHAIN …` for the first rule that says the same. */
function deleteRule(reader: Reader, text: string, line: number): void {
  const [, name = '', number] = /^-D (\S+) (?:(\d+)$)?/.exec(text) ?? []
  const chain = reader.group?.chains.get(name)
  const rules = chain?.rules ?? []
  const at = number === undefined ? indexOfSame(reader, rules, text) : Number(number) - 1
  const old = rules[at]
  if (chain === undefined || old === undefined) {
    tellUnapplied(reader, { text, line }, 'there is no such rule')
    return
  }
  forget(chain, old)
  chain.rules.splice(at, 1)
}

function forget(chain: DraftChain, rule: Rule): void {
  const at = chain.jumps.findIndex((jump) => jump.rule === rule)
  if (at >= 0) chain.jumps.splice(at, 1)
}

function indexOfSame(reader: Reader, rules: readonly Rule[], text: string): number {
  const { parse } = parseRuleLine(text)
  if (parse.kind === 'bad') return -1
  const family = reader.group?.family ?? (text.includes('::') ? 'ipv6' : 'ipv4')
  const keyOf = (rule: Rule): string => {
    const { clauses, action } = normalizeRule(rule, family)
    return JSON.stringify([clauses, action])
  }
  const wanted = keyOf(parse.action === undefined ? { clauses: parse.clauses } : parse)
  return rules.findIndex((rule) => keyOf(rule) === wanted)
}

function tellUnapplied(reader: Reader, { text, line }: Place, why: string): void {
  const hint = 'iptables-restore would refuse the whole table'
  tell(reader, 'ruleset.not-applied', { line, hint, message: `not applied, because ${why}: ${excerpt(text)}` })
}
