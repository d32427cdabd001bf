/** What else must be true of a packet for one outcome and not another: a rule passed over leaves no condition behind. */
import { type Leaf, targetOf } from './group-outcomes'
import { answerUnder } from './print-conditions'
import type { Answered } from './question'

/** Leaves by the answers they rest on and by where they were sent: what another endpoint meets is no condition of this one. */
export type LeafIndex = ReadonlyMap<string, readonly Leaf[]>

export function indexByAnswer(leaves: readonly Leaf[]): LeafIndex {
  const index = new Map<string, Leaf[]>()
  for (const leaf of leaves) {
    for (const one of leaf.answers) {
      const key = keyOf(leaf, one, one.answer)
      const list = index.get(key)
      if (list === undefined) index.set(key, [leaf])
      else list.push(leaf)
    }
  }
  return index
}

/**
 * The conditions, and with them those answers about the sender without which one of the others could be meant too. What
 * is asked of the node is told elsewhere, and the usual answer of what the rules remember goes without saying.
 */
export function tellApart(leaf: Leaf, conditions: readonly Answered[], others: LeafIndex): readonly Answered[] {
  const all = [...conditions]
  for (const one of leaf.answers) {
    if (!aboutSender.has(one.question.subject.kind) || answerUnder(all, one.question) !== undefined) continue
    const opposite = others.get(keyOf(leaf, one, !one.answer)) ?? []
    if (opposite.some((other) => mayBe(other, all))) all.push(one)
  }
  return all
}

const aboutSender: ReadonlySet<string> = new Set(['source-in', 'source-port', 'in-interface'])

function keyOf(leaf: Leaf, { question }: Answered, answer: boolean): string {
  return `${targetOf(leaf) ?? ''} ${answer} ${question.key}`
}

function mayBe(leaf: Leaf, conditions: readonly Answered[]): boolean {
  return leaf.answers.every(({ question, answer }) => (answerUnder(conditions, question) ?? answer) === answer)
}
