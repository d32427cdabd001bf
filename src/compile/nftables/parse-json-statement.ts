/** Statements out of nft's JSON. Undefined stands for what is not the JSON of a statement. */
import { constant, type Element, type Expression, type State } from './expression'
import type { Json } from './json-text'
import { buildLog, buildReject, sortSynproxyFlags } from './parse-action'
import { datatypesOf } from './parse-datatype'
import { fieldOf, isArray, isObject, numberOf, onlyEntry, textOf, textsOf } from './parse-json-entries'
import {
  type JsonContext,
  other,
  parseJsonData,
  parseJsonElement,
  parseJsonExpression,
  parseJsonMapData,
  parseJsonVerdict,
} from './parse-json-expression'
import { parseJsonState } from './parse-json-state'
import { buildMatch } from './parse-match'
import { addressTypeOf, sortNatFlags } from './parse-nat'
import { parseStatements } from './parse-statement'
import type { Match, Nat, ObjectKind, Statement } from './statement'
import { NftCursor, type Scope } from './tokenize-nft'

type Parse = (json: Json, context: JsonContext) => Statement | undefined

const operators: readonly Match['operator'][] = ['==', '!=', '<', '>', '<=', '>=', 'in', '!']
const objectKinds: readonly ObjectKind[] = [
  'counter',
  'quota',
  'limit',
  'ct helper',
  'ct timeout',
  'ct expectation',
  'synproxy',
  'secmark',
]

const parsers: ReadonlyMap<string, Parse> = new Map(
  Object.entries<Parse>({
    match: parseMatch,
    mangle: parseMangle,
    vmap: parseVmap,
    snat: (json, context) => parseNat('snat', json, context),
    dnat: (json, context) => parseNat('dnat', json, context),
    masquerade: (json, context) => parseNat('masquerade', json, context),
    redirect: (json, context) => parseNat('redirect', json, context),
    reject: parseReject,
    log: parseLog,
    queue: parseQueue,
    notrack: () => ({ kind: 'notrack' }),
    flow: parseFlow,
    set: parseSetUpdate,
    map: parseSetUpdate,
    meter: parseMeter,
    tproxy: parseTproxy,
    synproxy: parseSynproxy,
    dup: parseDup,
    fwd: parseFwd,
    reset: (json, context) => {
      const option = parseJsonExpression(json, context)
      return option && { kind: 'reset', option }
    },
    xt: (json) => ({
      kind: 'xt',
      type: textOf(fieldOf(json, 'type')) ?? '',
      name: textOf(fieldOf(json, 'name')) ?? '',
    }),
  }),
)

/** More than one where nft had no JSON and put the text of its statements there. */
export function parseJsonStatement(json: Json, scope: Scope): readonly Statement[] | undefined {
  if (typeof json === 'string') return parseTextStatement(json, scope)
  const entry = onlyEntry(json)
  if (entry === undefined) return undefined
  const [key, inside] = entry
  const context = { scope, datatypes: [''] }
  const found = parseJsonVerdict(json) ?? parseJsonState(key, inside) ?? parseObjectUse(key, inside, context)
  if (found !== undefined) return [found]
  const parse = parsers.get(key)
  if (parse === undefined) return [other(json)]
  const statement = parse(inside, context)
  return statement && [statement]
}

function parseTextStatement(text: string, scope: Scope): readonly Statement[] | undefined {
  const cursor = new NftCursor(text, scope)
  const { statements } = parseStatements(cursor)
  return cursor.failure === undefined ? statements : undefined
}

/** `{"counter": "name"}`; an object with keys of its own is not of this kind. */
function parseObjectUse(key: string, json: Json, context: JsonContext): Statement | undefined {
  const object = objectKinds.find((kind) => kind === key)
  if (object === undefined || (typeof json !== 'string' && fieldOf(json, 'map') === undefined)) return undefined
  const name = parseJsonExpression(json, { ...context, datatypes: ['string'] })
  return name && { kind: 'object', object, name }
}

function parseMatch(json: Json, context: JsonContext): Statement | undefined {
  const { sets } = context.scope
  const operator = operators.find((one) => one === fieldOf(json, 'op'))
  const left = parseJsonExpression(fieldOf(json, 'left'), context)
  const right = left && parseJsonExpression(fieldOf(json, 'right'), { ...context, datatypes: datatypesOf(left, sets) })
  return left && right && operator && buildMatch({ operator, left, right }, sets)
}

function parseMangle(json: Json, context: JsonContext): Statement | undefined {
  const key = parseJsonExpression(fieldOf(json, 'key'), context)
  const datatypes = key && datatypesOf(key, context.scope.sets)
  const value = datatypes && parseJsonExpression(fieldOf(json, 'value'), { ...context, datatypes })
  return key && value && { kind: 'mangle', key, value }
}

function parseVmap(json: Json, context: JsonContext): Statement | undefined {
  const key = parseJsonExpression(fieldOf(json, 'key'), context)
  const data = key && parseJsonMapData(fieldOf(json, 'data'), key, context)
  return key && data && { kind: 'vmap', key, data }
}

function familyOf(json: Json): 'ip' | 'ip6' | undefined {
  const family = fieldOf(json, 'family')
  return family === 'ip' || family === 'ip6' ? family : undefined
}

function targetOf(json: Json, context: JsonContext): { address?: Expression; port?: Expression } {
  const type = addressTypeOf(familyOf(json), context.scope.family)
  const address = parseJsonExpression(fieldOf(json, 'addr'), { ...context, datatypes: [type, 'inet_service'] })
  const port = parseJsonExpression(fieldOf(json, 'port'), { ...context, datatypes: ['inet_service'] })
  return { ...(address && { address }), ...(port && { port }) }
}

