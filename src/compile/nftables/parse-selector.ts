/** Where a value comes from, as text: `ip saddr`, `meta mark`, `ct original proto-dst`, `fib daddr . iif type`. */
import type { Expression, Selector } from './expression'
import {
  chunkFields,
  ctKeys,
  extensionFields,
  ipOptionFields,
  metaKeys,
  payloadFields,
  plainMetaKeys,
  tcpOptionFields,
} from './parse-fields'
import type { TableFamily } from './ruleset'
import type { NftCursor } from './tokenize-nft'

/** What `numgen`, `fib` and the like take from expressions is parsed by the caller's own parser. */
export type ParseOperand = (cursor: NftCursor) => Expression

/** nft's older words, and the ones it has in JSON. */
const metaAliases: Readonly<Record<string, string>> = {
  ibridgename: 'ibrname',
  obridgename: 'obrname',
  ibriport: 'ibrname',
  obriport: 'obrname',
  secpath: 'ipsec',
  prandom: 'random',
}

const payloadBases = new Set(['ll', 'nh', 'th', 'ih'])
const headerFields = new Set([...payloadFields.keys(), ...extensionFields.keys()])
const fibFlags = ['saddr', 'daddr', 'mark', 'iif', 'oif']

export function canonicalMetaKey(key: string): string {
  return metaAliases[key] ?? key
}

/** Listings of ip and ip6 tables may leave the family of an address out. */
export function canonicalCtKey(key: string, table: TableFamily): string {
  if (key === 'l3protocol') return 'l3proto'
  const family = familyOfTable(table)
  return (key === 'saddr' || key === 'daddr') && family !== undefined ? `${family} ${key}` : key
}

export function familyOfTable(table: TableFamily): 'ip' | 'ip6' | undefined {
  return table === 'ip' || table === 'ip6' ? table : undefined
}

/** Undefined, and nothing taken, when no selector stands here: `ip` alone is a value, `ip saddr` is not. */
export function parseSelector(cursor: NftCursor, parseOperand: ParseOperand): Selector | undefined {
  if (cursor.isQuoted) return undefined
  const { word } = cursor
  if (word === '@') return parseRawPayload(cursor)
  if (plainMetaKeys.has(word)) {
    cursor.advance()
    return { kind: 'meta', key: canonicalMetaKey(word) }
  }
  const start = cursor.place()
  for (const parse of [headerFields.has(word) ? parseHeaderField : undefined, parsers.get(word)]) {
    const selector = parse?.(cursor, parseOperand)
    if (selector !== undefined) return selector
    if (parse !== undefined && cursor.failure === undefined) cursor.reset(start)
  }
  return undefined
}

function parseHeaderField(cursor: NftCursor): Selector | undefined {
  const name = cursor.word
  const payload = payloadFields.get(name)
  const extension = extensionFields.get(name)
  cursor.advance()
  const field = cursor.word
  if (payload?.has(field) === true) {
    cursor.advance()
    return { kind: 'payload', protocol: name, field }
  }
  if (extension?.has(field) !== true) return undefined
  cursor.advance()
  if (!cursor.take('[')) return { kind: 'exthdr', name, field }
  const index = cursor.takeNumber('the index')
  cursor.expect(']')
  return { kind: 'exthdr', name, field: `${field}[${index}]` }
}

type Parse = (cursor: NftCursor, parseOperand: ParseOperand) => Selector | undefined

const parsers: ReadonlyMap<string, Parse> = new Map(
  Object.entries<Parse>({
    meta: parseMeta,
    ct: parseCt,
    rt: parseRt,
    socket: parseSocket,
    osf: parseOsf,
    ipsec: parseIpsec,
    fib: parseFib,
    numgen: parseNumgen,
    jhash: parseJhash,
    symhash: parseSymhash,
    exthdr: parseExtension,
    tcp: parseTcpOption,
    ip: parseIpOption,
    sctp: parseChunk,
    dccp: parseDccpOption,
    arp: parseArpAddress,
  }),
)

