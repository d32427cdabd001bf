/** Statements that send a packet elsewhere, as text: snat, dnat, masquerade, redirect, tproxy, dup, fwd. */
import type { Expression } from './expression'
import { parseValue } from './parse-expression'
import type { TableFamily } from './ruleset'
import type { Nat, NatFlag, Statement } from './statement'
import type { NftCursor } from './tokenize-nft'

type Family = 'ip' | 'ip6'

const natFlags: readonly NatFlag[] = ['random', 'fully-random', 'persistent']

/** After the kind's word. `addr . port` and `interval` are told by the value itself, and nft does not list them. */
export function parseNat(cursor: NftCursor, kind: Nat['kind']): Statement {
  const family = takeFamily(cursor)
  const isPrefix = takeForm(cursor)
  const isTold = cursor.take('to') || kind === 'snat' || kind === 'dnat'
  const target = isTold ? takeTarget(cursor, family) : {}
  return { kind, ...(family && { family }), isPrefix, ...target, flags: takeFlags(cursor) }
}

export function sortNatFlags(given: ReadonlySet<string>): NatFlag[] {
  return natFlags.filter((flag) => given.has(flag))
}

function takeFamily(cursor: NftCursor): Family | undefined {
  const start = cursor.place()
  const { word } = cursor
  if (cursor.isQuoted || (word !== 'ip' && word !== 'ip6')) return undefined
  cursor.advance()
  // `dnat ip saddr map …` of an older nft begins with a selector.
  if (['to', 'prefix', 'addr', 'interval'].includes(cursor.word)) return word
  cursor.reset(start)
  return undefined
}

function takeForm(cursor: NftCursor): boolean {
  if (cursor.take('prefix')) return true
  if (!cursor.take('interval') && cursor.take('addr')) {
    cursor.expect('.')
    cursor.expect('port')
  }
  return false
}

/** `10.0.0.1`, `10.0.0.1:80`, `[fd00::1]-[fd00::9]:80-90`, `:80`, `numgen inc mod 2 map {…}:80`. */
function takeTarget(cursor: NftCursor, family: Family | undefined): { address?: Expression; port?: Expression } {
  const type = addressTypeOf(family, cursor.scope.family)
  const address = cursor.is(':') ? undefined : takeAddress(cursor, type)
  const port = cursor.take(':') ? parseValue(cursor, ['inet_service']) : undefined
  return { ...(address && { address }), ...(port && { port }) }
}

function takeAddress(cursor: NftCursor, type: string): Expression {
  if (!cursor.is('[')) return parseValue(cursor, [type, 'inet_service'])
  const from = takeBracketed(cursor, type)
  return cursor.take('-') ? { kind: 'range', from, to: takeBracketed(cursor, type) } : from
}

function takeBracketed(cursor: NftCursor, type: string): Expression {
  cursor.expect('[')
  const address = parseValue(cursor, [type])
  cursor.expect(']')
  return address
}

export function addressTypeOf(family: Family | undefined, table: TableFamily): string {
  const known = family ?? table
  return known === 'ip' ? 'ipv4_addr' : known === 'ip6' ? 'ipv6_addr' : ''
}

function takeFlags(cursor: NftCursor): NatFlag[] {
  const given = new Set<string>()
  while (natFlags.some((flag) => cursor.is(flag))) {
    given.add(cursor.word)
    cursor.advance()
    cursor.take(',')
  }
  return sortNatFlags(given)
}

/** After `tproxy`. */
export function parseTproxy(cursor: NftCursor): Statement {
  const family = takeFamily(cursor)
  cursor.expect('to')
  return { kind: 'tproxy', ...(family && { family }), ...takeTarget(cursor, family) }
}

/** After `dup`: in netdev tables a device stands where others have an address. */
export function parseDup(cursor: NftCursor): Statement {
  if (!cursor.take('to')) return { kind: 'dup' }
  const isDevice = cursor.scope.family === 'netdev'
  const address = parseValue(cursor, [isDevice ? 'iface_index' : addressTypeOf(undefined, cursor.scope.family)])
  return cursor.take('device')
    ? { kind: 'dup', address, device: parseValue(cursor, ['iface_index']) }
    : { kind: 'dup', address }
}

/** After `fwd`. */
export function parseFwd(cursor: NftCursor): Statement {
  const family = takeFamily(cursor)
  cursor.expect('to')
  if (family === undefined) return { kind: 'fwd', device: parseValue(cursor, ['iface_index']) }
  const address = parseValue(cursor, [addressTypeOf(family, cursor.scope.family)])
  cursor.expect('device')
  return { kind: 'fwd', device: parseValue(cursor, ['iface_index']), family, address }
}