function parseNat(kind: Nat['kind'], json: Json, context: JsonContext): Statement {
  const family = familyOf(json)
  const flags = new Set(textsOf(fieldOf(json, 'flags')))
  const isPrefix = flags.has('netmap') || textsOf(fieldOf(json, 'type_flags')).includes('prefix')
  return { kind, ...(family && { family }), isPrefix, ...targetOf(json, context), flags: sortNatFlags(flags) }
}

function parseReject(json: Json, context: JsonContext): Statement {
  const type = fieldOf(json, 'type')
  if (type === 'tcp reset') return { kind: 'reject', type }
  const known = (['icmp', 'icmpv6', 'icmpx'] as const).find((one) => one === type)
  if (known === undefined) return { kind: 'reject' }
  const code = parseJsonExpression(fieldOf(json, 'expr'), { ...context, datatypes: [`${known}_code`] })
  return buildReject(context.scope.family, known, code)
}

function parseLog(json: Json): Statement {
  const prefix = textOf(fieldOf(json, 'prefix'))
  const group = numberOf(fieldOf(json, 'group'))
  const snaplen = numberOf(fieldOf(json, 'snaplen'))
  const queueThreshold = numberOf(fieldOf(json, 'queue-threshold'))
  const level = textOf(fieldOf(json, 'level'))
  const log = {
    kind: 'log' as const,
    ...(prefix !== undefined && { prefix }),
    ...(group !== undefined && { group }),
    ...(snaplen !== undefined && { snaplen }),
    ...(queueThreshold !== undefined && { queueThreshold }),
    ...(level !== undefined && { level }),
    flags: [],
  }
  return buildLog(log, new Set(textsOf(fieldOf(json, 'flags'))))
}

function parseQueue(json: Json, context: JsonContext): Statement {
  const number = parseJsonExpression(fieldOf(json, 'num'), { ...context, datatypes: ['integer'] }) ?? constant(0)
  const given = textsOf(fieldOf(json, 'flags'))
  return { kind: 'queue', number, flags: ['bypass', 'fanout'].filter((flag) => given.includes(flag)) }
}

function parseFlow(json: Json): Statement | undefined {
  const flowtable = textOf(fieldOf(json, 'flowtable'))
  return flowtable === undefined ? undefined : { kind: 'flow', flowtable: flowtable.replace(/^@/, '') }
}

function parseSetUpdate(json: Json, context: JsonContext): Statement | undefined {
  const operation = (['add', 'update', 'delete'] as const).find((one) => one === fieldOf(json, 'op'))
  const set = (textOf(fieldOf(json, 'set')) ?? textOf(fieldOf(json, 'map')))?.replace(/^@/, '')
  const key = parseJsonElement(fieldOf(json, 'elem') ?? null, { key: context, data: context })
  const data = parseJsonData(fieldOf(json, 'data'), context)
  const statements = statesOf(fieldOf(json, 'stmt'))
  if (operation === undefined || set === undefined || key === undefined) return undefined
  return { kind: 'set-update', operation, set, element: withStates({ ...key, ...(data && { data }) }, statements) }
}

function withStates(element: Element, statements: readonly State[]): Element {
  return statements.length === 0 ? element : { ...element, statements }
}

/** One, or several. */
export function statesOf(json: Json | undefined): State[] {
  return (isArray(json) ? json : [json]).flatMap((one) => {
    const [key, inside] = onlyEntry(one) ?? []
    return (key !== undefined && inside !== undefined && parseJsonState(key, inside)) || []
  })
}

function parseMeter(json: Json, context: JsonContext): Statement | undefined {
  const key = parseJsonElement(fieldOf(json, 'key') ?? null, { key: context, data: context })
  const size = numberOf(fieldOf(json, 'size'))
  const name = textOf(fieldOf(json, 'name')) ?? ''
  const statements = statesOf(fieldOf(json, 'stmt'))
  return key && { kind: 'meter', name, ...(size !== undefined && { size }), element: withStates(key, statements) }
}

function parseTproxy(json: Json, context: JsonContext): Statement {
  const family = familyOf(json)
  return { kind: 'tproxy', ...(family && { family }), ...targetOf(json, context) }
}

function parseSynproxy(json: Json): Statement {
  const mss = numberOf(fieldOf(json, 'mss'))
  const windowScale = numberOf(fieldOf(json, 'wscale'))
  const flags = sortSynproxyFlags(new Set(textsOf(fieldOf(json, 'flags'))))
  return {
    kind: 'synproxy',
    ...(mss !== undefined && { mss }),
    ...(windowScale !== undefined && { windowScale }),
    flags,
  }
}

function parseDup(json: Json, context: JsonContext): Statement {
  const isDevice = context.scope.family === 'netdev'
  const address = isDevice
    ? parseJsonExpression(fieldOf(json, 'addr'), { ...context, datatypes: ['iface_index'] })
    : targetOf(json, context).address
  const device = parseJsonExpression(fieldOf(json, 'dev'), { ...context, datatypes: ['iface_index'] })
  return { kind: 'dup', ...(address && { address }), ...(device && { device }) }
}

function parseFwd(json: Json, context: JsonContext): Statement | undefined {
  const device = parseJsonExpression(fieldOf(json, 'dev'), { ...context, datatypes: ['iface_index'] })
  const family = familyOf(json)
  const { address } = targetOf(json, context)
  if (device === undefined || !isObject(json)) return undefined
  return { kind: 'fwd', device, ...(family && { family }), ...(address && { address }) }
}
