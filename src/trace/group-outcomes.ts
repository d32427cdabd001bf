/** Sorts the outcomes of a walk by what was assumed on the way: the main answer, and those that differ from it. */
import { printTarget } from './nat-range'
import { answerUnder } from './print-conditions'
import type { Answered, Question } from './question'
import type { Outcome } from './walk-hooks'

/** One outcome with the answers of its path that are not the usual ones. */
export type Leaf = {
  readonly outcome: Outcome
  readonly share: number
  /** Oldest first. */
  readonly answers: readonly Answered[]
  readonly unusual: readonly Answered[]
  readonly classKey: string
}

/** Leaves whose assumptions lead to one answer; `whens` are the assumptions, the main group's first one is empty. */
export type Group = {
  readonly whens: readonly (readonly Answered[])[]
  readonly leaves: readonly Leaf[]
  readonly own: readonly Leaf[]
}

/** Beyond this many different answers, further ones are counted and not listed. */
const mostGroups = 200

export type Grouped = { readonly main: Group; readonly others: readonly Group[]; readonly unlisted: number }

export function groupOutcomes(outcomes: readonly Outcome[]): Grouped {
  const leaves = outcomes.map(leafOf)
  const index = indexByQuestion(leaves)
  const classes = new Map<string, Leaf[]>()
  for (const leaf of leaves) append(classes, leaf.classKey, leaf)
  const mainLeaves = classes.get('') ?? []
  const own = new Map<string, { unusual: readonly Answered[]; leaves: Leaf[] }>()
  for (const members of classes.values()) {
    const unusual = rootOf(members[0]?.unusual ?? [], index)
    const key = keyOf(unusual)
    const entry = own.get(key)
    if (entry === undefined) own.set(key, { unusual, leaves: [...members] })
    else entry.leaves.push(...members)
  }
  const others = [...own].filter(([key]) => key !== '')
  const groups = others.slice(0, mostGroups).map(([, entry]) => ({
    whens: [entry.unusual],
    leaves: leaves.filter((leaf) => isConsistent(leaf, entry.unusual)),
    own: entry.leaves,
  }))
  const main = { whens: [[]], leaves: mainLeaves, own: own.get('')?.leaves ?? [] }
  return { main, others: joinEqual(groups), unlisted: Math.max(0, others.length - mostGroups) }
}

function leafOf(outcome: Outcome): Leaf {
  const answers: Answered[] = []
  for (let entry = outcome.path.answers; entry !== undefined; entry = entry.earlier) answers.push(entry)
  answers.reverse()
  const unusual = answers.filter((one) => one.answer !== one.question.usual)
  return { outcome, share: outcome.path.share, answers, unusual, classKey: keyOf(unusual) }
}

function keyOf(unusual: readonly Answered[]): string {
  return unusual
    .map((one) => one.question.key)
    .sort()
    .join('\n')
}

function append<T>(map: Map<string, T[]>, key: string, value: T): void {
  const list = map.get(key)
  if (list === undefined) map.set(key, [value])
  else list.push(value)
}

type Index = ReadonlyMap<string, { readonly question: Question; readonly leaves: readonly Leaf[] }>

function indexByQuestion(leaves: readonly Leaf[]): Index {
  const index = new Map<string, { question: Question; leaves: Leaf[] }>()
  for (const leaf of leaves) {
    for (const { question } of leaf.answers) {
      const entry = index.get(question.key)
      if (entry === undefined) index.set(question.key, { question, leaves: [leaf] })
      else entry.leaves.push(leaf)
    }
  }
  return index
}

/** Drops assumptions, the latest first, as long as that changes no answer: what remains is what matters. */
function rootOf(unusual: readonly Answered[], index: Index): readonly Answered[] {
  let current = unusual
  for (let at = unusual.length - 1; at >= 0; at--) {
    const fewer = current.filter((_, place) => place !== at)
    if (isSameAnswer(current, { fewer, dropped: current[at] }, index)) current = fewer
  }
  return current
}

type Dropped = { readonly fewer: readonly Answered[]; readonly dropped: Answered | undefined }

