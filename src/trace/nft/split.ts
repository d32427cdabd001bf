/** Splits a path by tests: the part for which all hold, and the parts for which one does not. */
import { assume, type Path } from '../path'
import type { Answered, Test } from '../question'

/** `conditions` are the assumptions that the part rests on, here or earlier on its path. */
export type Part = { readonly path: Path; readonly conditions: readonly Answered[] }

/** Makes each test with the path as it is by then. */
export type MakeTest = (path: Path) => Test

export type Split = { readonly holds: Part | undefined; readonly fails: readonly Part[] }

export function split(start: Part, makeTests: readonly MakeTest[]): Split {
  let { path, conditions } = start
  const fails: Part[] = []
  for (const makeTest of makeTests) {
    const test = makeTest(path)
    if (test.kind === 'known') {
      if (!test.holds) return { holds: undefined, fails: [...fails, { path, conditions }] }
      if (test.assumed !== undefined) conditions = [...conditions, test.assumed]
    } else if (test.kind === 'chance') {
      fails.push({ path: { ...path, share: path.share * (1 - test.share) }, conditions })
      path = { ...path, share: path.share * test.share }
    } else {
      const yes = { question: test.question, answer: test.holdsWhen }
      const no = { question: test.question, answer: !test.holdsWhen }
      fails.push({ path: assume(path, no.question, no.answer), conditions: [...conditions, no] })
      path = assume(path, yes.question, yes.answer)
      conditions = [...conditions, yes]
    }
  }
  return { holds: { path, conditions }, fails }
}
