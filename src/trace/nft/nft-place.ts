/** Where a statement stands, and what had to be true on the way to it. */
import type { Rule } from '#compile/nftables/statement'
import type { HopEvent, Path } from '../path'
import type { Answered } from '../question'
import type { Hook, View } from '../view'
import type { World } from '../world'
import type { Sets } from './match-statement'

export type NftPlace = {
  readonly world: World
  readonly hook: Hook
  /** `ip kube-proxy`. */
  readonly table: string
  readonly sets: Sets
  readonly chain: string
  readonly rule: Rule
  readonly conditions: readonly Answered[]
  readonly caller: Rule | undefined
  readonly hasMarkGate: boolean
  /** The chain's priority is before connection tracking's. */
  readonly isBeforeTracking: boolean
}

export function nftView(place: NftPlace): (path: Path) => View {
  return (path) => ({
    path,
    fields: path.fields,
    hook: place.hook,
    table: place.isBeforeTracking ? 'raw' : place.table,
    world: place.world,
  })
}

export function nftHop(place: NftPlace, did: string): HopEvent {
  return { hook: place.hook, table: place.table, chain: place.chain, rule: place.rule, kind: 'rule', did }
}
