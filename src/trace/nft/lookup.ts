/** Finds a packet's element in a set or map: one where the packet tells, each possible one where it does not. */
import type { Element, Expression } from '#compile/nftables/expression'
import type { Path } from '../path'
import type { Test } from '../question'
import type { View } from '../view'
import { operandsOf } from './operand'
import { fits, type Pattern, parsePattern, printScalar, type ScalarKind } from './scalar'
import { type MakeTest, type Part, split } from './split'
import type { Subject } from './subject'

export type Hit = { readonly part: Part; readonly element: Element }

export type Found = { readonly hits: readonly Hit[]; readonly misses: readonly Part[]; readonly isAbsent: boolean }

/** More possible elements than this are not listed one by one: what is left is taken to be in none. */
const mostAsked = 4096

/** `viewOf` makes the view of a path that grew during the lookup. */
export function lookup(
  part: Part,
  key: Expression,
  at: { readonly elements: readonly Element[]; readonly viewOf: (path: Path) => View },
): Found {
  const subjects = operandsOf(key, at.viewOf(part.path))
  if (subjects.some((subject) => subject.kind === 'absent')) return { hits: [], misses: [part], isAbsent: true }
  const [only] = subjects
  if (subjects.length === 1 && only?.kind === 'chance') return spread(part, only, at.elements)
  const prepared = prepare(at.elements, subjects)
  const hits: Hit[] = []
  const misses: Part[] = []
  let rest: Part | undefined = part
  for (const entry of candidates(prepared, subjects).slice(0, mostAsked)) {
    if (rest === undefined) break
    const tests = testsOf(entry, subjects, at.viewOf)
    const parted = split(rest, tests)
    if (parted.holds !== undefined) hits.push({ part: parted.holds, element: entry.element })
    rest = parted.fails.length <= 1 ? parted.fails[0] : undefined
    if (parted.fails.length > 1) misses.push(...parted.fails)
  }
  if (rest !== undefined) misses.push(rest)
  return { hits, misses, isAbsent: false }
}

function testsOf(entry: Prepared, subjects: readonly Subject[], viewOf: (path: Path) => View): readonly MakeTest[] {
  return subjects.flatMap((subject, index): MakeTest[] => {
    const pattern = entry.patterns[index]
    if (pattern === undefined || subject.kind !== 'open') return []
    return [(path): Test => subject.ask(viewOf(path), pattern)]
  })
}

/** `numgen random mod 3 vmap { 0 : …, 1-2 : … }`: each element has its share of the numbers. */
function spread(
  part: Part,
  subject: Extract<Subject, { readonly kind: 'chance' }>,
  elements: readonly Element[],
): Found {
  const hits: Hit[] = []
  let left = subject.modulus
  for (const element of elements) {
    const pattern = parsePattern(element.key, subject.of)
    const count = pattern === undefined ? 0 : numbersIn(pattern, subject)
    if (count === 0) continue
    left -= count
    hits.push({
      part: { ...part, path: { ...part.path, share: (part.path.share * count) / subject.modulus } },
      element,
    })
  }
  const misses =
    left <= 0 ? [] : [{ ...part, path: { ...part.path, share: (part.path.share * left) / subject.modulus } }]
  return { hits, misses, isAbsent: false }
}

function numbersIn(
  pattern: Pattern,
  { offset, modulus }: { readonly offset: number; readonly modulus: number },
): number {
  if (pattern.kind === 'any') return modulus
  const from = pattern.kind === 'range' ? pattern.from : pattern.kind === 'one' ? pattern.value : undefined
  const to = pattern.kind === 'range' ? pattern.to : from
  if (typeof from !== 'number' || typeof to !== 'number') return 0
  return Math.max(0, Math.min(to, offset + modulus - 1) - Math.max(from, offset) + 1)
}

type Prepared = { readonly element: Element; readonly patterns: readonly Pattern[]; readonly order: number }

/** Elements by the exact values of the parts that a packet tells, and those that ask for more than one value. */
type Index = { readonly exact: ReadonlyMap<string, readonly Prepared[]>; readonly others: readonly Prepared[] }

type PreparedSet = { readonly entries: readonly Prepared[]; readonly indexes: Map<string, Index> }

const preparedSets = new WeakMap<readonly Element[], Map<string, PreparedSet>>()

function prepare(elements: readonly Element[], subjects: readonly Subject[]): PreparedSet {
  const kinds = subjects.map((subject) => (subject.kind === 'absent' ? undefined : subject.of))
  const signature = kinds.map((kind) => (kind?.kind === 'number' ? kind.type : (kind?.kind ?? ''))).join(' ')
  let bySignature = preparedSets.get(elements)
  if (bySignature === undefined) {
    bySignature = new Map()
    preparedSets.set(elements, bySignature)
  }
  let set = bySignature.get(signature)
  if (set === undefined) {
    set = { entries: elements.flatMap((element, order) => prepareElement(element, kinds, order)), indexes: new Map() }
    bySignature.set(signature, set)
  }
  return set
}

function prepareElement(
  element: Element,
  kinds: readonly (ScalarKind | undefined)[],
  order: number,
): readonly Prepared[] {
  const parts = element.key.kind === 'concat' ? element.key.parts : [element.key]
  if (element.key.kind === 'wildcard') return [{ element, patterns: kinds.map(() => ({ kind: 'any' })), order }]
  const patterns = parts.map((part, index) => {
    const kind = kinds[index]
    return kind === undefined ? undefined : parsePattern(part, kind)
  })
  const whole = patterns.filter((pattern) => pattern !== undefined)
  return whole.length === kinds.length && patterns.length === kinds.length ? [{ element, patterns: whole, order }] : []
}

function candidates(set: PreparedSet, subjects: readonly Subject[]): readonly Prepared[] {
  const told = subjects.map((subject) => subject.kind === 'known')
  const mask = told.map((one) => (one ? '1' : '0')).join('')
  let index = set.indexes.get(mask)
  if (index === undefined) {
    index = indexBy(set.entries, told)
    set.indexes.set(mask, index)
  }
  const key = subjects.flatMap((subject) => (subject.kind === 'known' ? [printScalar(subject.value)] : [])).join('|')
  const exact = index.exact.get(key) ?? []
  const others = index.others.filter((entry) =>
    subjects.every((subject, at) => isPossible(subject, entry.patterns[at])),
  )
  return others.length === 0
    ? exact
    : [...exact, ...others].sort((a, b) => Number(isCatchAll(a)) - Number(isCatchAll(b)) || a.order - b.order)
}

function isPossible(subject: Subject, pattern: Pattern | undefined): boolean {
  return pattern !== undefined && (subject.kind !== 'known' || fits(subject.value, pattern))
}

/** `* : drop` is for what no other element takes. */
function isCatchAll(entry: Prepared): boolean {
  return entry.patterns.every((pattern) => pattern.kind === 'any')
}

function indexBy(entries: readonly Prepared[], told: readonly boolean[]): Index {
  const exact = new Map<string, Prepared[]>()
  const others: Prepared[] = []
  for (const entry of entries) {
    const values = entry.patterns.filter((_, index) => told[index])
    const isExact = values.every((pattern) => pattern.kind === 'one' && !String(pattern.value).endsWith('*'))
    if (!isExact) {
      others.push(entry)
      continue
    }
    const key = values.map((pattern) => (pattern.kind === 'one' ? printScalar(pattern.value) : '')).join('|')
    const list = exact.get(key)
    if (list === undefined) exact.set(key, [entry])
    else list.push(entry)
  }
  return { exact, others }
}
