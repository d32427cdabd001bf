/** Statements that do something, as text: reject, log, queue, synproxy, updates of sets, meters. */
import { constant, type Expression } from './expression'
import { parseElement, parseRight, parseValue } from './parse-expression'
import { takeDuration } from './parse-state'
import { defaultReject } from './print-statement'
import type { TableFamily } from './ruleset'
import type { Log, RejectType, Statement } from './statement'
import type { NftCursor } from './tokenize-nft'

const rejectTypes: readonly RejectType[] = ['icmp', 'icmpv6', 'icmpx']
const logFlags = ['tcp sequence', 'tcp options', 'ip options', 'skuid', 'ether']
const synproxyFlags = ['timestamp', 'sack-perm']
const fromPacket = { datatypes: [''], hasSelectors: true }

/** After `reject`. */
export function parseReject(cursor: NftCursor): Statement {
  if (!cursor.take('with')) return { kind: 'reject' }
  if (cursor.take('tcp')) {
    cursor.expect('reset')
    return { kind: 'reject', type: 'tcp reset' }
  }
  const type = rejectTypes.find((one) => cursor.is(one))
  if (type === undefined) cursor.failUnknown('an answer that Portolan does not know')
  cursor.advance()
  cursor.take('type')
  return buildReject(cursor.scope.family, type ?? 'icmp', parseRight(cursor, [`${type}_code`]))
}

/** What a table answers when it is not told is left out, as listings do. */
export function buildReject(family: TableFamily, type: RejectType, code: Expression | undefined): Statement {
  const isUsual =
    type === defaultReject(family) &&
    (code === undefined || (code.kind === 'value' && code.value === 'port-unreachable'))
  return isUsual ? { kind: 'reject' } : { kind: 'reject', type, ...(code && { code }) }
}

/** After `log`, its options in any order. */
export function parseLog(cursor: NftCursor): Statement {
  const log: { -readonly [Key in keyof Log]: Log[Key] } = { kind: 'log', flags: [] }
  const flags = new Set<string>()
  for (;;) {
    if (cursor.take('prefix')) log.prefix = cursor.takeText('the prefix')
    else if (cursor.take('group')) log.group = cursor.takeNumber('the group')
    else if (cursor.take('snaplen')) log.snaplen = cursor.takeNumber('the length')
    else if (cursor.take('queue-threshold')) log.queueThreshold = cursor.takeNumber('the threshold')
    else if (cursor.take('level')) log.level = cursor.takeText('the level')
    else if (cursor.take('flags')) takeLogFlags(cursor, flags)
    else break
  }
  return buildLog(log, flags)
}

/** `flags tcp sequence,options`, `flags ip options`, `flags skuid`. */
function takeLogFlags(cursor: NftCursor, flags: Set<string>): void {
  const group = cursor.is('tcp') || cursor.is('ip') ? `${cursor.takeText('the flags')} ` : ''
  do flags.add(`${group}${cursor.takeText('the flag')}`)
  while (cursor.take(','))
}

/** The usual level is left out, and all flags together are `all`, as listings do. */
export function buildLog(log: Log, flags: ReadonlySet<string>): Log {
  const { level, ...rest } = log
  const known = logFlags.filter((flag) => flags.has(flag))
  const hasAll = flags.has('all') || known.length === logFlags.length
  return { ...rest, ...(level !== undefined && level !== 'warn' && { level }), flags: hasAll ? ['all'] : known }
}

/** After `queue`: `num 1-3 bypass,fanout`, or as newer ones have it, `flags bypass,fanout to 1-3`. */
export function parseQueue(cursor: NftCursor): Statement {
  const flags: string[] = []
  let number: Expression = constant(0)
  for (;;) {
    if (cursor.take('num') || cursor.take('to')) number = parseValue(cursor, ['integer'])
    else if (cursor.is('bypass') || cursor.is('fanout')) flags.push(cursor.takeText('the flag'))
    else if (!cursor.take('flags') && !cursor.take(',')) break
  }
  return { kind: 'queue', number, flags: ['bypass', 'fanout'].filter((flag) => flags.includes(flag)) }
}

export type Synproxy = { mss?: number; windowScale?: number; flags: string[] }

/** `mss 1460 wscale 7 timestamp sack-perm`, of a statement or an object. */
export function parseSynproxy(cursor: NftCursor): Synproxy {
  const synproxy: Synproxy = { flags: [] }
  const flags = new Set<string>()
  for (;;) {
    if (cursor.take('mss')) synproxy.mss = cursor.takeNumber('the size')
    else if (cursor.take('wscale')) synproxy.windowScale = cursor.takeNumber('the scale')
    else if (synproxyFlags.includes(cursor.word)) flags.add(cursor.takeText('the flag'))
    else break
  }
  return { ...synproxy, flags: sortSynproxyFlags(flags) }
}

export function sortSynproxyFlags(given: ReadonlySet<string>): string[] {
  return synproxyFlags.filter((flag) => given.has(flag))
}

/** `update @name { ip saddr timeout 1m }`. */
export function parseSetUpdate(cursor: NftCursor, operation: 'add' | 'update' | 'delete'): Statement {
  cursor.advance()
  const set = takeSetName(cursor)
  cursor.open('{')
  const element = parseElement(cursor, { key: fromPacket, data: fromPacket })
  cursor.close('}')
  return { kind: 'set-update', operation, set, element }
}

/** `set add ip saddr timeout 1m @name`, as nft before 0.9 listed it. */
export function parseOldSetUpdate(cursor: NftCursor): Statement {
  cursor.advance()
  const operation = cursor.is('add') ? 'add' : 'update'
  if (!cursor.is(operation)) cursor.failUnknown('this is no statement that Portolan knows')
  cursor.advance()
  const key = parseValue(cursor, [''])
  const timeout = cursor.take('timeout') ? { timeoutMilliseconds: takeDuration(cursor) } : {}
  return { kind: 'set-update', operation, set: takeSetName(cursor), element: { key, ...timeout } }
}

function takeSetName(cursor: NftCursor): string {
  cursor.expect('@')
  const set = cursor.takeName('the name of a set')
  cursor.lookups?.push(set)
  return set
}

/** After `meter`, or in older listings `flow table`. */
export function parseMeter(cursor: NftCursor): Statement {
  const name = cursor.is('{') ? '' : cursor.takeName('the name of the meter')
  const size = cursor.take('size') ? cursor.takeNumber('the size') : undefined
  cursor.open('{')
  const element = parseElement(cursor, { key: fromPacket, data: fromPacket })
  cursor.close('}')
  return { kind: 'meter', name, ...(size !== undefined && { size }), element }
}
