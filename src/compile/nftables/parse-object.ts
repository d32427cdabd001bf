/** The inside of named objects and flowtables: counters, quotas, limits, helpers, timeouts, expectations. */
import { parseSynproxy } from './parse-action'
import { parseDevices, parsePriority } from './parse-base-chain'
import { parseCounter, parseLimit, parseQuota, takeDuration } from './parse-state'
import type { Flowtable, NamedObject, ObjectBody } from './ruleset'
import type { ObjectKind } from './statement'
import type { NftCursor } from './tokenize-nft'

const ctKinds: ReadonlyMap<string, ObjectKind> = new Map([
  ['helper', 'ct helper'],
  ['timeout', 'ct timeout'],
  ['expectation', 'ct expectation'],
])

/** `counter`, `ct helper`: the words that begin an object. */
export function takeObjectKind(cursor: NftCursor): ObjectKind | undefined {
  const { word } = cursor
  switch (word) {
    case 'counter':
    case 'quota':
    case 'limit':
    case 'synproxy':
    case 'secmark':
      cursor.advance()
      return word
    case 'ct': {
      cursor.advance()
      const kind = ctKinds.get(cursor.word)
      cursor.advance()
      return kind
    }
    default:
      return undefined
  }
}

type Draft = {
  comment?: string
  type?: string
  protocol?: string
  l3protocol?: string
  policy?: readonly { state: string; seconds: number }[]
  port?: number
  timeoutMilliseconds?: number
  size?: number
  body?: ObjectBody
}

/** In braces, or in scripts without: `add quota t q over 25 mbytes`. */
export function parseObject(cursor: NftCursor, name: string, kind: ObjectKind): NamedObject {
  const hasBraces = cursor.is('{')
  if (hasBraces) cursor.open('{')
  const draft: Draft = {}
  while (!cursor.is('}') && cursor.word !== '' && (hasBraces || !(cursor.is('\n') || cursor.is(';')))) {
    if (!cursor.take(';')) parsePart(cursor, kind, draft)
  }
  if (hasBraces) cursor.close('}')
  const { comment } = draft
  return { name, ...(comment !== undefined && { comment }), ...buildBody(kind, draft) }
}

function parsePart(cursor: NftCursor, kind: ObjectKind, draft: Draft): void {
  if (cursor.take('comment')) draft.comment = cursor.takeText('the comment')
  else if (kind === 'counter' || kind === 'quota' || kind === 'limit' || kind === 'secmark')
    parseWhole(cursor, kind, draft)
  else if (kind === 'synproxy') parseSynproxyPart(cursor, draft)
  else parseCtPart(cursor, draft)
}

function parseWhole(cursor: NftCursor, kind: 'counter' | 'quota' | 'limit' | 'secmark', draft: Draft): void {
  if (kind === 'secmark') draft.body = { kind, context: cursor.takeText('the context') }
  else if (kind === 'limit') {
    cursor.expect('rate')
    draft.body = parseLimit(cursor)
  } else {
    if (kind === 'counter' && !cursor.is('packets')) cursor.fail(`\`${cursor.word}\` is no count`)
    draft.body = kind === 'counter' ? parseCounter(cursor) : parseQuota(cursor)
  }
}

/** Its parts stand in lines. */
function parseSynproxyPart(cursor: NftCursor, draft: Draft): void {
  const { at } = cursor
  const before = draft.body?.kind === 'synproxy' ? draft.body : { flags: [] }
  const part = parseSynproxy(cursor)
  draft.body = { ...before, ...part, kind: 'synproxy', flags: [...before.flags, ...part.flags] }
  if (cursor.at === at) cursor.fail(`\`${cursor.word}\` is no part of a synproxy`)
}

function parseCtPart(cursor: NftCursor, draft: Draft): void {
  if (cursor.take('type')) draft.type = cursor.takeText('the type')
  else if (cursor.take('protocol')) draft.protocol = cursor.takeText('the protocol')
  else if (cursor.take('l3proto')) draft.l3protocol = cursor.takeText('the protocol')
  else if (cursor.take('dport')) draft.port = cursor.takeNumber('the port')
  else if (cursor.take('timeout')) draft.timeoutMilliseconds = takeDuration(cursor)
  else if (cursor.take('size')) draft.size = cursor.takeNumber('the size')
  else if (cursor.take('policy')) draft.policy = parsePolicy(cursor)
  else cursor.fail(`\`${cursor.word}\` is no part of this object`)
}

/** `= { established : 120, close : 20s }`. */
function parsePolicy(cursor: NftCursor): { state: string; seconds: number }[] {
  const policy: { state: string; seconds: number }[] = []
  cursor.expect('=')
  cursor.open('{')
  while (!cursor.is('}') && cursor.failure === undefined) {
    const state = cursor.takeText('the state')
    cursor.expect(':')
    policy.push({ state, seconds: takeDuration(cursor) / 1000 })
    if (!cursor.take(',')) break
  }
  cursor.close('}')
  return policy
}

function buildBody(kind: ObjectKind, draft: Draft): ObjectBody {
  const { protocol = '', l3protocol } = draft
  const head = { protocol, ...(l3protocol !== undefined && { l3protocol }) }
  switch (kind) {
    case 'ct helper':
      return { kind, type: draft.type ?? '', ...head }
    case 'ct timeout':
      return { kind, ...head, policy: draft.policy ?? [] }
    case 'ct expectation': {
      const { port = 0, timeoutMilliseconds = 0, size = 0 } = draft
      return { kind, ...head, port, timeoutMilliseconds, size }
    }
    case 'synproxy':
      return draft.body ?? { kind, flags: [] }
    case 'secmark':
      return draft.body ?? { kind, context: '' }
    case 'limit':
      return draft.body ?? { kind, isOver: false, rate: 0, unit: 'packets', per: 'second', burst: 0 }
    case 'quota':
      return draft.body ?? { kind, isOver: false, bytes: 0, usedBytes: 0 }
    case 'counter':
      return draft.body ?? { kind, packets: 0, bytes: 0 }
    default:
      return kind satisfies never
  }
}

/** `{ hook ingress priority filter; devices = { eth0 }; flags offload; counter; }`. */
export function parseFlowtable(cursor: NftCursor, name: string): Flowtable {
  let flowtable: Flowtable = { name, hook: 'ingress', priority: 0, devices: [], hasCounter: false, flags: [] }
  cursor.open('{')
  while (!cursor.is('}') && cursor.word !== '') {
    if (cursor.take('hook')) flowtable = { ...flowtable, hook: cursor.takeText('the hook') }
    else if (cursor.take('priority')) flowtable = { ...flowtable, priority: parsePriority(cursor, 'ingress') }
    else if (cursor.take('devices')) flowtable = { ...flowtable, devices: parseDevices(cursor) }
    else if (cursor.take('counter')) flowtable = { ...flowtable, hasCounter: true }
    else if (cursor.take('flags')) flowtable = { ...flowtable, flags: takeWords(cursor, 'the flag') }
    else if (!cursor.take(';')) cursor.fail(`\`${cursor.word}\` is no part of a flowtable`)
  }
  cursor.close('}')
  return flowtable
}

/** `a,b`. */
export function takeWords(cursor: NftCursor, what: string): string[] {
  const words = [cursor.takeText(what)]
  while (cursor.take(',')) words.push(cursor.takeText(what))
  return words
}
