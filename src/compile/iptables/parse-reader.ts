/** What reading a dump has come to so far, and the ways a line adds to it. */
import type { Finding } from '#base/finding'
import type { Family } from '#base/ip'
import { type FindingCode, rulesetFinding } from './findings'
import type { DraftChain, Group } from './group'
import type { Counters, Variant } from './rule'
import { parseRuleLine, SavedRule } from './saved-rule'
import { isKnownTarget } from './targets'
import { unreadRule } from './unread-rule'

export type Sign = 'list-output' | 'nft-text' | 'legacy-present' | 'nft-present'

export type Reader = {
  readonly file: string
  readonly groups: Group[]
  group: Group | undefined
  /** The chain of the rule before: a damaged line behind it may be one of its rules. */
  latest: DraftChain | undefined
  header: { family?: Family; variant?: Variant }
  readonly findings: Finding[]
  readonly signs: Set<Sign>
  readonly ignored: { line: number; text: string }[]
  ignoredCount: number
}

export function createReader(file: string): Reader {
  return {
    file,
    groups: [],
    group: undefined,
    latest: undefined,
    header: {},
    findings: [],
    signs: new Set(),
    ignored: [],
    ignoredCount: 0,
  }
}

export function tell(
  reader: Reader,
  code: FindingCode,
  told: { readonly line: number; readonly message: string; readonly hint?: string },
): void {
  reader.findings.push(rulesetFinding(code, { ...told, file: reader.file }))
}

export function openGroup(reader: Reader, table: string | undefined, line: number): Group {
  const group: Group = {
    table,
    family: reader.header.family,
    variant: reader.header.variant,
    line,
    chains: new Map(),
    isCommitted: false,
  }
  reader.groups.push(group)
  reader.latest = undefined
  reader.group = group
  return group
}

export function chainOf(reader: Reader, name: string, line: number): DraftChain {
  const group = reader.group ?? openGroup(reader, undefined, line)
  let chain = group.chains.get(name)
  if (chain === undefined) {
    chain = { name, line, rules: [], jumps: [] }
    group.chains.set(name, chain)
  }
  return chain
}

const hint = 'take the dump again; an answer that depends on this rule is unknown'

/** `text` is `-A CHAIN …`. A rule that cannot be read stands in its chain all the same: what it does is not known. */
export function appendRule(reader: Reader, place: { text: string; line: number; counters?: Counters }): void {
  const { text, line } = place
  const { chain: name, parse } = parseRuleLine(text)
  if (name === undefined || name === '') {
    ignoreLine(reader, text, line)
    return
  }
  const chain = chainOf(reader, name, line)
  reader.latest = chain
  if (parse.kind === 'bad') {
    tell(reader, 'ruleset.bad-rule', { line, hint, message: `rule not read, because ${parse.why}: ${excerpt(text)}` })
    chain.rules.push(unreadRule(line, text))
    return
  }
  if (parse.doubt !== undefined) {
    const message = `rule of unknown effect, because ${parse.doubt}: ${excerpt(text)}`
    tell(reader, 'ruleset.bad-rule', { line, hint, message })
  }
  const rule = new SavedRule({ chain: name, parse, text, line, counters: place.counters ?? parse.counters })
  chain.rules.push(rule)
  if (rule.target !== undefined && !isKnownTarget(rule.target)) chain.jumps.push({ target: rule.target, rule })
}

/** Inside a table, a line with a target is what is left of a rule: of the chain of the rule before, as far as can be told. */
export function passOver(reader: Reader, text: string, line: number): void {
  const { group, latest } = reader
  if (group?.table === undefined || latest === undefined || !/(^|\s)-[jg] \S/.test(text)) {
    ignoreLine(reader, text, line)
    return
  }
  tell(reader, 'ruleset.bad-rule', {
    line,
    hint,
    message: `part of a rule, of which the rest is lost: ${excerpt(text)}`,
  })
  latest.rules.push(unreadRule(line, text))
}

export function ignoreLine(reader: Reader, text: string, line: number): void {
  reader.ignoredCount++
  if (reader.ignored.length < 3) reader.ignored.push({ line, text })
}

export function excerpt(text: string): string {
  const shown = text.length > 80 ? `${text.slice(0, 77)}…` : text
  return `\`${shown.replaceAll(/[^\x20-\x7e…]/g, '?')}\``
}