/** Compares only the leaves that asked a question whose answer the two sets of assumptions give differently. */
function isSameAnswer(more: readonly Answered[], { fewer, dropped }: Dropped, index: Index): boolean {
  if (dropped === undefined) return true
  const touched = new Set<Leaf>()
  for (const question of relatedQuestions(dropped.question, index)) {
    if (valueUnder(more, question) === valueUnder(fewer, question)) continue
    for (const leaf of index.get(question.key)?.leaves ?? []) touched.add(leaf)
  }
  const sums = new Map<string, number>()
  for (const leaf of touched) {
    const key = resultOf(leaf)
    if (isConsistent(leaf, more)) sums.set(key, (sums.get(key) ?? 0) + leaf.share)
    if (isConsistent(leaf, fewer)) sums.set(key, (sums.get(key) ?? 0) - leaf.share)
  }
  return [...sums.values()].every((sum) => Math.abs(sum) < 1e-9)
}

/** Questions that an answer to `question` may settle: itself, and those about the same thing that are wider. */
function relatedQuestions(question: Question, index: Index): readonly Question[] {
  const { subject } = question
  if (subject.kind === 'packet' || subject.kind === 'fact') return [question]
  const related = [question]
  if (subject.kind === 'source-in' && subject.prefix.length > 24) return [question, ...widerSources(question, index)]
  for (const entry of index.values()) {
    if (entry.question.subject.kind === subject.kind && entry.question.key !== question.key)
      related.push(entry.question)
  }
  return related
}

const widerCache = new WeakMap<Index, readonly Question[]>()

/** Ranges, not single addresses: a single address never contains another. */
function widerSources(question: Question, index: Index): readonly Question[] {
  let ranges = widerCache.get(index)
  if (ranges === undefined) {
    ranges = [...index.values()]
      .map((entry) => entry.question)
      .filter((one) => one.subject.kind === 'source-in' && one.key.includes('/'))
    widerCache.set(index, ranges)
  }
  return ranges.filter((one) => one.key !== question.key)
}

function valueUnder(given: readonly Answered[], question: Question): boolean {
  const exact = given.find((one) => one.question.key === question.key)
  return exact === undefined ? (answerUnder(given, question) ?? question.usual) : exact.answer
}

export function isConsistent(leaf: Leaf, given: readonly Answered[]): boolean {
  return leaf.answers.every((one) => valueUnder(given, one.question) === one.answer)
}

/** Two leaves with one result are the same to the user: how it ended, and where it went. */
function resultOf(leaf: Leaf): string {
  return `${leaf.outcome.kind} ${targetOf(leaf) ?? ''}`
}

/** Where a delivered packet was sent; undefined when no rule translated it or it was stopped. */
export function targetOf(leaf: Leaf): string | undefined {
  const { outcome } = leaf
  const { fields } = outcome.path
  if (outcome.kind !== 'delivered') return undefined
  if (fields.proxy !== undefined) return fields.proxy
  return fields.isDnat ? printTarget(fields.destination, fields.destinationPort) : undefined
}

function joinEqual(groups: readonly Group[]): readonly Group[] {
  const joined = new Map<string, Group>()
  for (const group of groups) {
    const key = signature(group)
    const earlier = joined.get(key)
    joined.set(
      key,
      earlier === undefined
        ? group
        : {
            whens: withoutWider([...earlier.whens, ...group.whens]),
            leaves: earlier.leaves,
            own: [...earlier.own, ...group.own],
          },
    )
  }
  const length = (group: Group): number => Math.min(...group.whens.map((when) => when.length))
  return [...joined.values()].sort((a, b) => length(a) - length(b))
}

/** A condition that holds with more assumptions than another of the list needs says nothing new. */
function withoutWider(whens: readonly (readonly Answered[])[]): readonly (readonly Answered[])[] {
  const has = (when: readonly Answered[], one: Answered): boolean =>
    when.some((other) => other.question.key === one.question.key)
  return whens.filter(
    (when) =>
      !whens.some((other) => other !== when && other.length < when.length && other.every((one) => has(when, one))),
  )
}

/** A group's answer as text: results with their shares, in order. */
export function signature(group: { readonly leaves: readonly Leaf[] }): string {
  const sums = new Map<string, number>()
  for (const leaf of group.leaves) sums.set(resultOf(leaf), (sums.get(resultOf(leaf)) ?? 0) + leaf.share)
  return [...sums]
    .map(([result, share]) => `${result} ${share.toFixed(9)}`)
    .sort()
    .join('\n')
}
