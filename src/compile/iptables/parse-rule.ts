/** One rule line (`-A CHAIN …`), as `iptables-save`, `iptables -S` and kube-proxy's restore input write it, into a Rule. */
import { doubtOf } from './doubt-clause'
import type { Action, Clause, Counters, HeaderKind, Option } from './rule'

/** `doubt` says why the rule may not do what its clauses say; a clause that nothing can decide is then among them. */
export type RuleParse =
  | {
      readonly kind: 'rule'
      readonly clauses: readonly Clause[]
      readonly action?: Action
      readonly counters?: Counters
      readonly doubt?: string
    }
  | { readonly kind: 'bad'; readonly why: string }

const headerFlags: ReadonlyMap<string, HeaderKind> = new Map([
  ['-s', 'source'],
  ['--source', 'source'],
  ['--src', 'source'],
  ['-d', 'destination'],
  ['--destination', 'destination'],
  ['--dst', 'destination'],
  ['-i', 'in-interface'],
  ['--in-interface', 'in-interface'],
  ['-o', 'out-interface'],
  ['--out-interface', 'out-interface'],
  ['-p', 'protocol'],
  ['--protocol', 'protocol'],
  ['--proto', 'protocol'],
])

/** Options whose one value may begin with a dash or be anything at all. */
const freeText = new Set(['--comment', '--log-prefix', '--nflog-prefix', '--string', '--hex-string', '--ulog-prefix'])

/** Options that `-p tcp --dport 80` may give without `-m tcp`. */
const portFlags = new Set([
  '--dport',
  '--sport',
  '--destination-port',
  '--source-port',
  '--tcp-flags',
  '--syn',
  '--icmp-type',
  '--icmpv6-type',
])

const canonicalFlags: ReadonlyMap<string, string> = new Map([
  ['--destination-port', '--dport'],
  ['--source-port', '--sport'],
])

type Draft = {
  readonly clauses: Clause[]
  options: Option[]
  action?: { kind: 'jump' | 'goto'; target: string; options: Option[] }
  counters?: Counters
}

/** The words of a line, where its clauses begin, and which words are values whatever they look like. */
export type WordsFrom = { readonly from: number; readonly literal: ReadonlySet<number> | undefined }

export function parseRuleWords(words: readonly string[], { from, literal }: WordsFrom): RuleParse {
  const draft: Draft = { clauses: [], options: [] }
  let not = false
  for (let index = from; index < words.length; index++) {
    const word = words[index] ?? ''
    if (word === '!') {
      not = true
      continue
    }
    if (word.charCodeAt(0) !== 45) return bad(`"${word}" stands where an option should`)
    const next = takeWord(draft, { words, literal, index, not })
    if (typeof next === 'string') return bad(next)
    index = next
    not = false
  }
  if (not) return bad('it ends after "!"')
  return finish(draft)
}

function finish({ clauses, action, counters }: Draft): RuleParse {
  const doubt = doubtOf(clauses)
  if (doubt !== undefined) {
    const [flag = '', ...values] = doubt.words
    clauses.push({ kind: 'match', name: 'unreadable', options: [{ flag, not: false, values }] })
  }
  return {
    kind: 'rule',
    clauses,
    ...(action !== undefined && { action }),
    ...(counters !== undefined && { counters }),
    ...(doubt !== undefined && { doubt: doubt.why }),
  }
}

function bad(why: string): RuleParse {
  return { kind: 'bad', why }
}

type Place = {
  readonly words: readonly string[]
  readonly literal: ReadonlySet<number> | undefined
  readonly index: number
  readonly not: boolean
}

/** Takes one flag with its values; returns the index of the last word used, or why it cannot be read. */
function takeWord(draft: Draft, place: Place): number | string {
  const { words, index, not } = place
  const flag = words[index] ?? ''
  const header = headerFlags.get(flag)
  if (header !== undefined) return takeHeader(draft, place, header)
  if (flag === '-m' || flag === '--match') {
    const name = words[index + 1]
    if (name === undefined) return `it ends after "${flag}"`
    draft.options = []
    draft.clauses.push({ kind: 'match', name, options: draft.options })
    return index + 1
  }
  if (flag === '-j' || flag === '--jump' || flag === '-g' || flag === '--goto') {
    const target = words[index + 1]
    if (target === undefined || target === '') return `it ends after "${flag}"`
    const kind = flag === '-j' || flag === '--jump' ? 'jump' : 'goto'
    draft.action = { kind, target, options: [] }
    draft.options = draft.action.options
    return index + 1
  }
  if (flag === '-c' || flag === '--set-counters') return takeCounters(draft, place)
  if (flag === '-f' || flag === '--fragment') {
    draft.clauses.push({ kind: 'fragment', not, value: '' })
    return index
  }
  return takeOption(draft, place)
}

