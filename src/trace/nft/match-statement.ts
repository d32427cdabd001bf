/** `ip daddr 10.0.0.0/8`, `ct state { new }`, `tcp dport != @ports`: a comparison that a rule goes on from, or does not. */
import type { Element, Expression } from '#compile/nftables/expression'
import type { NamedSet } from '#compile/nftables/ruleset'
import type { Match } from '#compile/nftables/statement'
import type { Path } from '../path'
import { known, negate, type Test } from '../question'
import type { View } from '../view'
import { askPacket } from './ask-packet'
import { lookup } from './lookup'
import { constantOf, operandsOf } from './operand'
import { compare, fits, type Pattern, parsePattern, type ScalarKind } from './scalar'
import { type Part, split } from './split'
import type { Subject } from './subject'

export type Sets = ReadonlyMap<string, NamedSet>
export type At = { readonly viewOf: (path: Path) => View; readonly sets: Sets }

export type Matched = { readonly goesOn: readonly Part[]; readonly leaves: readonly Part[] }

export function matchStatement(match: Match, part: Part, at: At): Matched {
  const elements = elementsOf(match.right, at.sets)
  if (elements === 'missing') return open(match, part, at)
  if (elements !== undefined) return matchSet(match, part, { ...at, elements })
  const [subject, second] = operandsOf(match.left, at.viewOf(part.path))
  if (subject === undefined || second !== undefined) return open(match, part, at)
  if (subject.kind === 'absent') return { goesOn: [], leaves: [part] }
  const parted = split(part, [(path) => compareTest(match, subject, at.viewOf(path))])
  return { goesOn: parted.holds === undefined ? [] : [parted.holds], leaves: parted.fails }
}

/** The elements of an anonymous set or of a named one; `missing` for a name that the table does not have, or has not told. */
export function elementsOf(expression: Expression, sets: Sets): readonly Element[] | 'missing' | undefined {
  if (expression.kind === 'set') return expression.elements
  if (expression.kind !== 'reference') return undefined
  const set = sets.get(expression.set)
  return set === undefined || set.isTerse === true ? 'missing' : set.elements
}

function open(match: Match, part: Part, at: At): Matched {
  const name = match.right.kind === 'reference' ? `@${match.right.set}` : match.right.kind
  const parted = split(part, [(path) => askPacket(at.viewOf(path), { what: `a match with ${name}`, subject: 'fact' })])
  return { goesOn: parted.holds === undefined ? [] : [parted.holds], leaves: parted.fails }
}

function matchSet(match: Match, part: Part, at: At & { readonly elements: readonly Element[] }): Matched {
  const flags = flagsTest(match, part, at)
  if (flags !== undefined) return flags
  const found = lookup(part, match.left, { elements: at.elements, viewOf: at.viewOf })
  if (found.isAbsent) return { goesOn: [], leaves: [part] }
  const dynamic = found.hits.length === 0 ? dynamicQuestion(match, part, at) : undefined
  if (dynamic !== undefined) return dynamic
  const hits = found.hits.map((hit) => hit.part)
  return match.operator === '!=' ? { goesOn: found.misses, leaves: hits } : { goesOn: hits, leaves: found.misses }
}

/** `ct state { established, related }` compares bits: the packet has one state, and any of them will do. */
function flagsTest(match: Match, part: Part, at: At & { readonly elements: readonly Element[] }): Matched | undefined {
  const [subject] = operandsOf(match.left, at.viewOf(part.path))
  if (subject?.kind !== 'known' || subject.of.kind !== 'number' || subject.of.type !== 'ct_state') return undefined
  const { value } = subject
  const holds = at.elements.some((element) => {
    const bits = constantOf(element.key, subject.of)
    return typeof value === 'number' && bits !== undefined && (bits & value) !== 0
  })
  return holds !== (match.operator === '!=') ? { goesOn: [part], leaves: [] } : { goesOn: [], leaves: [part] }
}

