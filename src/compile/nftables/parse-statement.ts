/** The statements of one rule as text; what is not known is kept as it stands, up to the verdict. */
import {
  parseLog,
  parseMeter,
  parseOldSetUpdate,
  parseQueue,
  parseReject,
  parseSetUpdate,
  parseSynproxy,
} from './parse-action'
import { parseLeft, parseValue, parseVerdict } from './parse-expression'
import { parseMatch } from './parse-match'
import { parseDup, parseFwd, parseNat, parseTproxy } from './parse-nat'
import { parseState } from './parse-state'
import type { ObjectKind, Rule, Statement } from './statement'
import type { NftCursor } from './tokenize-nft'

export type RuleParse = { readonly statements: readonly Statement[]; readonly comment?: string }

type Parse = (cursor: NftCursor) => Statement

/** By first word; those that also begin something else look on. */
const parsers: ReadonlyMap<string, Parse> = new Map(
  Object.entries<Parse>({
    jump: parseJump,
    goto: parseJump,
    counter: (cursor) => parseState(cursor) ?? parseObjectUse(cursor, 'counter'),
    quota: (cursor) => parseState(cursor) ?? parseObjectUse(cursor, 'quota'),
    limit: (cursor) => parseState(cursor) ?? parseObjectUse(cursor, 'limit'),
    last: (cursor) => parseState(cursor) ?? parseMatch(cursor),
    ct: (cursor) => parseState(cursor) ?? parseMatch(cursor),
    synproxy: parseSynproxyUse,
    secmark: (cursor) => parseObjectUse(cursor, 'secmark'),
    snat: (cursor) => parseNat(after(cursor), 'snat'),
    dnat: (cursor) => parseNat(after(cursor), 'dnat'),
    masquerade: (cursor) => parseNat(after(cursor), 'masquerade'),
    redirect: (cursor) => parseNat(after(cursor), 'redirect'),
    tproxy: (cursor) => parseTproxy(after(cursor)),
    dup: (cursor) => parseDup(after(cursor)),
    fwd: (cursor) => parseFwd(after(cursor)),
    reject: (cursor) => parseReject(after(cursor)),
    log: (cursor) => parseLog(after(cursor)),
    queue: (cursor) => parseQueue(after(cursor)),
    notrack: (cursor) => ({ kind: after(cursor) && 'notrack' }),
    flow: parseFlow,
    add: (cursor) => parseSetUpdate(cursor, 'add'),
    update: (cursor) => parseSetUpdate(cursor, 'update'),
    delete: (cursor) => parseSetUpdate(cursor, 'delete'),
    set: parseOldSetUpdate,
    meter: (cursor) => parseMeter(after(cursor)),
    reset: parseReset,
    xt: parseXt,
  }),
)

/** What an unknown statement cannot be followed over. */
const endings = new Set(['accept', 'drop', 'continue', 'return', 'jump', 'goto', 'reject', 'counter', 'comment'])

/** Up to the end of the line, to a `;` or to a closing brace. A failure of syntax is left in the cursor. */
export function parseStatements(cursor: NftCursor): RuleParse {
  const statements: Statement[] = []
  let comment: string | undefined
  while (!isRuleEnd(cursor) && cursor.failure === undefined) {
    const leftover = cursor.is('#') ? parseLeftover(cursor, statements) : undefined
    if (leftover !== undefined) statements.push(leftover)
    else if (cursor.is('#')) break
    else if (cursor.take('comment')) comment = cursor.takeText('the comment')
    else statements.push(parseStatement(cursor))
  }
  if (statements.length === 0 && comment === undefined) cursor.fail('there is no statement')
  return comment === undefined ? { statements } : { statements, comment }
}

function isRuleEnd(cursor: NftCursor): boolean {
  return cursor.word === '' || (!cursor.isQuoted && (cursor.is('\n') || cursor.is(';') || cursor.is('}')))
}

export function parseStatement(cursor: NftCursor): Statement {
  const start = cursor.place()
  const known = cursor.isQuoted ? undefined : parsers.get(cursor.word)
  const statement = known?.(cursor) ?? parseVerdict(cursor) ?? parseMatch(cursor)
  if (cursor.failure?.kind !== 'unknown') return statement
  cursor.reset(start)
  return parseOther(cursor)
}

