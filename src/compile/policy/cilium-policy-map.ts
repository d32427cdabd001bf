/**
 * From entries as rules ask for them to the entries that Cilium puts into an endpoint's policy map. The outcome does not
 * depend on their order. Mirrors pkg/policy/mapstate.go, Cilium 1.16 to 1.19.
 */
import { type CiliumVersion, isAtLeast } from '#model/cilium-version'
import {
  type AuthRequirement,
  coveringStrength,
  coversKey,
  coversPort,
  type PolicyEntry,
  precedenceOf,
  printPolicyKey,
  proxyPortPriority,
} from './cilium-policy-entry'

export type PolicyMap = {
  readonly version: CiliumVersion
  /** In no order that means anything. */
  readonly entries: readonly PolicyEntry[]
  /** By identity; those for any peer under 0. */
  readonly byIdentity: ReadonlyMap<number, readonly PolicyEntry[]>
}

export function buildPolicyMap(wanted: Iterable<PolicyEntry>, version: CiliumVersion): PolicyMap {
  const merged = mergeSameKeys(wanted, version)
  const all = isAtLeast(version, '1.17') ? merged : mergeSameKeys([...merged, ...spelledDenies(merged)], version)
  const kept = dropCovered(all, version)
  const entries = inheritAuth(elideRedundant(kept), version)
  return { version, entries, byIdentity: groupByIdentity(entries) }
}

function mergeSameKeys(entries: Iterable<PolicyEntry>, version: CiliumVersion): readonly PolicyEntry[] {
  const byKey = new Map<string, PolicyEntry>()
  for (const entry of entries) {
    const key = printPolicyKey(entry.key)
    const there = byKey.get(key)
    byKey.set(key, there === undefined ? entry : mergeEntries(there, entry, version))
  }
  return [...byKey.values()]
}

/** A deny beats an allow; of two allows the stronger redirect stays, and the stronger authentication. */
function mergeEntries(a: PolicyEntry, b: PolicyEntry, version: CiliumVersion): PolicyEntry {
  const isByPriority = isAtLeast(version, '1.19') && a.priority !== b.priority
  if (isByPriority) return precedenceOf(a) > precedenceOf(b) ? a : b
  if (a.isDeny !== b.isDeny) return a.isDeny ? a : b
  const origins = [...a.origins, ...b.origins.filter((one) => !a.origins.some(({ rule }) => rule === one.rule))]
  if (a.isDeny) return { ...a, origins }
  const first = compareRedirects(a, b) <= 0 ? a : b
  return { ...first, origins, auth: strongerAuth(a.auth, b.auth) }
}

/** Equal strengths are settled by name, where Cilium takes the lower proxy port. */
function compareRedirects(a: PolicyEntry, b: PolicyEntry): number {
  const difference = proxyPortPriority(b) - proxyPortPriority(a)
  if (difference !== 0) return difference
  const name = ({ redirect }: PolicyEntry): string => `${redirect?.parser ?? ''} ${redirect?.listener ?? ''}`
  return name(a) < name(b) ? -1 : name(a) > name(b) ? 1 : 0
}

function strongerAuth(a: AuthRequirement, b: AuthRequirement): AuthRequirement {
  if (a.isExplicit !== b.isExplicit) return a.isExplicit ? a : b
  return a.type >= b.type ? a : b
}

/**
 * Up to 1.16 the datapath asks for an identity's whole entry last, so that a deny for one is spelled out for each port that
 * is allowed to everybody.
 */
function spelledDenies(entries: readonly PolicyEntry[]): readonly PolicyEntry[] {
  const open = entries.filter(({ key, isDeny }) => !isDeny && key.identity === 0)
  return entries.flatMap((deny) => {
    if (!deny.isDeny || deny.key.identity === 0) return []
    return open
      .filter(({ key }) => key.direction === deny.key.direction && key.length > deny.key.length)
      .filter(({ key }) => coversPort(deny.key, key))
      .map(({ key }) => ({ ...deny, key: { ...key, identity: deny.key.identity } }))
  })
}

function dropCovered(entries: readonly PolicyEntry[], version: CiliumVersion): readonly PolicyEntry[] {
  const byIdentity = groupByIdentity(entries)
  const hasAuth = entries.some(({ auth }) => auth.isExplicit)
  return entries.flatMap((entry) => {
    const rivals = [...(byIdentity.get(entry.key.identity) ?? []), ...(byIdentity.get(0) ?? [])]
    const stronger = rivals.filter((rival) => rival !== entry && isKeptOutBy(entry, rival, { version, hasAuth }))
    if (stronger.length === 0) return [entry]
    if (!entry.auth.isExplicit || stronger.some(({ isDeny }) => isDeny)) return []
    const strongest = stronger.reduce((a, b) => (compareRedirects(a, b) <= 0 ? a : b))
    return strongest.redirect === undefined ? [entry] : [{ ...entry, redirect: strongest.redirect }]
  })
}

