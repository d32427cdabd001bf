/**
 * An nftables ruleset as data: what the renderer builds, the printers print, the parser reads and the tracer walks. It
 * holds any node's tables, not kube-proxy's alone. Statements are in `statement.ts`, expressions in `expression.ts`.
 */
import type { Element, Expression, State } from './expression'
import type { Dumped, Rule } from './statement'

export type TableFamily = 'ip' | 'ip6' | 'inet' | 'arp' | 'bridge' | 'netdev'

/** Tables by `tableKey`, in listed order. */
export type Ruleset = { readonly tables: ReadonlyMap<string, Table> }

/** Everything in listed order; nft lists objects, then sets and maps, then flowtables, then chains. */
export type Table = Dumped & {
  readonly family: TableFamily
  readonly name: string
  readonly comment?: string
  readonly flags: readonly string[]
  readonly objects: readonly NamedObject[]
  /** Sets and maps are in one order and share their names. */
  readonly sets: ReadonlyMap<string, NamedSet>
  readonly flowtables: ReadonlyMap<string, Flowtable>
  readonly chains: ReadonlyMap<string, Chain>
}

export function rulesetOf(tables: Iterable<Table>): Ruleset {
  return { tables: new Map(Array.from(tables, (table) => [tableKey(table), table])) }
}

export function tableKey({ family, name }: Pick<Table, 'family' | 'name'>): string {
  return `${family} ${name}`
}

/** `type ipv4_addr . inet_service` has names, `typeof ip saddr . tcp dport` the expressions. */
export type DataType =
  | { readonly kind: 'type'; readonly names: readonly string[] }
  | { readonly kind: 'typeof'; readonly expression: Expression }

export type SetFlag = 'constant' | 'dynamic' | 'interval' | 'timeout'

/** A map when it has `data`: verdicts and objects (`counter`, `ct helper`) are types of that name. */
export type NamedSet = Dumped & {
  readonly name: string
  readonly key: DataType
  readonly data?: DataType
  /** The values of a map may be ranges: `type ipv4_addr : interval ipv4_addr`. */
  readonly isDataInterval: boolean
  readonly comment?: string
  readonly flags: readonly SetFlag[]
  readonly timeoutMilliseconds?: number
  readonly gcIntervalMilliseconds?: number
  readonly size?: number
  readonly policy?: 'performance' | 'memory'
  readonly isAutoMerged: boolean
  /** What each element gets for itself: `counter`. */
  readonly statements: readonly State[]
  readonly elements: readonly Element[]
  /** The listing left the elements out (`nft -t`): which there are is not known. */
  readonly isTerse?: boolean
}

type ObjectHead = Dumped & { readonly name: string; readonly comment?: string }

export type NamedObject = ObjectHead & ObjectBody

export type ObjectBody =
  | Exclude<State, { readonly kind: 'ct-count' | 'last' }>
  | {
      readonly kind: 'ct helper'
      readonly type: string
      readonly protocol: string
      readonly l3protocol?: string
    }
  | {
      readonly kind: 'ct timeout'
      readonly protocol: string
      readonly l3protocol?: string
      readonly policy: readonly { readonly state: string; readonly seconds: number }[]
    }
  | {
      readonly kind: 'ct expectation'
      readonly protocol: string
      readonly l3protocol?: string
      readonly port: number
      readonly timeoutMilliseconds: number
      readonly size: number
    }
  | {
      readonly kind: 'synproxy'
      readonly mss?: number
      readonly windowScale?: number
      readonly flags: readonly string[]
    }
  | { readonly kind: 'secmark'; readonly context: string }

export type Flowtable = Dumped & {
  readonly name: string
  readonly hook: string
  readonly priority: number
  readonly devices: readonly string[]
  readonly hasCounter: boolean
  readonly flags: readonly string[]
}

/** A chain with `base` is called by the kernel, any other by jumps alone. */
export type Chain = Dumped & {
  readonly name: string
  readonly comment?: string
  readonly base?: BaseChain
  readonly rules: readonly Rule[]
}

export type BaseChain = {
  readonly type: 'filter' | 'nat' | 'route'
  readonly hook: Hook
  readonly priority: number
  readonly devices: readonly string[]
  readonly policy?: 'accept' | 'drop'
  readonly flags: readonly string[]
}

export type Hook = 'ingress' | 'prerouting' | 'input' | 'forward' | 'output' | 'postrouting' | 'egress'
