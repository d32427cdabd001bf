/** Splits a path at a rule: the part that matches it and the part that does not. */
import type { Rule } from '#compile/iptables/rule'
import { testsOf } from './compile-rule'
import { answerOf, assume, type Path } from './path'
import type { Answered, Test } from './question'
import type { Hook } from './view'
import type { World } from './world'

/** `conditions` are those of the rule's tests that rest on what was assumed of the packet, here or earlier on the path. */
export type Matched = { readonly path: Path; readonly conditions: readonly Answered[] }

export type RuleMatch = { readonly matched: readonly Matched[]; readonly unmatched: readonly Path[] }

export type RuleSite = { readonly hook: Hook; readonly table: { readonly name: string }; readonly world: World }

export function matchRule(rule: Rule, path: Path, { hook, table, world }: RuleSite): RuleMatch {
  let matched: Matched[] = [{ path, conditions: [] }]
  const unmatched: Path[] = []
  for (const decide of testsOf(rule)) {
    const next: Matched[] = []
    for (const candidate of matched) {
      const view = { path: candidate.path, fields: candidate.path.fields, hook, table: table.name, world }
      const kept = applyTests(decide(view), candidate, unmatched)
      if (kept !== undefined) next.push(kept)
    }
    if (next.length === 0) return { matched: [], unmatched }
    matched = next
  }
  return { matched, unmatched }
}

function applyTests(tests: readonly Test[], candidate: Matched, unmatched: Path[]): Matched | undefined {
  let { path } = candidate
  let { conditions } = candidate
  for (const test of tests) {
    if (test.kind === 'known') {
      if (!test.holds) {
        unmatched.push(path)
        return undefined
      }
      if (test.assumed !== undefined) conditions = [...conditions, test.assumed]
    } else if (test.kind === 'chance') {
      unmatched.push({ ...path, share: path.share * (1 - test.share) })
      path = { ...path, share: path.share * test.share }
    } else {
      // One question has one answer, however often it is asked on a path.
      const answer = answerOf(path, test.question)
      if (answer === undefined) {
        unmatched.push(assume(path, test.question, !test.holdsWhen))
        path = assume(path, test.question, test.holdsWhen)
      } else if (answer !== test.holdsWhen) {
        unmatched.push(path)
        return undefined
      }
      conditions = [...conditions, { question: test.question, answer: test.holdsWhen }]
    }
  }
  return { path, conditions }
}