function parseOther(cursor: NftCursor): Statement {
  const start = cursor.at
  let open = 0
  do {
    if (cursor.is('{')) open++
    if (cursor.is('}')) open--
    cursor.advance()
  } while (cursor.word !== '' && (open > 0 || !(isRuleEnd(cursor) || cursor.is('#') || endings.has(cursor.word))))
  return { kind: 'other', syntax: 'text', text: cursor.text.slice(start, cursor.lastEnd) }
}

/**
 * What nft 0.9 shows of an iptables match that it cannot translate: `# recent: SET name: x counter packets 0 bytes 0 drop`,
 * or without iptables beside it, `# xt_recent counter …`.
 * A target of that kind stands after the counter and ends the line. Any other `#` begins a comment.
 */
function parseLeftover(cursor: NftCursor, before: readonly Statement[]): Statement | undefined {
  const line = cursor.text.slice(cursor.at, cursor.endOfLine(cursor.at)).replace(/ ?# handle \d+\s*$/, '')
  const counter = line.indexOf(' counter packets ')
  const isTarget =
    before.at(-1)?.kind === 'counter' &&
    /counter packets \d+ bytes \d+ *$/.test(cursor.text.slice(0, cursor.at).slice(-80))
  if (line === '' || (counter < 0 && !isTarget)) return undefined
  const text = counter < 0 ? line.trimEnd() : line.slice(0, counter)
  cursor.reset({ ...cursor.place(), at: cursor.at + text.length })
  const name = /^# xt_(\w+)$/.exec(text)?.[1]
  if (name !== undefined) return { kind: 'xt', type: counter < 0 ? 'target' : 'match', name }
  return { kind: 'other', syntax: 'text', text }
}

function after(cursor: NftCursor): NftCursor {
  cursor.advance()
  return cursor
}

/** To a chain, or into rules that stand here. */
function parseJump(cursor: NftCursor): Statement {
  const start = cursor.place()
  const verdict = cursor.is('jump') ? 'jump' : 'goto'
  cursor.advance()
  if (cursor.is('{')) return { kind: 'block', verdict, rules: parseBlock(cursor) }
  cursor.reset(start)
  return parseVerdict(cursor) ?? parseMatch(cursor)
}

function parseBlock(cursor: NftCursor): Rule[] {
  const rules: Rule[] = []
  const depth = cursor.openLines()
  while (!cursor.is('}') && cursor.word !== '') {
    if (cursor.is('\n') || cursor.is(';')) cursor.advance()
    else if (cursor.is('#')) cursor.reset({ ...cursor.place(), at: cursor.endOfLine(cursor.at) })
    else rules.push(parseStatements(cursor))
  }
  cursor.leaveLines(depth)
  cursor.close('}')
  return rules
}

function parseObjectUse(cursor: NftCursor, object: ObjectKind): Statement {
  cursor.advance()
  cursor.expect('name')
  return { kind: 'object', object, name: parseValue(cursor, ['string']) }
}

function parseSynproxyUse(cursor: NftCursor): Statement {
  cursor.advance()
  if (cursor.take('name')) return { kind: 'object', object: 'synproxy', name: parseValue(cursor, ['string']) }
  return { kind: 'synproxy', ...parseSynproxy(cursor) }
}

/** `flow add @f`; `flow table x {…}` was the first name of meters. */
function parseFlow(cursor: NftCursor): Statement {
  cursor.advance()
  if (cursor.take('table')) return parseMeter(cursor)
  if (!cursor.take('add')) cursor.expect('offload')
  if (!cursor.is('@')) cursor.fail('the flowtable is missing')
  cursor.advance()
  return { kind: 'flow', flowtable: cursor.takeName('the flowtable') }
}

function parseReset(cursor: NftCursor): Statement {
  cursor.advance()
  return { kind: 'reset', option: parseLeft(cursor) }
}

function parseXt(cursor: NftCursor): Statement {
  cursor.advance()
  const type = cursor.takeText('the kind')
  return { kind: 'xt', type, name: cursor.takeText('the name') }
}
