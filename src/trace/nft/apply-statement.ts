/** What one statement does with the packets that came to it. */
import type { Expression, Verdict } from '#compile/nftables/expression'
import type { Statement } from '#compile/nftables/statement'
import { type Path, untrack, withHop } from '../path'
import { type Question, undecidable } from '../question'
import { applyNatStatement, applyTproxyStatement } from './apply-nat-statement'
import { askPacket } from './ask-packet'
import { evaluate, singleNumber } from './evaluate'
import { lookup } from './lookup'
import { elementsOf, matchStatement } from './match-statement'
import { type NftPlace, nftHop, nftView } from './nft-place'
import { compute, constantOf } from './operand'
import { type MakeTest, type Part, split } from './split'

export type StatementEffect = {
  /** Come to the rule's next statement. */
  readonly goesOn: readonly Part[]
  /** Leave the rule for the next one. */
  readonly leaves: readonly Part[]
  /** Leave the base chain. */
  readonly ended: readonly Path[]
  /** Follow a verdict. */
  readonly led: readonly { readonly verdict: Verdict; readonly part: Part }[]
}

const nothing: StatementEffect = { goesOn: [], leaves: [], ended: [], led: [] }

export function applyStatement(statement: Statement, part: Part, place: NftPlace): StatementEffect {
  const goOn = { ...nothing, goesOn: [part] }
  switch (statement.kind) {
    case 'match':
      return { ...nothing, ...matchStatement(statement, part, { viewOf: nftView(place), sets: place.sets }) }
    case 'accept':
    case 'drop':
    case 'continue':
    case 'return':
    case 'jump':
    case 'goto':
      return { ...nothing, led: [{ verdict: statement, part }] }
    case 'vmap':
      return applyVerdictMap(statement, part, place)
    case 'limit':
    case 'quota':
    case 'ct-count':
      return byQuestion(part, place, usualLimit(statement))
    case 'mangle':
      return { ...nothing, goesOn: mangle(statement, part, place) }
    case 'snat':
    case 'dnat':
    case 'masquerade':
    case 'redirect': {
      const { ended, misses, passes } = applyNatStatement(statement, part, place)
      return { ...nothing, ended, leaves: misses, goesOn: passes }
    }
    case 'tproxy':
      return { ...nothing, goesOn: [{ ...part, path: applyTproxyStatement(statement, part, place) }] }
    case 'reject':
      return { ...nothing, ended: [finish(part, place, 'reject')] }
    case 'queue':
      return applyQueue(statement, part, place)
    case 'notrack':
      return { ...nothing, goesOn: [{ ...part, path: untrack(part.path) }] }
    case 'synproxy':
      return { ...nothing, ended: [endUnknown(part, place, 'the SYN proxy answers the handshake')] }
    case 'fwd':
      return { ...nothing, ended: [endUnknown(part, place, 'it is forwarded to another device before routing')] }
    case 'xt':
      return applyXt(statement, part, place)
    case 'block':
      return { ...nothing, ended: [endUnknown(part, place, 'rules that stand in a rule are not walked')] }
    case 'object':
      return statement.object === 'limit' || statement.object === 'quota'
        ? byQuestion(part, place, {
            what: `traffic is within ${statement.object} ${nameOf(statement.name)}`,
            usual: true,
          })
        : goOn
    case 'other':
      return byFact(part, place, statement.text)
    case 'meter':
      return byQuestion(part, place, { what: `traffic is within meter ${statement.name}`, usual: true })
    case 'counter':
    case 'last':
    case 'log':
    case 'flow':
    case 'set-update':
    case 'dup':
    case 'reset':
      return goOn
    default:
      return statement satisfies never
  }
}

function nameOf(expression: Expression): string {
  return expression.kind === 'value' ? String(expression.value) : expression.kind
}

function applyVerdictMap(
  statement: Extract<Statement, { readonly kind: 'vmap' }>,
  part: Part,
  place: NftPlace,
): StatementEffect {
  const elements = elementsOf(statement.data, place.sets)
  if (elements === undefined || elements === 'missing') return byAbsentMap(statement, part, place)
  const { hits, misses, isAbsent } = lookup(part, statement.key, { elements, viewOf: nftView(place) })
  const led = hits.flatMap(({ part: own, element }) =>
    isVerdict(element.data) ? [{ verdict: element.data, part: own }] : [],
  )
  const leaves = isAbsent ? [part] : misses
  return { ...nothing, led, leaves }
}

/** Where a map that is not told leads is not known; what none of its elements takes goes on. */
function byAbsentMap(
  { data }: Extract<Statement, { readonly kind: 'vmap' }>,
  part: Part,
  place: NftPlace,
): StatementEffect {
  const name = data.kind === 'reference' ? `@${data.set}` : 'a map'
  const { goesOn, leaves } = byFact(part, place, `a match with ${name}`)
  const ended = goesOn.map((one) => endUnknown(one, place, `what ${name} holds is not in this dump`))
  return { ...nothing, ended, leaves }
}

const verdicts = new Set(['accept', 'drop', 'continue', 'return', 'jump', 'goto'])

function isVerdict(data: Expression | Verdict | undefined): data is Verdict {
  return data !== undefined && verdicts.has(data.kind)
}

type Bounded = Extract<Statement, { readonly kind: 'limit' | 'quota' | 'ct-count' }>

