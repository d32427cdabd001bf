/** The answers that the outcomes of a walk rest on, as the tree they were given in: which outcomes a set of answers leaves. */
import { bitsOf, prefixOf, printPrefix } from '#base/prefix'
import type { Answers } from './path'
import { answerUnder } from './print-conditions'
import type { Answered, Question } from './question'
import type { Outcome } from './walk-hooks'

/** One outcome with the answers of its path that are not the usual ones, oldest first. */
export type Leaf = {
  readonly outcome: Outcome
  readonly share: number
  readonly unusual: readonly Answered[]
  readonly classKey: string
  /** Its place among the leaves in the tree's order. */
  readonly order: number
  /** All answers of its path, oldest first; made when asked for. */
  readonly answers: readonly Answered[]
}

/** One answer, with the leaves below it: those from `from` to before `to`. */
type Node = {
  readonly answered: Answered
  readonly children: Node[]
  readonly outcomes: Outcome[]
  from: number
  to: number
}

type Asked = { readonly question: Question; readonly nodes: Node[] }

export type AnswerTree = {
  /** In the order of the walk. */
  readonly leaves: readonly Leaf[]
  readonly rank: ReadonlyMap<Outcome, number>
  /** By their `order`. */
  readonly ordered: readonly Leaf[]
  readonly classes: ReadonlyMap<string, readonly Leaf[]>
  readonly asked: ReadonlyMap<string, Asked>
  /** Questions about a source range, by the range. */
  readonly ranges: ReadonlyMap<string, Question>
  /** Questions about interfaces and source ports, of which one may settle another. */
  readonly wide: readonly Question[]
}

export function buildAnswerTree(outcomes: readonly Outcome[]): AnswerTree {
  const roots = growNodes(outcomes)
  const leaves: Leaf[] = []
  const asked = new Map<string, Asked>()
  numberLeaves(roots, leaves, asked)
  const classes = new Map<string, Leaf[]>()
  const rank = new Map(outcomes.map((outcome, at) => [outcome, at]))
  const ranked = [...leaves].sort((a, b) => (rank.get(a.outcome) ?? 0) - (rank.get(b.outcome) ?? 0))
  for (const leaf of ranked) append(classes, leaf.classKey, leaf)
  const questions = [...asked.values()].map((entry) => entry.question)
  const ranges = new Map<string, Question>()
  for (const question of questions) {
    if (question.subject.kind === 'source-in') ranges.set(printPrefix(question.subject.prefix), question)
  }
  const wide = questions.filter(({ subject }) => wideKinds.has(subject.kind))
  return { leaves: ranked, ordered: leaves, classes, rank, asked, ranges, wide }
}

const wideKinds: ReadonlySet<string> = new Set(['source-port', 'in-interface', 'out-interface'])

type Roots = { readonly children: Node[]; readonly outcomes: Outcome[] }

function growNodes(outcomes: readonly Outcome[]): Roots {
  const roots: Roots = { children: [], outcomes: [] }
  const nodes = new Map<Answers, Node>()
  for (const outcome of outcomes) {
    const newest = outcome.path.answers
    if (newest === undefined) {
      roots.outcomes.push(outcome)
      continue
    }
    const fresh: Answers[] = []
    let entry: Answers | undefined = newest
    for (; entry !== undefined && !nodes.has(entry); entry = entry.earlier) fresh.push(entry)
    let above: Roots = (entry === undefined ? undefined : nodes.get(entry)) ?? roots
    for (const answers of fresh.reverse()) {
      const node: Node = { answered: answers, children: [], outcomes: [], from: 0, to: 0 }
      nodes.set(answers, node)
      above.children.push(node)
      above = node
    }
    nodes.get(newest)?.outcomes.push(outcome)
  }
  return roots
}

/** Depth first without recursion: a path may rest on thousands of answers. */
function numberLeaves(roots: Roots, leaves: Leaf[], asked: Map<string, Asked>): void {
  for (const outcome of roots.outcomes) leaves.push(leafOf(outcome, [], leaves.length))
  type Visit = { readonly node: Node; readonly unusual: readonly Answered[]; next: number }
  for (const root of roots.children) {
    const stack: Visit[] = [enter(root, [])]
    for (let top = stack.at(-1); top !== undefined; top = stack.at(-1)) {
      const child = top.node.children[top.next++]
      if (child !== undefined) stack.push(enter(child, top.unusual))
      else {
        top.node.to = leaves.length
        stack.pop()
      }
    }
  }

  function enter(node: Node, above: readonly Answered[]): Visit {
    const { answered } = node
    const unusual = answered.answer === answered.question.usual ? above : [...above, answered]
    node.from = leaves.length
    for (const outcome of node.outcomes) leaves.push(leafOf(outcome, unusual, leaves.length))
    const entry = asked.get(answered.question.key)
    if (entry === undefined) asked.set(answered.question.key, { question: answered.question, nodes: [node] })
    else entry.nodes.push(node)
    return { node, unusual, next: 0 }
  }
}