function parseMeta(cursor: NftCursor): Selector | undefined {
  cursor.advance()
  const key = canonicalMetaKey(cursor.word)
  if (!metaKeys.has(key)) return undefined
  cursor.advance()
  return { kind: 'meta', key }
}

/** `ct original ip saddr` has the key `ip saddr`. */
function parseCt(cursor: NftCursor): Selector | undefined {
  cursor.advance()
  const direction = takeOneOf(cursor, ['original', 'reply'] as const)
  const family = takeOneOf(cursor, ['ip', 'ip6'] as const)
  const word = cursor.word === 'l3protocol' ? 'l3proto' : cursor.word
  if (!ctKeys.has(word)) return undefined
  cursor.advance()
  const key = family === undefined ? canonicalCtKey(word, cursor.scope.family) : `${family} ${word}`
  return { kind: 'ct', key, ...(direction && { direction }) }
}

/** Of routing; `rt seg-left` is a field of IPv6's routing header. */
function parseRt(cursor: NftCursor): Selector | undefined {
  cursor.advance()
  const named = takeOneOf(cursor, ['ip', 'ip6'] as const)
  const key = cursor.word
  if (key === 'nexthop') {
    cursor.advance()
    const family = named ?? familyOfTable(cursor.scope.family)
    return { kind: 'rt', key, ...(family && { family }) }
  }
  if (key === 'classid' || key === 'mtu' || key === 'ipsec') {
    cursor.advance()
    return { kind: 'rt', key }
  }
  return undefined
}

function parseSocket(cursor: NftCursor): Selector | undefined {
  cursor.advance()
  const key = takeOneOf(cursor, ['transparent', 'mark', 'wildcard', 'cgroupv2'] as const)
  if (key === undefined) return undefined
  if (!cursor.take('level')) return { kind: 'socket', key }
  return { kind: 'socket', key, level: cursor.takeNumber('the level') }
}

function parseOsf(cursor: NftCursor): Selector | undefined {
  cursor.advance()
  const ttl = cursor.take('ttl') ? takeOneOf(cursor, ['loose', 'skip'] as const) : undefined
  const key = takeOneOf(cursor, ['name', 'version'] as const)
  return key && { kind: 'osf', key, ...(ttl && { ttl }) }
}

function parseIpsec(cursor: NftCursor): Selector | undefined {
  cursor.advance()
  const direction = takeOneOf(cursor, ['in', 'out'] as const)
  const policy = cursor.take('spnum') ? cursor.takeNumber('the policy') : 0
  const family = takeOneOf(cursor, ['ip', 'ip6'] as const)
  const key = takeOneOf(cursor, ['reqid', 'spi', 'saddr', 'daddr'] as const)
  return direction && key && { kind: 'ipsec', direction, policy, ...(family && { family }), key }
}

function parseFib(cursor: NftCursor): Selector | undefined {
  const given = new Set<string>()
  do {
    cursor.advance()
    if (!fibFlags.includes(cursor.word)) return undefined
    given.add(cursor.word)
    cursor.advance()
  } while (cursor.is('.'))
  const result = takeOneOf(cursor, ['oif', 'oifname', 'type', 'check'] as const)
  return result && { kind: 'fib', result, flags: sortFibFlags(given) }
}

export function sortFibFlags(given: ReadonlySet<string>): string[] {
  return fibFlags.filter((flag) => given.has(flag))
}

function parseNumgen(cursor: NftCursor): Selector | undefined {
  cursor.advance()
  const mode = takeOneOf(cursor, ['inc', 'random'] as const)
  if (mode === undefined) return undefined
  return { kind: 'numgen', mode, ...parseModulus(cursor) }
}

function parseJhash(cursor: NftCursor, parseOperand: ParseOperand): Selector {
  cursor.advance()
  const of = parseOperand(cursor)
  return { kind: 'jhash', of, ...parseModulus(cursor) }
}

