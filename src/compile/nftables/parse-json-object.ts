/** Sets, maps, flowtables, named objects and base chains out of nft's JSON. */
import type { Expression } from './expression'
import type { Json, JsonObject } from './json-text'
import { findChainType, findHook } from './parse-base-chain'
import { valueTypesOf } from './parse-datatype'
import type { DraftSet } from './parse-draft'
import { isArray, isObject, numberOf, textOf, textsOf } from './parse-json-entries'
import { parseJsonElement, parseJsonExpression } from './parse-json-expression'
import { parseJsonLimit } from './parse-json-state'
import { statesOf } from './parse-json-statement'
import { createSet, sortSetFlags } from './parse-set'
import type { BaseChain, DataType, Flowtable, NamedObject, ObjectBody } from './ruleset'
import type { Scope } from './tokenize-nft'

export function parseJsonSet(json: JsonObject, scope: Scope): DraftSet | undefined {
  const name = textOf(json.name)
  const key = parseType(json.type, scope)
  const data = parseType(json.map, scope)
  if (name === undefined || key === undefined) return undefined
  const timeout = numberOf(json.timeout)
  const gcInterval = numberOf(json['gc-interval'])
  const size = numberOf(json.size)
  const comment = textOf(json.comment)
  const flags = [...textsOf(json.flags), ...(timeout === undefined ? [] : ['timeout'])]
  const draft: DraftSet = {
    ...createSet(name),
    key,
    ...(data && { data }),
    ...(comment !== undefined && { comment }),
    flags: sortSetFlags(flags),
    ...(timeout !== undefined && { timeoutMilliseconds: timeout * 1000 }),
    ...(gcInterval !== undefined && { gcIntervalMilliseconds: gcInterval * 1000 }),
    ...(size !== undefined && { size }),
    ...((json.policy === 'memory' || json.policy === 'performance') && { policy: json.policy }),
    isAutoMerged: json['auto-merge'] === true,
    statements: statesOf(json.stmt),
  }
  return draft
}

/** Adds what can be read; says how many elements cannot. */
export function addJsonElements(set: DraftSet, json: Json | undefined, scope: Scope): number {
  const want = {
    key: { scope, datatypes: valueTypesOf(set.key) },
    data: { scope, datatypes: valueTypesOf(set.data) },
  }
  const given = isArray(json) ? json : json === undefined ? [] : [json]
  let bad = 0
  for (const one of given) {
    const element = parseJsonElement(one, want)
    if (element === undefined) bad++
    else set.elements.push(element)
  }
  return bad
}

/** JSON does not say that a map's values may be ranges; they say it. */
export function hasIntervalData({ elements }: DraftSet): boolean {
  return elements.some(({ data }) => data !== undefined && isInterval(data))
}

function isInterval(data: { readonly kind: string; readonly parts?: readonly Expression[] }): boolean {
  return data.kind === 'range' || data.kind === 'prefix' || data.parts?.some(isInterval) === true
}

/** `"ipv4_addr"`, `["ipv4_addr", "inet_service"]`, `"ipv4_addr . inet_service"`, `{"typeof": …}`. */
function parseType(json: Json | undefined, scope: Scope): DataType | undefined {
  if (isObject(json)) {
    const expression = parseJsonExpression(json.typeof, { scope, datatypes: [''] })
    return expression && { kind: 'typeof', expression }
  }
  const names = textsOf(json).flatMap((text) => text.split(' . '))
  return names.length === 0 ? undefined : { kind: 'type', names }
}

export function parseJsonFlowtable(json: JsonObject): Flowtable | undefined {
  const name = textOf(json.name)
  if (name === undefined) return undefined
  return {
    name,
    hook: textOf(json.hook) ?? 'ingress',
    priority: numberOf(json.prio) ?? 0,
    devices: textsOf(json.dev),
    hasCounter: json.counter !== undefined,
    flags: textsOf(json.flags),
  }
}

/** Undefined for a chain that the kernel does not call. */
export function parseJsonBase(json: JsonObject): BaseChain | undefined {
  const type = findChainType(textOf(json.type) ?? '')
  const hook = findHook(textOf(json.hook) ?? '')
  if (type === undefined || hook === undefined) return undefined
  return {
    type,
    hook,
    priority: numberOf(json.prio) ?? 0,
    devices: textsOf(json.dev),
    ...((json.policy === 'accept' || json.policy === 'drop') && { policy: json.policy }),
    flags: textsOf(json.flags),
  }
}

export function parseJsonObject(kind: string, json: JsonObject): NamedObject | undefined {
  const name = textOf(json.name)
  const body = parseBody(kind, json)
  const comment = textOf(json.comment)
  return name === undefined || body === undefined
    ? undefined
    : { name, ...(comment !== undefined && { comment }), ...body }
}

function parseBody(kind: string, json: JsonObject): ObjectBody | undefined {
  const l3protocol = textOf(json.l3proto)
  const head = { protocol: textOf(json.protocol) ?? '', ...(l3protocol !== undefined && { l3protocol }) }
  switch (kind) {
    case 'counter':
      return { kind, packets: numberOf(json.packets) ?? 0, bytes: numberOf(json.bytes) ?? 0 }
    case 'quota':
      return { kind, isOver: json.inv === true, bytes: numberOf(json.bytes) ?? 0, usedBytes: numberOf(json.used) ?? 0 }
    case 'limit':
      return parseJsonLimit(json)
    case 'ct helper':
      return { kind, type: textOf(json.type) ?? '', ...head }
    case 'ct timeout':
      return { kind, ...head, policy: parsePolicy(json.policy) }
    case 'ct expectation':
      return {
        kind,
        ...head,
        port: numberOf(json.dport) ?? 0,
        timeoutMilliseconds: numberOf(json.timeout) ?? 0,
        size: numberOf(json.size) ?? 0,
      }
    case 'synproxy': {
      const mss = numberOf(json.mss)
      const windowScale = numberOf(json.wscale)
      const sizes = { ...(mss !== undefined && { mss }), ...(windowScale !== undefined && { windowScale }) }
      return { kind, ...sizes, flags: textsOf(json.flags) }
    }
    case 'secmark':
      return { kind, context: textOf(json.context) ?? '' }
    default:
      return undefined
  }
}

function parsePolicy(json: Json | undefined): { readonly state: string; readonly seconds: number }[] {
  if (!isObject(json)) return []
  return Object.entries(json).map(([state, seconds]) => ({ state, seconds: numberOf(seconds) ?? 0 }))
}
