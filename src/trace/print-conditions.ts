/** Conditions as a sentence, without those that another one already says. */
import { answerOf, assume, emptyPath } from './path'
import { type Answered, textOf } from './question'

/** `the source is inside 10.244.0.0/16 and it comes in through eth0`; empty text when there is none. */
export function printConditions(conditions: readonly Answered[]): string {
  const unique = conditions.filter((one, index) => conditions.findIndex((other) => isSame(one, other)) === index)
  const needed = unique.filter((one) => !unique.some((other) => !isSame(one, other) && implies(other, one)))
  return needed.map(textOf).join(' and ')
}

function isSame(a: Answered, b: Answered): boolean {
  return a.question.key === b.question.key && a.answer === b.answer
}

function implies(given: Answered, then: Answered): boolean {
  return answerOf(assume(emptyPath, given.question, given.answer), then.question) === then.answer
}

/** What a set of answers says to a question; undefined when it leaves it open. */
export function answerUnder(given: readonly Answered[], question: Answered['question']): boolean | undefined {
  let path = emptyPath
  for (const one of given) path = assume(path, one.question, one.answer)
  return answerOf(path, question)
}