/** `iptables -vS` prints `-c PACKETS BYTES` inside the rule. */
function takeCounters(draft: Draft, { words, index }: Place): number | string {
  const [packets = '', bytes = ''] = words.slice(index + 1, index + 3)
  if (!/^\d+$/.test(packets) || !/^\d+$/.test(bytes)) return `"${words[index]}" is not followed by two counters`
  draft.counters = { packets: Number(packets), bytes: Number(bytes) }
  return index + 2
}

function takeHeader(draft: Draft, place: Place, kind: HeaderKind): number | string {
  const flag = place.words[place.index]
  let { not } = place
  let index = place.index + 1
  if (place.words[index] === '!') {
    not = true
    index++
  }
  const value = place.words[index]
  if (value === undefined || value === '') return `it ends after "${flag}"`
  const why = checkHeader(kind, value)
  if (why !== undefined) return why
  draft.clauses.push({ kind, not, value })
  return index
}

const ipv4Text = /^(\d{1,3}\.){3}\d{1,3}(\/(\d{1,2}|(\d{1,3}\.){3}\d{1,3}))?$/
const ipv6Text = /^[0-9a-fA-F:]+(\d{1,3}(\.\d{1,3}){3})?(\/(\d{1,3}|[0-9a-fA-F:]+))?$/

function checkHeader(kind: HeaderKind, value: string): string | undefined {
  if (kind !== 'source' && kind !== 'destination') return undefined
  const isAddress = value.includes(':') ? ipv6Text.test(value) : ipv4Text.test(value)
  return isAddress ? undefined : `"${value}" is not an address`
}

function takeOption(draft: Draft, place: Place): number | string {
  const { words, literal, not } = place
  const written = words[place.index] ?? ''
  const flag = canonicalFlags.get(written) ?? written
  if (draft.action === undefined && portFlags.has(written)) openImplicitMatch(draft)
  if (draft.action === undefined && draft.clauses.every((clause) => clause.kind !== 'match')) {
    return `"${written}" belongs to no match`
  }
  let index = place.index
  const values: string[] = []
  if (freeText.has(flag)) {
    const value = words[++index]
    if (value === undefined) return `it ends after "${written}"`
    values.push(value)
  } else {
    let isNegatedLate = false
    while (index + 1 < words.length) {
      const word = words[index + 1] ?? ''
      const isValue = literal?.has(index + 1) ?? false
      if (!isValue && word === '!' && values.length === 0 && words[index + 2]?.charCodeAt(0) !== 45)
        isNegatedLate = true
      else if (!isValue && (word === '!' || word.charCodeAt(0) === 45)) break
      else values.push(word)
      index++
    }
    draft.options.push({ flag, not: not || isNegatedLate, values })
    return index
  }
  draft.options.push({ flag, not, values })
  return index
}

/** `-p tcp --dport 80` loads the match of the protocol's name, as iptables does. */
function openImplicitMatch(draft: Draft): void {
  const last = draft.clauses.findLast((clause) => clause.kind === 'match')
  if (last?.kind === 'match' && ['tcp', 'udp', 'sctp', 'icmp', 'icmp6', 'dccp', 'udplite'].includes(last.name)) return
  const isOpen = draft.clauses.some((clause) => clause.kind === 'match' && clause.options === draft.options)
  if (isOpen && last?.kind === 'match' && last.name === 'multiport') return
  const protocol = draft.clauses.find((clause) => clause.kind === 'protocol')
  if (protocol?.kind !== 'protocol') return
  draft.options = []
  draft.clauses.push({ kind: 'match', name: implicitMatchOf(protocol.value), options: draft.options })
}

function implicitMatchOf(protocol: string): string {
  if (protocol === '6') return 'tcp'
  if (protocol === '17') return 'udp'
  if (protocol === '132') return 'sctp'
  return protocol === 'icmpv6' || protocol === 'ipv6-icmp' ? 'icmp6' : protocol
}
