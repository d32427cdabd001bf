/** Listings of `nft -t`, which leave out what sets and maps hold and do not say so. */
import { type DraftChain, type Lead, type Notes, noteFinding } from './parse-draft'
import type { Statement } from './statement'

/**
 * A table whose sets and maps are all empty, while chains that go on to others or translate are led to by nothing: only elements
 * can lead to them. Its sets are marked, so that no answer rests on their being empty.
 */
export function findTerse(notes: Notes, leads: readonly Lead[]): void {
  for (const table of notes.tables.values()) {
    const still = [...table.sets.values()].filter(({ flags }) => !flags.includes('dynamic'))
    const hasVerdicts = still.some(({ data }) => data?.kind === 'type' && data.names.includes('verdict'))
    if (!hasVerdicts || still.some(({ elements }) => elements.length > 0)) continue
    const led = new Set(leads.filter((lead) => lead.table === table).map(({ to }) => to))
    const left = [...table.chains.values()].filter((chain) => isLeft(chain, led))
    const [first] = left
    if (first === undefined) continue
    for (const set of still) table.sets.set(set.name, { ...set, isTerse: true })
    const { family, name } = table
    const message = `no set or map of table ${family} ${name} has elements, and nothing leads to ${left.length === 1 ? 'chain' : `${left.length} chains such as`} ${first.name}: the listing seems to be that of nft -t, which leaves elements out`
    const { line } = first
    noteFinding(notes, 'nft.terse', { message, hint: 'take it without -t', ...(line !== undefined && { line }) })
  }
}

const leading: ReadonlySet<Statement['kind']> = new Set([
  'jump',
  'goto',
  'vmap',
  'dnat',
  'snat',
  'masquerade',
  'redirect',
])

/** Chains without a rule are what a program has emptied and will delete. */
function isLeft({ name, base, rules }: DraftChain, led: ReadonlySet<string>): boolean {
  return (
    base === undefined &&
    !led.has(name) &&
    rules.some(({ statements }) => statements.some(({ kind }) => leading.has(kind)))
  )
}