type MapFacts = { readonly version: CiliumVersion; readonly hasAuth: boolean }

function isKeptOutBy(entry: PolicyEntry, rival: PolicyEntry, { version, hasAuth }: MapFacts): boolean {
  if (!coversKey(rival.key, entry.key)) return false
  const isSame = rival.key.identity === entry.key.identity
  if (isSame && rival.key.length === entry.key.length) return false
  const difference = coveringStrength(rival, version) - coveringStrength(entry, version)
  // Up to 1.16 a deny of another policy stays beside the one that covers it, which changes no answer.
  if (rival.isDeny && entry.isDeny) return isAtLeast(version, '1.17') && !(difference < 0)
  if (rival.isDeny) return difference > 0
  return difference > 0 && (isSame || !hasAuth)
}

/** An identity's entry that says what the entry for everybody says at the same port is left out; pkg/policy/l4.go. */
function elideRedundant(entries: readonly PolicyEntry[]): readonly PolicyEntry[] {
  const open = new Map<string, PolicyEntry>()
  for (const entry of entries) if (entry.key.identity === 0) open.set(printPolicyKey(entry.key), entry)
  return entries.filter((entry) => {
    if (entry.key.identity === 0 || entry.key.port === 0 || entry.isDeny) return true
    const there = open.get(printPolicyKey({ ...entry.key, identity: 0 }))
    return there === undefined || !isSameValue(there, entry)
  })
}

function isSameValue(a: PolicyEntry, b: PolicyEntry): boolean {
  if (a.isDeny !== b.isDeny || a.priority !== b.priority) return false
  if (a.auth.type !== b.auth.type || a.auth.isExplicit !== b.auth.isExplicit) return false
  return a.redirect?.parser === b.redirect?.parser && a.redirect?.listener === b.redirect?.listener
}

/** An entry that says nothing of authentication takes it over from the closest one that covers it and does. */
function inheritAuth(entries: readonly PolicyEntry[], version: CiliumVersion): readonly PolicyEntry[] {
  const explicit = entries.filter(({ auth, isDeny }) => auth.isExplicit && !isDeny)
  if (explicit.length === 0) return entries
  const crossesIdentities = !isAtLeast(version, '1.17')
  const inherited = entries.map((entry) => {
    if (entry.isDeny || entry.auth.isExplicit) return entry
    const covering = explicit.filter(({ key }) => {
      if (!crossesIdentities && key.identity !== entry.key.identity) return false
      return coversKey(key, entry.key)
    })
    if (covering.length === 0) return entry
    const closest = covering.reduce((a, b) => (closeness(b) > closeness(a) ? b : a))
    return { ...entry, auth: { type: closest.auth.type, isExplicit: false } }
  })
  return crossesIdentities ? [...inherited, ...authenticatedPorts(inherited, explicit)] : inherited
}

function closeness({ key }: PolicyEntry): number {
  return (key.identity === 0 ? 0 : 100) + key.length
}

/** Up to 1.16: an identity that must authenticate must do so at the ports that are open to everybody as well. */
function authenticatedPorts(entries: readonly PolicyEntry[], explicit: readonly PolicyEntry[]): readonly PolicyEntry[] {
  const there = new Set(entries.map(({ key }) => printPolicyKey(key)))
  const whole = explicit.filter(({ key }) => key.identity !== 0 && key.length === 0)
  return whole.flatMap((one) =>
    entries
      .filter(({ key, isDeny, auth }) => !isDeny && key.identity === 0 && key.length > 0 && !auth.isExplicit)
      .filter(({ key, auth }) => key.direction === one.key.direction && auth.type === 0)
      .map((port) => ({
        ...port,
        key: { ...port.key, identity: one.key.identity },
        auth: { type: one.auth.type, isExplicit: false },
        origins: [...port.origins, ...one.origins],
      }))
      .filter(({ key }) => !there.has(printPolicyKey(key))),
  )
}

function groupByIdentity(entries: readonly PolicyEntry[]): ReadonlyMap<number, readonly PolicyEntry[]> {
  const groups = new Map<number, PolicyEntry[]>()
  for (const entry of entries) {
    const group = groups.get(entry.key.identity)
    if (group === undefined) groups.set(entry.key.identity, [entry])
    else group.push(entry)
  }
  return groups
}
