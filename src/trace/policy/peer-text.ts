/** A peer in a canonical form: equal texts match alike, wherever they stand. */
import type { PeerMatch } from '#compile/policy/policy-rule'

/** Everything but the path. What a semantics of its own reads is told by its text alone. */
export function textOfPeer(peer: PeerMatch): string {
  if (peer.kind === 'own') return `own ${peer.text}`
  const { path: _, ...rest } = peer
  return JSON.stringify(rest)
}
