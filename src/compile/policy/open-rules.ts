/** Rules of which nobody knows whether they match a peer: what the DNS proxy has learned, and groups that others fill. */

import type { KnownPeer } from './cilium-known-peers'
import type { PolicyEntry } from './cilium-policy-entry'
import { peerOf } from './cilium-rule'
import { ruleEntries, type SubjectRules, type WantedRule, wantedRules } from './cilium-wanted-entries'
import type { PolicyRule } from './policy-rule'

/** What the rule would add to the map for the peer if it matched. */
export type OpenRule = { readonly wanted: WantedRule; readonly why: string; readonly entries: readonly PolicyEntry[] }

export function openRules(subject: SubjectRules, { identity }: KnownPeer): readonly OpenRule[] {
  return wantedRules(subject, identity)
    .filter(({ match }) => match === 'maybe')
    .map((wanted) => ({
      wanted,
      why: whyOpen(wanted.rule)[0] ?? 'what it selects is not in the input',
      entries: ruleEntries(subject, [wanted]),
    }))
}

export function mayBeOpen({ peers }: PolicyRule): boolean {
  return peers !== 'any' && peers.some((peer) => peer.kind === 'unknown' || isName(peer))
}

export function whyOpen({ peers }: PolicyRule): readonly string[] {
  if (peers === 'any') return []
  return peers.flatMap((peer) => {
    if (peer.kind === 'unknown') return [peer.why]
    return isName(peer) ? ['which addresses its names have is known to the DNS cache alone, and none is given'] : []
  })
}

function isName(peer: Exclude<PolicyRule['peers'], 'any'>[number]): boolean {
  return peer.kind === 'own' && peerOf(peer).kind === 'name'
}