function parseSymhash(cursor: NftCursor): Selector {
  cursor.advance()
  return { kind: 'symhash', ...parseModulus(cursor) }
}

/** `mod 10 seed 0xabcd offset 5`. */
function parseModulus(cursor: NftCursor): { modulus: number; seed?: number; offset: number } {
  cursor.expect('mod')
  const modulus = cursor.takeNumber('the modulus')
  const seed = cursor.take('seed') ? cursor.takeNumber('the seed') : undefined
  const offset = cursor.take('offset') ? cursor.takeNumber('the offset') : 0
  return { modulus, ...(seed !== undefined && { seed }), offset }
}

function parseExtension(cursor: NftCursor): Selector | undefined {
  cursor.advance()
  const name = cursor.word
  if (!extensionFields.has(name)) return undefined
  cursor.advance()
  return { kind: 'exthdr', name }
}

function parseTcpOption(cursor: NftCursor): Selector | undefined {
  cursor.advance()
  if (!cursor.take('option')) return undefined
  if (cursor.take('@')) {
    const option = cursor.takeNumber('the option')
    return { kind: 'raw-tcp-option', option, ...parseBits(cursor) }
  }
  if (/^\d/.test(cursor.word)) {
    const option = cursor.takeNumber('the option')
    const field = cursor.is('kind') || cursor.is('length') ? cursor.takeText('the field') : undefined
    if (field === 'length') return { kind: 'raw-tcp-option', option, offset: 8, length: 8 }
    return { kind: 'raw-tcp-option', option, offset: 0, length: 8 }
  }
  const name = cursor.takeText('the option')
  const field = tcpOptionFields.has(cursor.word) ? cursor.takeText('the field') : undefined
  return { kind: 'tcp-option', name, ...(field !== undefined && { field }) }
}

function parseIpOption(cursor: NftCursor): Selector | undefined {
  cursor.advance()
  if (!cursor.take('option')) return undefined
  const name = cursor.takeText('the option')
  const field = ipOptionFields.has(cursor.word) ? cursor.takeText('the field') : undefined
  return { kind: 'ip-option', name, ...(field !== undefined && { field }) }
}

function parseChunk(cursor: NftCursor): Selector | undefined {
  cursor.advance()
  if (!cursor.take('chunk')) return undefined
  const name = cursor.takeText('the chunk')
  const field = chunkFields.has(cursor.word) ? cursor.takeText('the field') : undefined
  return { kind: 'sctp-chunk', name, ...(field !== undefined && { field }) }
}

function parseDccpOption(cursor: NftCursor): Selector | undefined {
  cursor.advance()
  if (!cursor.take('option')) return undefined
  return { kind: 'dccp-option', type: cursor.takeNumber('the option') }
}

/** `arp saddr ip`. */
function parseArpAddress(cursor: NftCursor): Selector | undefined {
  cursor.advance()
  const end = takeOneOf(cursor, ['saddr', 'daddr'] as const)
  const what = end && takeOneOf(cursor, ['ip', 'ether'] as const)
  return what && { kind: 'payload', protocol: 'arp', field: `${end} ${what}` }
}

/** `@th,16,16`; `@name` is a set and no selector. */
function parseRawPayload(cursor: NftCursor): Selector | undefined {
  const start = cursor.place()
  cursor.advance()
  const base = cursor.word
  if (payloadBases.has(base)) {
    cursor.advance()
    if (cursor.is(',')) return { kind: 'raw-payload', base, ...parseBits(cursor) }
  }
  cursor.reset(start)
  return undefined
}

/** `,16,16`. */
function parseBits(cursor: NftCursor): { offset: number; length: number } {
  cursor.expect(',')
  const offset = cursor.takeNumber('the offset')
  cursor.expect(',')
  return { offset, length: cursor.takeNumber('the length') }
}

function takeOneOf<T extends string>(cursor: NftCursor, words: readonly T[]): T | undefined {
  const found = words.find((word) => cursor.is(word))
  if (found !== undefined) cursor.advance()
  return found
}
