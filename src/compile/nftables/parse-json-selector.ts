/** Selectors out of nft's JSON. */
import type { Direction, Expression, Selector } from './expression'
import type { Json } from './json-text'
import { fieldOf, numberOf, textOf, textsOf } from './parse-json-entries'
import { canonicalCtKey, canonicalMetaKey, sortFibFlags } from './parse-selector'
import type { Scope } from './tokenize-nft'

type Context = { readonly scope: Scope; readonly datatypes: readonly string[] }
type Given = {
  readonly context: Context
  readonly parse: (json: Json | undefined, context: Context) => Expression | undefined
}

/** Undefined when the key or its content is not known. */
export function parseJsonSelector(key: string, json: Json, given: Given): Selector | undefined {
  switch (key) {
    case 'payload':
      return parsePayload(json)
    case 'meta': {
      const name = textOf(fieldOf(json, 'key'))
      return name === undefined ? undefined : { kind: 'meta', key: canonicalMetaKey(name) }
    }
    case 'ct':
      return parseCt(json, given.context.scope)
    case 'fib':
      return parseFib(json)
    case 'numgen':
    case 'jhash':
    case 'symhash':
      return parseModulus(key, json, given)
    case 'exthdr':
      return parseExtension(json)
    case 'tcp option':
      return parseTcpOption(json)
    case 'ip option':
      return named(json, 'ip-option')
    case 'sctp chunk':
      return named(json, 'sctp-chunk')
    case 'dccp option': {
      const type = numberOf(fieldOf(json, 'type'))
      return type === undefined ? undefined : { kind: 'dccp-option', type }
    }
    default:
      return parseRare(key, json)
  }
}

function parseRare(key: string, json: Json): Selector | undefined {
  const name = textOf(fieldOf(json, 'key'))
  switch (key) {
    case 'rt': {
      const family = familyOf(json)
      return name === undefined ? undefined : { kind: 'rt', key: name, ...(family && { family }) }
    }
    case 'socket': {
      const level = numberOf(fieldOf(json, 'level'))
      return name === undefined ? undefined : { kind: 'socket', key: name, ...(level !== undefined && { level }) }
    }
    case 'osf': {
      const ttl = fieldOf(json, 'ttl')
      if (name !== 'name' && name !== 'version') return undefined
      return { kind: 'osf', key: name, ...((ttl === 'loose' || ttl === 'skip') && { ttl }) }
    }
    case 'ipsec': {
      const direction = fieldOf(json, 'dir')
      const family = familyOf(json)
      if (name === undefined || (direction !== 'in' && direction !== 'out')) return undefined
      const policy = numberOf(fieldOf(json, 'spnum')) ?? 0
      return { kind: 'ipsec', direction, policy, ...(family && { family }), key: name }
    }
    default:
      return undefined
  }
}

function parsePayload(json: Json): Selector | undefined {
  const protocol = textOf(fieldOf(json, 'protocol'))
  const field = textOf(fieldOf(json, 'field'))
  if (fieldOf(json, 'tunnel') !== undefined) return undefined
  if (protocol !== undefined && field !== undefined) return { kind: 'payload', protocol, field }
  const base = textOf(fieldOf(json, 'base'))
  const bits = bitsOf(json)
  return base === undefined || bits === undefined ? undefined : { kind: 'raw-payload', base, ...bits }
}

function bitsOf(json: Json): { readonly offset: number; readonly length: number } | undefined {
  const offset = numberOf(fieldOf(json, 'offset'))
  const length = numberOf(fieldOf(json, 'len'))
  return offset === undefined || length === undefined ? undefined : { offset, length }
}

function parseCt(json: Json, scope: Scope): Selector | undefined {
  const key = textOf(fieldOf(json, 'key'))
  if (key === undefined) return undefined
  const family = familyOf(json)
  const direction = directionOf(json)
  const known = family === undefined ? canonicalCtKey(key, scope.family) : `${family} ${key}`
  return { kind: 'ct', key: known, ...(direction && { direction }) }
}

function directionOf(json: Json): Direction | undefined {
  const direction = fieldOf(json, 'dir')
  return direction === 'original' || direction === 'reply' ? direction : undefined
}

function familyOf(json: Json): 'ip' | 'ip6' | undefined {
  const family = fieldOf(json, 'family')
  return family === 'ip' || family === 'ip6' ? family : undefined
}

function parseFib(json: Json): Selector | undefined {
  const result = textOf(fieldOf(json, 'result'))
  const flags = sortFibFlags(new Set(textsOf(fieldOf(json, 'flags'))))
  return result === undefined ? undefined : { kind: 'fib', result, flags }
}

function parseModulus(kind: 'numgen' | 'jhash' | 'symhash', json: Json, given: Given): Selector | undefined {
  const modulus = numberOf(fieldOf(json, 'mod'))
  if (modulus === undefined) return undefined
  const offset = numberOf(fieldOf(json, 'offset')) ?? 0
  if (kind === 'symhash') return { kind, modulus, offset }
  if (kind === 'numgen') {
    const mode = fieldOf(json, 'mode')
    return mode === 'inc' || mode === 'random' ? { kind, mode, modulus, offset } : undefined
  }
  const of = given.parse(fieldOf(json, 'expr'), { ...given.context, datatypes: [''] })
  const seed = numberOf(fieldOf(json, 'seed'))
  return of && { kind, of, modulus, ...(seed !== undefined && { seed }), offset }
}

/** `offset` is the index of an address in a routing header. */
function parseExtension(json: Json): Selector | undefined {
  const name = textOf(fieldOf(json, 'name'))
  const field = textOf(fieldOf(json, 'field'))
  const offset = numberOf(fieldOf(json, 'offset'))
  if (name === undefined || field === undefined) return name === undefined ? undefined : { kind: 'exthdr', name }
  return { kind: 'exthdr', name, field: offset === undefined ? field : `${field}[${offset}]` }
}

function parseTcpOption(json: Json): Selector | undefined {
  const option = numberOf(fieldOf(json, 'base'))
  const bits = bitsOf(json)
  if (option !== undefined && bits !== undefined) return { kind: 'raw-tcp-option', option, ...bits }
  return named(json, 'tcp-option')
}

function named(json: Json, kind: 'tcp-option' | 'ip-option' | 'sctp-chunk'): Selector | undefined {
  const name = textOf(fieldOf(json, 'name'))
  const field = textOf(fieldOf(json, 'field'))
  return name === undefined ? undefined : { kind, name, ...(field !== undefined && { field }) }
}