function leafOf(outcome: Outcome, unusual: readonly Answered[], order: number): Leaf {
  return {
    outcome,
    share: outcome.path.share,
    unusual,
    classKey: classKeyOf(unusual),
    order,
    get answers() {
      const answers: Answered[] = []
      for (let entry = outcome.path.answers; entry !== undefined; entry = entry.earlier) answers.push(entry)
      return answers.reverse()
    },
  }
}

export function classKeyOf(unusual: readonly Answered[]): string {
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

/** The unusual answers that hold when `given` is assumed: those, and what they settle. */
export type Assumed = ReadonlyMap<string, Answered>

export function assumedUnder(tree: AnswerTree, given: readonly Answered[]): Assumed {
  const assumed = new Map(given.map((one) => [one.question.key, one]))
  for (const { question, answer } of given) {
    const { subject } = question
    if (subject.kind === 'source-in' && answer) addWiderRanges(tree, question, assumed)
    if (!wideKinds.has(subject.kind)) continue
    for (const other of tree.wide) {
      const value = assumed.has(other.key) ? undefined : answerUnder(given, other)
      if (value !== undefined && value !== other.usual) assumed.set(other.key, { question: other, answer: value })
    }
  }
  return assumed
}

function addWiderRanges(tree: AnswerTree, { subject }: Question, assumed: Map<string, Answered>): void {
  if (subject.kind !== 'source-in') return
  const { ip, length } = subject.prefix
  for (let wider = Math.min(length, bitsOf(ip.family)) - 1; wider >= 0; wider--) {
    const question = tree.ranges.get(printPrefix(prefixOf(ip, wider)))
    if (question !== undefined && !assumed.has(question.key)) assumed.set(question.key, { question, answer: true })
  }
}

/** The leaves that a packet may end in when the assumed answers hold and all others are the usual ones. */
export function consistentLeaves(tree: AnswerTree, assumed: Assumed): readonly Leaf[] {
  const entries = [...assumed.values()]
  const members =
    entries.length <= 6
      ? subsetsOf(entries).flatMap((subset) => tree.classes.get(classKeyOf(subset)) ?? [])
      : tree.leaves
  const rankOf = (leaf: Leaf): number => tree.rank.get(leaf.outcome) ?? 0
  return members.filter((leaf) => isConsistent(tree, leaf, assumed)).sort((a, b) => rankOf(a) - rankOf(b))
}

/** The leaves that the difference between two sets of assumptions can reach; undefined when those are many. */
export function touchedLeaves(tree: AnswerTree, a: Assumed, b: Assumed): ReadonlySet<Leaf> | undefined {
  const touched = new Set<Leaf>()
  for (const key of new Set([...a.keys(), ...b.keys()])) {
    if (a.get(key)?.answer === b.get(key)?.answer) continue
    for (const node of tree.asked.get(key)?.nodes ?? []) {
      if (touched.size + node.to - node.from > mostTouched) return undefined
      for (let at = node.from; at < node.to; at++) {
        const leaf = tree.ordered[at]
        if (leaf !== undefined) touched.add(leaf)
      }
    }
  }
  return touched
}

const mostTouched = 64

export function isConsistent(tree: AnswerTree, leaf: Leaf, assumed: Assumed): boolean {
  if (!leaf.unusual.every((one) => assumed.get(one.question.key)?.answer === one.answer)) return false
  for (const { question, answer } of assumed.values()) {
    for (const node of tree.asked.get(question.key)?.nodes ?? []) {
      if (node.answered.answer !== answer && leaf.order >= node.from && leaf.order < node.to) return false
    }
  }
  return true
}

function subsetsOf(entries: readonly Answered[]): readonly (readonly Answered[])[] {
  const count = 2 ** entries.length
  return Array.from({ length: count }, (_, bits) => entries.filter((_one, index) => (bits >> index) & 1))
}
