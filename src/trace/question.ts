/** What a rule asks of a packet, and the three ways it is answered: known, by chance, or open. */
import type { PortRange } from '#base/port-range'
import type { Prefix } from '#base/prefix'

/**
 * What a question is about. `packet`: something of the packet or its history that the user left open, so both answers
 * are true of some packets. `fact`: one thing that is so or not so on this node, and that the input does not tell.
 */
export type Subject =
  | { readonly kind: 'source-in'; readonly prefix: Prefix }
  | { readonly kind: 'source-port'; readonly range: PortRange }
  | { readonly kind: 'in-interface'; readonly pattern: string }
  | { readonly kind: 'out-interface'; readonly pattern: string; readonly isRerouted: boolean }
  | { readonly kind: 'packet' }
  | { readonly kind: 'fact' }

/** Two questions with one `key` are the same question. `usual` is the answer of the main walk. */
export type Question = {
  readonly key: string
  readonly subject: Subject
  readonly yes: string
  readonly no: string
  readonly usual: boolean
}

/** A question with the answer a path assumes. */
export type Answered = { readonly question: Question; readonly answer: boolean }

/** One test of a rule. `assumed` tells which earlier answer on the same path settled it. */
export type Test =
  | { readonly kind: 'known'; readonly holds: boolean; readonly assumed?: Answered }
  | { readonly kind: 'chance'; readonly share: number }
  | { readonly kind: 'ask'; readonly question: Question; readonly holdsWhen: boolean }

const yes: Test = { kind: 'known', holds: true }
const no: Test = { kind: 'known', holds: false }

export function known(holds: boolean): Test {
  return holds ? yes : no
}

export function ask(question: Question): Test {
  return { kind: 'ask', question, holdsWhen: true }
}

export function negate(test: Test): Test {
  if (test.kind === 'known') {
    return test.assumed === undefined ? known(!test.holds) : { ...test, holds: !test.holds }
  }
  if (test.kind === 'chance') return { kind: 'chance', share: 1 - test.share }
  return { ...test, holdsWhen: !test.holdsWhen }
}

export function negateIf(not: boolean, test: Test): Test {
  return not ? negate(test) : test
}

/** A question that Portolan cannot answer from any input: the outcome is unknown where it decides. */
export function undecidable(what: string): Test {
  return ask({
    key: `fact:${what}`,
    subject: { kind: 'fact' },
    yes: `${what} matches`,
    no: `${what} does not match`,
    usual: false,
  })
}

/** What an answered question says of the packet. */
export function textOf({ question, answer }: Answered): string {
  return answer ? question.yes : question.no
}
