/** How a lookup could cost fewer questions: each suggestion is tried and counted before it is made. */
import { countOf } from '#base/text'
import { type Ask, countQueries, type Resolution } from './attempt'
import { foldName } from './domain-name'
import { type Lookup, resolveName } from './resolve-name'
import type { ResolverSettings } from './resolver-settings'

export type Advice = { readonly change: string; readonly queries: number; readonly sentence: string }

export type Priced = { readonly lookup: Lookup; readonly settings: ResolverSettings; readonly ask: Ask }

/** Only changes that lead to the same name are suggested. */
export function adviseLookup(priced: Priced, resolution: Resolution): readonly Advice[] {
  const { found } = resolution
  if (found === undefined) return []
  const now = countQueries(resolution.attempts)
  const isBetter = (advice: Advice | undefined): advice is Advice => advice !== undefined && advice.queries < now
  return [withDot(priced, found), withNdots(priced, found), withOneType(priced, found)].filter(isBetter)
}

function withDot({ lookup, settings, ask }: Priced, found: string): Advice | undefined {
  const queries = costOf({ lookup: { ...lookup, name: found }, settings, ask }, found)
  if (queries === undefined) return undefined
  const isTyped = foldName(lookup.name) === foldName(found)
  const sentence = isTyped
    ? `a trailing dot makes it ${queries}: ask for "${found}"`
    : `the whole name with a trailing dot makes it ${queries}: ask for "${found}"`
  return { change: 'trailing-dot', queries, sentence }
}

/** The largest ndots that costs least: short names keep their search list. */
function withNdots(priced: Priced, found: string): Advice | undefined {
  const { settings } = priced
  let best: { readonly ndots: number; readonly queries: number } | undefined
  for (let ndots = settings.ndots - 1; ndots >= 1; ndots--) {
    const queries = costOf({ ...priced, settings: { ...settings, ndots } }, found)
    if (queries !== undefined && queries < (best?.queries ?? Number.POSITIVE_INFINITY)) best = { ndots, queries }
  }
  if (best === undefined) return undefined
  const { ndots, queries } = best
  const effect =
    settings.libc === 'musl'
      ? `musl then asks for names with ${countOf(ndots, 'dot')} or more as they are, and never with the search list`
      : `names with ${countOf(ndots, 'dot')} or more are then asked as they are first`
  const sentence = `ndots:${ndots} makes it ${queries} (dnsConfig of the pod, options ndots ${ndots}): ${effect}`
  return { change: `ndots:${ndots}`, queries, sentence }
}

function withOneType(priced: Priced, found: string): Advice | undefined {
  const { lookup, settings } = priced
  if (!lookup.types.includes('AAAA') || lookup.types.length < 2) return undefined
  const queries = costOf({ ...priced, lookup: { name: found, types: ['A'] } }, found)
  if (queries === undefined) return undefined
  const how = settings.libc === 'glibc' ? 'AF_INET, or the option no-aaaa since glibc 2.36' : 'AF_INET'
  return { change: 'ipv4-only', queries, sentence: `with the trailing dot and IPv4 alone it is ${queries} (${how})` }
}

function costOf({ lookup, settings, ask }: Priced, wanted: string): number | undefined {
  const { found, attempts } = resolveName(lookup, settings, ask)
  return found !== undefined && foldName(found) === foldName(wanted) ? countQueries(attempts) : undefined
}