/** A set that rules fill remembers clients: a dump shows those of its moment, and the usual client is none. */
function dynamicQuestion(match: Match, part: Part, at: At): Matched | undefined {
  if (match.right.kind !== 'reference') return undefined
  const name = match.right.set
  const isDynamic = at.sets.get(name)?.flags.includes('dynamic') ?? false
  if (!isDynamic) return undefined
  const parted = split(part, [
    (path) => askPacket(at.viewOf(path), { what: `the client is in set ${name}`, subject: 'packet' }),
  ])
  const goesOn = parted.holds === undefined ? [] : [parted.holds]
  return match.operator === '!=' ? { goesOn: parted.fails, leaves: goesOn } : { goesOn, leaves: parted.fails }
}

function compareTest(match: Match, subject: Exclude<Subject, { readonly kind: 'absent' }>, view: View): Test {
  if (subject.kind === 'chance') return chanceTest(match, subject)
  if (subject.kind === 'known' && subject.of.kind === 'number' && typeof subject.value === 'number') {
    const prefix = prefixTest(match, subject.value, subject.of)
    if (prefix !== undefined) return prefix
    const bits = constantOf(match.right, subject.of)
    if (bits !== undefined) return known(compareBits(match, subject.value, { bits, type: subject.of.type }))
  }
  const pattern = parsePattern(match.right, subject.of)
  if (pattern === undefined) return askPacket(view, { what: `a comparison with ${match.right.kind}`, subject: 'fact' })
  const test =
    subject.kind === 'known' ? known(holds(match.operator, subject.value, pattern)) : subject.ask(view, pattern)
  return (match.operator === '!=' || match.operator === '!') && subject.kind === 'open' ? negate(test) : test
}

/** `meta mark 0x00000000/1`: the leading bits of a number, which is how nft lists a test of its highest bit. */
function prefixTest(match: Match, value: number, kind: ScalarKind): Test | undefined {
  if (match.right.kind !== 'prefix') return undefined
  const wanted = constantOf(match.right.address, kind)
  if (wanted === undefined) return undefined
  const mask = match.right.length === 0 ? 0 : (0xffffffff << (32 - match.right.length)) >>> 0
  return known((((value ^ wanted) & mask) === 0) === (match.operator !== '!='))
}

/** Flags are told by `in`, and by `==` where the listing leaves the operator out (`ct state new`). */
function compareBits(
  match: Match,
  value: number,
  { bits, type }: { readonly bits: number; readonly type: string },
): boolean {
  const isFlags = type === 'ct_state' || type === 'ct_status'
  if (match.operator === '!') return (value & bits) === 0
  if (match.operator === 'in' || (isFlags && match.operator === '==')) return (value & bits) !== 0
  if (isFlags && match.operator === '!=') return (value & bits) === 0
  return holds(match.operator, value, { kind: 'one', value: bits })
}

function holds(operator: Match['operator'], value: Parameters<typeof fits>[0], pattern: Pattern): boolean {
  if (operator === '==' || operator === 'in') return fits(value, pattern)
  if (operator === '!=' || operator === '!') return !fits(value, pattern)
  const order = pattern.kind === 'one' ? compare(value, pattern.value) : Number.NaN
  if (operator === '<') return order < 0
  if (operator === '>') return order > 0
  return operator === '<=' ? order <= 0 : order >= 0
}

function chanceTest(match: Match, { modulus, offset, of }: Extract<Subject, { readonly kind: 'chance' }>): Test {
  const value = constantOf(match.right, of)
  if (value === undefined) return known(false)
  const below = Math.min(Math.max(value - offset, 0), modulus) / modulus
  const one = value >= offset && value < offset + modulus ? 1 / modulus : 0
  const shares: Readonly<Record<Match['operator'], number>> = {
    '<': below,
    '<=': below + one,
    '>': 1 - below - one,
    '>=': 1 - below,
    '==': one,
    in: one,
    '!=': 1 - one,
    '!': 1 - one,
  }
  const share = shares[match.operator]
  return share <= 0 || share >= 1 ? known(share >= 1) : { kind: 'chance', share }
}
