/** Every identity that the input knows of, found by its labels: a rule is asked of those alone that it may match. */
import { containsPrefix, type Prefix } from '#base/prefix'
import type { EndpointSelector, Requirement } from '#compile/identities/endpoint-selector'
import { reservedIdentities } from '#compile/identities/identities'
import type { CiliumIdentities, PeerIdentity } from './cilium-identities'
import { peerOf } from './cilium-rule'
import type { PeerMatch } from './policy-rule'

export type KnownPeer = { readonly identity: PeerIdentity }

export type KnownPeers = {
  readonly all: readonly KnownPeer[]
  /** By key, and by key and value, whatever the source. */
  readonly byLabel: ReadonlyMap<string, readonly KnownPeer[]>
  readonly prefixes: readonly KnownPeer[]
  /** Of IPv4 and 24 bits at least, by these 24 bits. */
  readonly narrow: ReadonlyMap<number, readonly KnownPeer[]>
}

export function knownPeers(identities: CiliumIdentities): KnownPeers {
  const all = listPeers(identities)
  const byLabel = new Map<string, KnownPeer[]>()
  const narrow = new Map<number, KnownPeer[]>()
  for (const peer of all) {
    const { labels, prefix } = peer.identity
    labels.byKey.forEach((same, key) => {
      add(byLabel, key, peer)
      // Two labels of one key and value differ in their source alone.
      for (let at = 0; at < same.length; at++) {
        const value = same[at]?.value
        if (at === 0 || same[at - 1]?.value !== value) add(byLabel, `${key}=${value}`, peer)
      }
    })
    const block = prefix === undefined ? undefined : blockOf(prefix)
    if (block !== undefined) add(narrow, block, peer)
  }
  return { all, byLabel, prefixes: all.filter(({ identity }) => identity.prefix !== undefined), narrow }
}

function add<K>(map: Map<K, KnownPeer[]>, key: K, peer: KnownPeer): void {
  const there = map.get(key)
  if (there === undefined) map.set(key, [peer])
  else there.push(peer)
}

function blockOf({ ip, length }: Prefix): number | undefined {
  return ip.family === 'ipv4' && length >= 24 ? (ip.words[0] ?? 0) >>> 8 : undefined
}

/** More than match, and none that matches is missing. */
export function mayMatch(match: PeerMatch, peers: KnownPeers): readonly KnownPeer[] {
  if (match.kind !== 'own') return []
  const wanted = peerOf(match)
  if (wanted.kind === 'name') return peers.prefixes
  if (wanted.kind === 'prefix') {
    const block = blockOf(wanted.prefix)
    const near = block === undefined ? peers.prefixes : (peers.narrow.get(block) ?? [])
    return near.filter(
      ({ identity }) => identity.prefix !== undefined && containsPrefix(wanted.prefix, identity.prefix),
    )
  }
  return fewest(wanted.selector, peers)
}

function fewest({ requirements }: EndpointSelector, peers: KnownPeers): readonly KnownPeer[] {
  let found = peers.all
  for (const requirement of requirements) {
    const near = withLabel(requirement, peers)
    if (near !== undefined && near.length < found.length) found = near
  }
  return found
}

/** Undefined where lacking the key matches as well. */
function withLabel({ key, operator, values }: Requirement, { byLabel }: KnownPeers): readonly KnownPeer[] | undefined {
  if (operator === 'Exists') return byLabel.get(key) ?? []
  if (operator !== 'In') return undefined
  const [first] = values
  if (values.length === 1) return byLabel.get(`${key}=${first}`) ?? []
  return [...new Set(values.flatMap((value) => byLabel.get(`${key}=${value}`) ?? []))]
}

function listPeers({ settings, table, prefixes }: CiliumIdentities): readonly KnownPeer[] {
  const known = [...reservedIdentities(settings.isDualStack), ...table.values()].map(
    ({ number, labels }): KnownPeer => ({ identity: { number, labels, names: [], title: `identity ${number}` } }),
  )
  const ofPrefixes = prefixes.identities.map(
    ({ number, labels, prefix, names }): KnownPeer => ({
      identity: { number, labels, prefix, names, title: `identity ${number}` },
    }),
  )
  return [...known, ...ofPrefixes]
}