/** A bucket is full when the rule is loaded, and no connection is counted yet. */
function usualLimit(statement: Bounded): { readonly what: string; readonly usual: boolean } {
  if (statement.kind === 'limit') {
    const rate = `${statement.rate} ${statement.unit} a ${statement.per}`
    return statement.isOver
      ? { what: `traffic is above ${rate}`, usual: false }
      : { what: `traffic is within ${rate}`, usual: true }
  }
  if (statement.kind === 'quota') {
    const isSpent = statement.usedBytes >= statement.bytes
    return statement.isOver
      ? { what: `the quota of ${statement.bytes} bytes is spent`, usual: isSpent }
      : { what: `the quota of ${statement.bytes} bytes is not spent`, usual: !isSpent }
  }
  return statement.isOver
    ? { what: `there are more than ${statement.count} connections`, usual: false }
    : { what: `there are at most ${statement.count} connections`, usual: true }
}

function byQuestion(
  part: Part,
  place: NftPlace,
  asked: { readonly what: string; readonly usual: boolean },
): StatementEffect {
  return bySplit(part, (path) => askPacket(nftView(place)(path), { ...asked, subject: 'packet' }))
}

/** What Portolan cannot decide: unknown where it decides. */
function byFact(part: Part, place: NftPlace, what: string): StatementEffect {
  return bySplit(part, (path) => {
    const view = nftView(place)(path)
    return askPacket(view, { what, subject: 'fact' })
  })
}

function bySplit(part: Part, makeTest: MakeTest): StatementEffect {
  const { holds, fails } = split(part, [makeTest])
  return { ...nothing, goesOn: holds === undefined ? [] : [holds], leaves: fails }
}

function finish(part: Part, place: NftPlace, kind: 'accept' | 'drop' | 'reject'): Path {
  const hop = nftHop(place, kind === 'reject' ? 'rejected' : kind === 'drop' ? 'dropped' : 'accepted by this chain')
  return { ...withHop(part.path, hop), end: { kind, rule: place.rule, place: hop } }
}

function endUnknown(part: Part, place: NftPlace, why: string): Path {
  const hop = nftHop(place, 'handed on')
  return { ...withHop(part.path, hop), end: { kind: 'unknown', why, place: hop } }
}

/** Marks are computed; of other writes only the destination and the ports change later rules' answers. */
function mangle(
  statement: Extract<Statement, { readonly kind: 'mangle' }>,
  part: Part,
  place: NftPlace,
): readonly Part[] {
  const { key } = statement
  const isMark = (key.kind === 'meta' || key.kind === 'ct') && key.key === 'mark'
  if (!isMark) return [part]
  const { fields } = part.path
  const value = markValue(statement.value, part, place)
  if (key.kind === 'ct') return [{ ...part, path: { ...part.path, fields: { ...fields, connmark: value } } }]
  const isSet = value !== undefined && fields.mark !== undefined && (value & ~fields.mark) !== 0
  const cause = { rule: place.caller ?? place.rule, conditions: [...place.conditions] }
  return [
    {
      ...part,
      path: { ...part.path, fields: { ...fields, mark: value }, markCause: isSet ? cause : part.path.markCause },
    },
  ]
}

/** `0x4000`, `meta mark | 0x4000`, `ct mark & 0xff`. */
function markValue(expression: Expression, part: Part, place: NftPlace): number | undefined {
  const constant = constantOf(expression, { kind: 'number', type: 'mark' })
  if (constant !== undefined) return constant
  if (expression.kind === 'binary') {
    const left = markValue(expression.left, part, place)
    const right = markValue(expression.right, part, place)
    return left === undefined || right === undefined ? undefined : compute(expression.operator, left, right)
  }
  if (expression.kind === 'meta' && expression.key === 'mark') return part.path.fields.mark
  if (expression.kind === 'ct' && expression.key === 'mark') return part.path.fields.connmark
  return singleNumber(evaluate(expression, part, place).found[0]?.values[0])
}

function applyQueue(
  statement: Extract<Statement, { readonly kind: 'queue' }>,
  part: Part,
  place: NftPlace,
): StatementEffect {
  const number = statement.number?.kind === 'value' ? String(statement.number.value) : '0'
  const question: Question = {
    key: `queue:${number}`,
    subject: { kind: 'fact' },
    yes: `the program at queue ${number} accepts it`,
    no: `the program at queue ${number} drops it`,
    usual: true,
  }
  const { holds, fails } = split(part, [() => ({ kind: 'ask', question, holdsWhen: true })])
  const accepted = holds === undefined ? [] : [finish(holds, place, 'accept')]
  return { ...nothing, ended: [...accepted, ...fails.map((one) => finish(one, place, 'drop'))] }
}

/** A listing leaves out what an extension of iptables-nft was told: only its name is known. */
function applyXt(statement: Extract<Statement, { readonly kind: 'xt' }>, part: Part, place: NftPlace): StatementEffect {
  if (statement.type === 'match') {
    if (statement.name === 'comment') return { ...nothing, goesOn: [part] }
    return bySplit(part, () => undecidable(`xt match "${statement.name}"`))
  }
  return applyXtTarget(statement.name, part, place)
}

const passingTargets = new Set([
  'LOG',
  'NFLOG',
  'TRACE',
  'CHECKSUM',
  'TCPMSS',
  'SET',
  'CT',
  'CLASSIFY',
  'TOS',
  'DSCP',
  'TTL',
  'HL',
  'AUDIT',
  'TEE',
])

function applyXtTarget(name: string, part: Part, place: NftPlace): StatementEffect {
  if (passingTargets.has(name)) return { ...nothing, goesOn: [part] }
  if (name === 'REJECT') return { ...nothing, ended: [finish(part, place, 'reject')] }
  if (name === 'MASQUERADE') {
    const { ended } = applyNatStatement({ kind: 'masquerade', isPrefix: false, flags: [] }, part, place)
    return { ...nothing, ended }
  }
  return { ...nothing, ended: [endUnknown(part, place, `what xt target "${name}" does stands only in iptables-save`)] }
}
