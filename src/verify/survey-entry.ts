/** A destination that rules translate or refuse, and the rules that have none to show. */
import type { Family } from '#base/ip'
import { countOf } from '#base/text'

export type Entry = {
  /** `shop/web:http`, or the chain in parentheses. */
  readonly name: string
  /** An address; or any address of the node, one of which may be told; or any address at all. */
  readonly at:
    | { readonly kind: 'address'; readonly text: string }
    | { readonly kind: 'node'; readonly text?: string }
    | { readonly kind: 'any' }
  readonly family: Family
  readonly port: number
  readonly protocol: 'tcp' | 'udp' | 'sctp'
  /** A rule that should send somewhere, not one that refuses. */
  readonly isTranslation: boolean
}

export type HiddenRule = { readonly why: string; readonly line: number | undefined }

export type Entries = { readonly entries: readonly Entry[]; readonly hidden: readonly HiddenRule[] }

/** Each destination once, the first rule's. */
export function uniqueEntries(entries: readonly Entry[]): readonly Entry[] {
  const unique = new Map<string, Entry>()
  for (const entry of entries) {
    const place = entry.at.kind === 'address' ? entry.at.text : `${entry.at.kind} ${entry.family}`
    const key = `${place} ${entry.protocol} ${entry.port}`
    if (!unique.has(key)) unique.set(key, entry)
  }
  return [...unique.values()]
}

/** Undefined when every rule is shown. */
export function summarizeHidden(hidden: readonly HiddenRule[]): string | undefined {
  if (hidden.length === 0) return undefined
  const byWhy = new Map<string, { count: number; line: number | undefined }>()
  for (const { why, line } of hidden) {
    const entry = byWhy.get(why) ?? { count: 0, line }
    entry.count++
    byWhy.set(why, entry)
  }
  const parts = [...byWhy].map(([why, { count, line }]) => {
    const first = line === undefined ? '' : count === 1 ? ` (line ${line})` : ` (first: line ${line})`
    return `${count} for ${why}${first}`
  })
  return `${countOf(hidden.length, 'rule')} not shown: ${parts.join(', ')}`
}

/** A comment of kube-proxy's names a Service; any other rule is told by its chain. */
export function nameOfRule(comment: string | undefined, chain: string): string {
  const text = comment?.replace(
    / (cluster IP|external IP|loadbalancer IP|has no (local )?endpoints|external destinations|loadbalancer ingress)$/,
    '',
  )
  return text !== undefined && /^[a-z0-9][a-z0-9-]*\/[a-z0-9][a-z0-9.-]*(:[\w-]+)?$/.test(text) ? text : `(${chain})`
}
