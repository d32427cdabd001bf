/** Cilium's policies read as rules rather than as map entries: any deny denies, else any allow allows. */

import { identityNumbers } from '#compile/identities/numbers'
import type { PeerIdentity } from '#compile/policy/cilium-identities'
import type { ProxyRedirect } from '#compile/policy/cilium-policy-entry'
import { detailOf } from '#compile/policy/cilium-rule'
import { isEnforced, type SubjectRules, type WantedRule } from '#compile/policy/cilium-wanted-entries'
import { holdsAt } from './port-match'
import type { LanePoint } from './semantics'

export type PlainAnswer = { readonly isAllowed: boolean; readonly redirect?: ProxyRedirect }

/** `rules` are those that match the peer; of several redirects the strongest counts. */
export function readPlainly(
  subject: SubjectRules,
  rules: readonly WantedRule[],
  peer: PeerIdentity,
  at: LanePoint,
): PlainAnswer {
  const here = rules.filter(
    ({ rule: { ports } }) => ports === 'any' || ports.some((port) => holdsAt(port, at, subject.namedPorts)),
  )
  if (here.some(({ rule }) => rule.action === 'deny')) return { isAllowed: false }
  const redirects = here.flatMap(({ rule }) => detailOf(rule).redirect ?? [])
  const strongest = redirects.sort((a, b) => a.priority - b.priority)[0]
  if (here.length > 0) return { isAllowed: true, ...(strongest !== undefined && { redirect: strongest }) }
  return { isAllowed: !isEnforced(subject) || isOwnHost(subject, peer) }
}

function isOwnHost({ direction, isOnNode, settings }: SubjectRules, { number }: PeerIdentity): boolean {
  return direction === 'ingress' && isOnNode && settings.allowsLocalhost && number === identityNumbers.host
}
