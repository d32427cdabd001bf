/** What every engine answers about a packet: hops, a verdict with its reasons, and targets with their shares. */
import type { ObjectRef, Origin } from '#base/finding'

export type VerdictKind = 'allowed' | 'denied' | 'dropped' | 'rejected' | 'unknown'

/** One reason of a verdict, and what it rests on. */
export type Reason = {
  readonly code: string
  readonly sentence: string
  readonly object?: ObjectRef
  /** A rule as saved, with its line in the ruleset. */
  readonly rule?: string
  readonly line?: number
  readonly origin?: Origin
}

/** `because` is never empty. */
export type Verdict = { readonly kind: VerdictKind; readonly because: readonly [Reason, ...Reason[]] }

/** Where a hop happened; `line` is the rule's line in the saved text. */
export type HopPlace = {
  readonly hook: string
  readonly table?: string
  readonly chain?: string
  readonly line?: number
}

/** `share` is the part of connections that take this hop, absent when all do; `when` is a condition on unknown fields. */
export type Hop = {
  readonly at: HopPlace
  readonly rule?: string
  readonly did: string
  readonly because: string
  readonly share?: number
  readonly when?: string
  readonly before?: string
  readonly after?: string
}

/** `address` is `ip:port` (or `ip` where there is no port); shares of one answer add up to 1 unless part of it is dropped. */
export type Target = { readonly address: string; readonly share: number }

export type Masquerade = { readonly condition: string; readonly rule: string }

/** An answer that differs from the main one, and when it holds. */
export type Branch = {
  readonly when: string
  readonly verdict: Verdict
  readonly targets: readonly Target[]
  readonly masquerade: readonly Masquerade[]
}

export type Trace = {
  readonly verdict: Verdict
  readonly targets: readonly Target[]
  readonly masquerade: readonly Masquerade[]
  readonly hops: readonly Hop[]
  readonly branches?: readonly Branch[]
  readonly simulated?: Readonly<Record<string, number>>
}
