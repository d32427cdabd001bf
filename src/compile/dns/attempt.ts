/** One question of a resolver, what came back, and how often it was sent. */
import type { DnsRecord, Rcode } from './record'

/** What a nameserver says to one question; silence is an outcome too. */
export type Heard = {
  readonly rcode: Rcode | 'TIMEOUT'
  readonly answers: readonly DnsRecord[]
  /** True when the resolver takes it for an answer with records. */
  readonly isPositive: boolean
  readonly because: string
  /** The name is outside the cluster: what is said of it is Portolan's assumption. */
  readonly isAssumed?: boolean
  /** The question went to a nameserver outside and counts as answered. */
  readonly isForwarded?: boolean
  /** How many of the records a reply over UDP can hold, when not all. */
  readonly fitting?: number
  readonly unsure?: readonly string[]
}

export type Attempt = Heard & { readonly name: string; readonly type: string; readonly sends: number }

export type Ask = (name: string, type: string) => Heard

/**
 * How the questions for one name ended: `found` ends the search, `missing` and `empty` (no records of the type) differ in
 * musl alone, `failed` is a failure of the server, `stopped` one that ends the walk of the search list.
 */
export type ExchangeEnd = 'found' | 'missing' | 'empty' | 'failed' | 'stopped'

export type Exchange = { readonly attempts: readonly Attempt[]; readonly end: ExchangeEnd; readonly seconds: number }

export type Resolution = {
  readonly attempts: readonly Attempt[]
  readonly end: ExchangeEnd
  /** The candidate that was found. */
  readonly found?: string
  readonly seconds: number
  /** How often glibc did all of it, when more than once: its first buffer was too small for the addresses. */
  readonly passes?: number
}

/** NOTIMP, REFUSED and SERVFAIL: the server could not or would not say. */
export function isFailure({ rcode }: Heard): boolean {
  return rcode === 'SERVFAIL' || rcode === 'REFUSED' || rcode === 'NOTIMP'
}

export function isSilent({ rcode }: Heard): boolean {
  return rcode === 'TIMEOUT'
}

export function countQueries(attempts: readonly Attempt[]): number {
  return attempts.reduce((sum, { sends }) => sum + sends, 0)
}
