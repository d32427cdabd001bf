/**
 * nftables expressions as data, in the words of nft's own JSON (libnftables-json(5)): what a statement looks at, compares
 * with, or writes.
 */

export type Expression =
  | Value
  | { readonly kind: 'wildcard' }
  /** Flags side by side: `established,related`. */
  | { readonly kind: 'list'; readonly items: readonly Expression[] }
  | { readonly kind: 'concat'; readonly parts: readonly Expression[] }
  | { readonly kind: 'prefix'; readonly address: Expression; readonly length: number }
  | { readonly kind: 'range'; readonly from: Expression; readonly to: Expression }
  | AnonymousSet
  /** `@name`: a set or map of the same table. */
  | { readonly kind: 'reference'; readonly set: string }
  /** `key map data`: the value that an element of `data` has for `key`. */
  | { readonly kind: 'map'; readonly key: Expression; readonly data: Expression }
  | {
      readonly kind: 'binary'
      readonly operator: BinaryOperator
      readonly left: Expression
      readonly right: Expression
    }
  | Selector
  /** What Portolan does not know, as it was written. */
  | Other

/**
 * A constant as nft's JSON has it: addresses, names and flags are texts, marks, ports and counts are numbers, `exists` and
 * `missing` are booleans. A number beyond 2^53 is a text that begins with `0x`.
 */
export type Value = { readonly kind: 'value'; readonly value: string | number | boolean }

export type AnonymousSet = { readonly kind: 'set'; readonly elements: readonly Element[] }

export type BinaryOperator = '&' | '|' | '^' | '<<' | '>>'

/** An element of a set or, with `data`, of a map. */
export type Element = {
  readonly key: Expression
  readonly data?: Expression | Verdict
  readonly comment?: string
  readonly timeoutMilliseconds?: number
  readonly expiresMilliseconds?: number
  /** A counter, a limit, a quota: what the element keeps for itself. */
  readonly statements?: readonly State[]
}

/** Where a value comes from. */
export type Selector =
  /** `tcp dport`; `th` stands for any transport protocol. */
  | { readonly kind: 'payload'; readonly protocol: string; readonly field: string }
  /** `@th,16,16`; offset and length in bits. */
  | { readonly kind: 'raw-payload'; readonly base: string; readonly offset: number; readonly length: number }
  /** An IPv6 extension header; without a field, whether it is there. */
  | { readonly kind: 'exthdr'; readonly name: string; readonly field?: string }
  | { readonly kind: 'tcp-option'; readonly name: string; readonly field?: string }
  | {
      readonly kind: 'raw-tcp-option'
      readonly option: number
      readonly offset: number
      readonly length: number
    }
  | { readonly kind: 'ip-option'; readonly name: string; readonly field?: string }
  | { readonly kind: 'sctp-chunk'; readonly name: string; readonly field?: string }
  | { readonly kind: 'dccp-option'; readonly type: number }
  | { readonly kind: 'meta'; readonly key: string }
  /** `ct original ip saddr` has key `ip saddr`. */
  | { readonly kind: 'ct'; readonly key: string; readonly direction?: Direction }
  | { readonly kind: 'rt'; readonly key: string; readonly family?: 'ip' | 'ip6' }
  | { readonly kind: 'socket'; readonly key: string; readonly level?: number }
  | { readonly kind: 'osf'; readonly key: 'name' | 'version'; readonly ttl?: 'loose' | 'skip' }
  | {
      readonly kind: 'ipsec'
      readonly direction: 'in' | 'out'
      readonly policy: number
      readonly family?: 'ip' | 'ip6'
      readonly key: string
    }
  /** `flags` are what is looked up: `saddr`, `daddr`, `mark`, `iif`, `oif`, in this order. */
  | { readonly kind: 'fib'; readonly result: string; readonly flags: readonly string[] }
  | {
      readonly kind: 'numgen'
      readonly mode: 'inc' | 'random'
      readonly modulus: number
      readonly offset: number
    }
  | {
      readonly kind: 'jhash'
      readonly of: Expression
      readonly modulus: number
      readonly seed?: number
      readonly offset: number
    }
  | { readonly kind: 'symhash'; readonly modulus: number; readonly offset: number }

export type Direction = 'original' | 'reply'

/** What ends a walk, or leads it on. */
export type Verdict =
  | { readonly kind: 'accept' }
  | { readonly kind: 'drop' }
  | { readonly kind: 'continue' }
  | { readonly kind: 'return' }
  | { readonly kind: 'jump'; readonly target: string }
  | { readonly kind: 'goto'; readonly target: string }

/** What counts and bounds: it stands in rules, in elements, and as a template in the head of a set. */
export type State =
  | { readonly kind: 'counter'; readonly packets: number; readonly bytes: number }
  | Limit
  | { readonly kind: 'quota'; readonly isOver: boolean; readonly bytes: number; readonly usedBytes: number }
  | { readonly kind: 'ct-count'; readonly isOver: boolean; readonly count: number }
  /** When a packet last came by; absent for never. */
  | { readonly kind: 'last'; readonly usedMilliseconds?: number }
  | Other

/** `rate` and `burst` are packets, or bytes. */
export type Limit = {
  readonly kind: 'limit'
  readonly isOver: boolean
  readonly rate: number
  readonly unit: 'packets' | 'bytes'
  readonly per: 'second' | 'minute' | 'hour' | 'day' | 'week'
  readonly burst: number
}

/** Text as `nft list` has it, or the JSON of one object. */
export type Other = { readonly kind: 'other'; readonly syntax: 'text' | 'json'; readonly text: string }

export function constant(value: Value['value']): Value {
  return { kind: 'value', value }
}
