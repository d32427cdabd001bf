/** nftables statements as data, in the words of nft's own JSON (libnftables-json(5)): what a rule asks and does. */
import type { Element, Expression, Other, State, Verdict } from './expression'

export type Statement =
  | Match
  | Verdict
  | State
  /** A jump to rules that stand in the rule itself. */
  | { readonly kind: 'block'; readonly verdict: 'jump' | 'goto'; readonly rules: readonly Rule[] }
  /** The verdict that an element of `data`, a set or a reference, has for `key`. */
  | { readonly kind: 'vmap'; readonly key: Expression; readonly data: Expression }
  | ObjectUse
  /** `meta mark set …`, `ip dscp set …`: writes into the packet or what the kernel keeps of it. */
  | { readonly kind: 'mangle'; readonly key: Expression; readonly value: Expression }
  | Nat
  /** Without a type: port unreachable, in the table's own protocol. */
  | { readonly kind: 'reject'; readonly type?: RejectType; readonly code?: Expression }
  | Log
  | { readonly kind: 'queue'; readonly number?: Expression; readonly flags: readonly string[] }
  | { readonly kind: 'notrack' }
  | { readonly kind: 'flow'; readonly flowtable: string }
  | SetUpdate
  | { readonly kind: 'meter'; readonly name: string; readonly size?: number; readonly element: Element }
  | {
      readonly kind: 'tproxy'
      readonly family?: 'ip' | 'ip6'
      readonly address?: Expression
      readonly port?: Expression
    }
  | {
      readonly kind: 'synproxy'
      readonly mss?: number
      readonly windowScale?: number
      readonly flags: readonly string[]
    }
  | { readonly kind: 'dup'; readonly address?: Expression; readonly device?: Expression }
  | {
      readonly kind: 'fwd'
      readonly device: Expression
      readonly family?: 'ip' | 'ip6'
      readonly address?: Expression
    }
  /** `reset tcp option …` takes the option out. */
  | { readonly kind: 'reset'; readonly option: Expression }
  /** A match or target of iptables-nft that nft cannot tell in its own words. */
  | { readonly kind: 'xt'; readonly type: string; readonly name: string }
  | Other

/** Of flags, `in` asks whether any bit of `right` is set in `left`, and `!` whether none is. */
export type Match = {
  readonly kind: 'match'
  readonly operator: '==' | '!=' | '<' | '>' | '<=' | '>=' | 'in' | '!'
  readonly left: Expression
  readonly right: Expression
}

export type ObjectKind =
  | 'counter'
  | 'quota'
  | 'limit'
  | 'ct helper'
  | 'ct timeout'
  | 'ct expectation'
  | 'synproxy'
  | 'secmark'

/** `counter name "x"`, `ct helper set "ftp"`; `name` is a value, or a map that gives the name. */
export type ObjectUse = { readonly kind: 'object'; readonly object: ObjectKind; readonly name: Expression }

/** With `isPrefix` a whole prefix is mapped onto another, host bits kept. A map's value may be address and port. */
export type Nat = {
  readonly kind: 'snat' | 'dnat' | 'masquerade' | 'redirect'
  readonly family?: 'ip' | 'ip6'
  readonly isPrefix: boolean
  readonly address?: Expression
  readonly port?: Expression
  readonly flags: readonly NatFlag[]
}

export type NatFlag = 'random' | 'fully-random' | 'persistent'

export type RejectType = 'tcp reset' | 'icmp' | 'icmpv6' | 'icmpx'

export type Log = {
  readonly kind: 'log'
  readonly prefix?: string
  readonly group?: number
  readonly snaplen?: number
  readonly queueThreshold?: number
  readonly level?: string
  readonly flags: readonly string[]
}

/** `update @name { ip saddr timeout 1m }`: the packet's own values become an element. */
export type SetUpdate = {
  readonly kind: 'set-update'
  readonly operation: 'add' | 'update' | 'delete'
  readonly set: string
  readonly element: Element
}

/** What is known of an object that was read: the line it begins at, its text there, the kernel's number for it. */
export type Dumped = { readonly line?: number; readonly text?: string; readonly handle?: number }

export type Rule = Dumped & { readonly statements: readonly Statement[]; readonly comment?: string }
