/** How a C library resolves a name: which names it asks in which order, and when it stops. */
import type { Ask, Exchange, ExchangeEnd, Resolution } from './attempt'
import { fqdn } from './domain-name'
import { exchangeGlibc, type GlibcState } from './exchange-glibc'
import { exchangeMusl } from './exchange-musl'
import type { ResolverSettings } from './resolver-settings'

export type Lookup = { readonly name: string; readonly types: readonly string[] }

export function resolveName(lookup: Lookup, settings: ResolverSettings, ask: Ask): Resolution {
  const types = settings.isWithoutAaaa
    ? lookup.types.filter((type) => type !== 'AAAA' || lookup.types.length === 1)
    : lookup.types
  const asked = { name: lookup.name, types }
  return settings.libc === 'glibc'
    ? repeatForRoom(walkGlibc(asked, settings, ask), types)
    : walkMusl(asked, settings, ask)
}

/** glibc 2.36, nss/getaddrinfo.c: a buffer of 1024 bytes, doubled and the whole lookup done again until all addresses fit. */
const firstBuffer = 1024
const bytesOfAddress = 40

function repeatForRoom(resolution: Resolution, types: readonly string[]): Resolution {
  const records = resolution.attempts.flatMap(({ answers }) => answers).filter(({ type }) => isAddressType(type))
  const [first] = records
  if (first === undefined || types.length < 2) return resolution
  const needed = Math.ceil(first.name.length / 8) * 8 + bytesOfAddress * records.length
  const passes = 1 + Math.max(0, Math.ceil(Math.log2(needed / firstBuffer)))
  if (passes === 1) return resolution
  const attempts = resolution.attempts.map((attempt) => ({ ...attempt, sends: attempt.sends * passes }))
  return { ...resolution, attempts, seconds: resolution.seconds * passes, passes }
}

/** One name of the walk with its exchange. */
type Step = { readonly name: string; readonly exchange: Exchange }

/** The walk ended as its last step did. */
function sumUp(steps: readonly Step[]): Resolution {
  const last = steps.at(-1)
  return {
    attempts: steps.flatMap(({ exchange }) => exchange.attempts),
    end: last?.exchange.end ?? 'stopped',
    seconds: steps.reduce((sum, { exchange }) => sum + exchange.seconds, 0),
    ...(last?.exchange.end === 'found' && { found: last.name }),
  }
}

function countDots(name: string): number {
  return name.split('.').length - 1
}

/** The most characters of a name, its closing dot left out. */
const longestName = 253

/** glibc 2.36, resolv/res_query.c: as it is first when it has enough dots, else last, and once in any case. */
function walkGlibc({ name, types }: Lookup, settings: ResolverSettings, ask: Ask): Resolution {
  const steps: Step[] = []
  const state: GlibcState = { pace: 'together' }
  const askFor = (candidate: string): ExchangeEnd => {
    const exchange = exchangeGlibc({ name: candidate, types, ask }, settings, state)
    steps.push({ name: candidate, exchange })
    return exchange.end
  }
  const isAbsolute = name.endsWith('.')
  let isTried = isAbsolute || countDots(name) >= settings.ndots
  if (isTried && (askFor(fqdn(name)) === 'found' || isAbsolute)) return sumUp(steps)
  for (const domain of settings.search.map((text) => text.replace(/^\./, ''))) {
    const candidate = domain === '' ? fqdn(name) : fqdn(`${name}.${domain}`)
    isTried ||= domain === ''
    if (candidate.length > longestName + 1) break
    const end = askFor(candidate)
    if (end === 'found') return sumUp(steps)
    if (end === 'stopped') break
  }
  if (!isTried) askFor(fqdn(name))
  return sumUp(steps)
}

/** musl 1.2, src/network/lookup_name.c: the search list is for names with too few dots, and other types have none. */
function walkMusl({ name, types }: Lookup, settings: ResolverSettings, ask: Ask): Resolution {
  const steps: Step[] = []
  const askFor = (candidate: string): ExchangeEnd => {
    const exchange = exchangeMusl({ name: candidate, types, ask }, settings)
    steps.push({ name: candidate, exchange })
    return exchange.end
  }
  const isSearched = countDots(name) < settings.ndots && !name.endsWith('.') && types.every(isAddressType)
  for (const domain of isSearched ? settings.search : []) {
    const candidate = `${name}.${domain}`
    if (candidate.length >= longestMuslName) continue
    // A domain `.` makes an empty label, which no question can hold: what musl 1.2.3 sends cannot be read, and it waits and gives up.
    if (candidate.includes('..')) return { ...sumUp(steps), end: 'stopped', seconds: settings.timeoutSeconds }
    if (askFor(fqdn(candidate)) !== 'missing') return sumUp(steps)
  }
  askFor(fqdn(name))
  return sumUp(steps)
}

/** musl's buffer for a name takes 256 characters, its end among them. */
const longestMuslName = 256

function isAddressType(type: string): boolean {
  return type === 'A' || type === 'AAAA'
}
