/** Small pieces that rules are made of, each in the form the kernel gives back. */
import { constant, type Expression, type Verdict } from './expression'
import type { Match, Rule, Statement } from './statement'

export function payload(protocol: string, field: string): Expression {
  return { kind: 'payload', protocol, field }
}

export function meta(key: string): Expression {
  return { kind: 'meta', key }
}

export function concat(...parts: readonly Expression[]): Expression {
  return { kind: 'concat', parts }
}

export function reference(set: string): Expression {
  return { kind: 'reference', set }
}

export function matches(left: Expression, right: Expression, operator: Match['operator'] = '=='): Match {
  return { kind: 'match', operator, left, right }
}

export function jump(target: string): Verdict {
  return { kind: 'jump', target }
}

export function goTo(target: string): Verdict {
  return { kind: 'goto', target }
}

export function rule(...statements: readonly Statement[]): Rule {
  return { statements }
}

export function commented(comment: string, ...statements: readonly Statement[]): Rule {
  return { statements, comment }
}

/** `ct state new`. */
export const isNew = matches({ kind: 'ct', key: 'state' }, constant('new'), 'in')

/** `fib saddr type local`: a process of this node sends. */
export const isFromNode = matches({ kind: 'fib', result: 'type', flags: ['saddr'] }, constant('local'))

/** `fib daddr type local`. */
export const isForNode = matches({ kind: 'fib', result: 'type', flags: ['daddr'] }, constant('local'))

export const masquerade: Statement = { kind: 'masquerade', isPrefix: false, flags: ['fully-random'] }

/** `meta mark set meta mark | M`. */
export function changeMark(operator: '|' | '^', mark: number): Statement {
  const value: Expression = { kind: 'binary', operator, left: meta('mark'), right: constant(mark) }
  return { kind: 'mangle', key: meta('mark'), value }
}

/** `meta mark & M == 0`, or `!= 0`. Of the highest bit nft makes a prefix: `meta mark 0x00000000/1`. */
export function hasMark(mark: number, operator: '==' | '!='): Match {
  if (mark === 2 ** 31) return matches(meta('mark'), { kind: 'prefix', address: constant(0), length: 1 }, operator)
  const left: Expression = { kind: 'binary', operator: '&', left: meta('mark'), right: constant(mark) }
  return matches(left, constant(0), operator)
}
