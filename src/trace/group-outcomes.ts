/** Sorts the outcomes of a walk by what was assumed on the way: the main answer, and those that differ from it. */
import {
  type AnswerTree,
  assumedUnder,
  buildAnswerTree,
  classKeyOf,
  consistentLeaves,
  isConsistent,
  type Leaf,
  touchedLeaves,
} from './answer-tree'
import { printTarget } from './nat-range'
import type { Answered } from './question'
import type { Outcome } from './walk-hooks'

export type { Leaf } from './answer-tree'

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
  const tree = buildAnswerTree(outcomes)
  const own = new Map<string, { unusual: readonly Answered[]; leaves: Leaf[] }>()
  for (const members of tree.classes.values()) {
    const unusual = rootOf(members[0]?.unusual ?? [], tree)
    const key = classKeyOf(unusual)
    const entry = own.get(key)
    if (entry === undefined) own.set(key, { unusual, leaves: [...members] })
    else for (const member of members) entry.leaves.push(member)
  }
  const others = joinEqual(
    tree,
    [...own].filter(([key]) => key !== '').map(([, entry]) => entry),
  )
  const groups = others.slice(0, mostGroups).map((entry) => ({
    ...entry,
    leaves: consistentLeaves(tree, assumedUnder(tree, entry.whens[0] ?? [])),
  }))
  const main = { whens: [[]], leaves: tree.classes.get('') ?? [], own: own.get('')?.leaves ?? [] }
  return { main, others: groups, unlisted: Math.max(0, others.length - mostGroups) }
}

/** Drops assumptions, the latest first, as long as that changes no answer: what remains is what matters. */
function rootOf(unusual: readonly Answered[], tree: AnswerTree): readonly Answered[] {
  let current = unusual
  for (let at = unusual.length - 1; at >= 0; at--) {
    const dropped = unusual[at]
    const fewer = current.filter((one) => one !== dropped)
    if (isSameAnswer(tree, current, fewer)) current = fewer
  }
  return current
}

/** Where few leaves tell two sets of assumptions apart, only those are compared. */
function isSameAnswer(tree: AnswerTree, more: readonly Answered[], fewer: readonly Answered[]): boolean {
  const [a, b] = [assumedUnder(tree, more), assumedUnder(tree, fewer)]
  const touched = touchedLeaves(tree, a, b)
  if (touched === undefined) return answerGiven(tree, more) === answerGiven(tree, fewer)
  const sums = new Map<string, number>()
  for (const leaf of touched) {
    const change = (isConsistent(tree, leaf, a) ? leaf.share : 0) - (isConsistent(tree, leaf, b) ? leaf.share : 0)
    sums.set(resultOf(leaf), (sums.get(resultOf(leaf)) ?? 0) + change)
  }
  return [...sums.values()].every((sum) => Math.abs(sum) < 1e-9)
}

const answerCache = new WeakMap<AnswerTree, Map<string, string>>()

function answerGiven(tree: AnswerTree, given: readonly Answered[]): string {
  let cache = answerCache.get(tree)
  if (cache === undefined) {
    cache = new Map()
    answerCache.set(tree, cache)
  }
  const key = classKeyOf(given)
  let answer = cache.get(key)
  if (answer === undefined) {
    answer = signature({ leaves: consistentLeaves(tree, assumedUnder(tree, given)) })
    cache.set(key, answer)
  }
  return answer
}

/** Two leaves with one result are the same to the user: how it ended, and where it went. */
function resultOf(leaf: Leaf): string {
  let result = results.get(leaf)
  if (result === undefined) {
    result = `${leaf.outcome.kind} ${targetOf(leaf) ?? ''}`
    results.set(leaf, result)
  }
  return result
}

const results = new WeakMap<Leaf, string>()

/** Where a delivered packet was sent; undefined when no rule translated it or it was stopped. */
export function targetOf(leaf: Leaf): string | undefined {
  const { outcome } = leaf
  const { fields } = outcome.path
  if (outcome.kind !== 'delivered') return undefined
  if (fields.proxy !== undefined) return fields.proxy
  return fields.isDnat ? printTarget(fields.destination, fields.destinationPort) : undefined
}

type Joined = { whens: (readonly Answered[])[]; readonly own: Leaf[] }

/** Assumptions that lead to one answer are one group, the fewest first. */
function joinEqual(
  tree: AnswerTree,
  entries: readonly { readonly unusual: readonly Answered[]; readonly leaves: readonly Leaf[] }[],
): readonly Omit<Group, 'leaves'>[] {
  const joined = new Map<string, Joined>()
  for (const { unusual, leaves } of entries) {
    const key = answerGiven(tree, unusual)
    const earlier = joined.get(key)
    if (earlier === undefined) joined.set(key, { whens: [unusual], own: [...leaves] })
    else {
      earlier.whens.push(unusual)
      for (const leaf of leaves) earlier.own.push(leaf)
    }
  }
  const groups = [...joined.values()].map(({ whens, own }) => ({ whens: withoutWider(whens), own }))
  const length = (group: Omit<Group, 'leaves'>): number => Math.min(...group.whens.map((when) => when.length))
  return groups.sort((a, b) => length(a) - length(b))
}

/** A condition that holds with more assumptions than another of the list needs says nothing new. */
function withoutWider(whens: readonly (readonly Answered[])[]): readonly (readonly Answered[])[] {
  const keys = new Set(whens.map(classKeyOf))
  const isWider = (when: readonly Answered[]): boolean =>
    when.length > 1 &&
    when.length <= 6 &&
    when.some(
      (_, at) =>
        keys.has(classKeyOf(when.filter((_one, place) => place !== at))) ||
        keys.has(classKeyOf(when.slice(at, at + 1))),
    )
  return whens.filter((when) => !isWider(when))
}

/** A group's answer as text: results with their shares, in order. */
export function signature(group: { readonly leaves: readonly Leaf[] }): string {
  const sums = new Map<string, number>()
  for (const leaf of group.leaves) {
    const result = resultOf(leaf)
    sums.set(result, (sums.get(result) ?? 0) + leaf.share)
  }
  return [...sums]
    .map(([result, share]) => `${result} ${share.toFixed(9)}`)
    .sort()
    .join('\n')
}
