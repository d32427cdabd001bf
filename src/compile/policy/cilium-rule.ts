/** What Cilium reads of compiled policies beside what every semantics does: identities, redirections, authentication. */

import type { Prefix } from '#base/prefix'
import { printPrefix } from '#base/prefix'
import type { EndpointSelector, Requirement } from '#compile/identities/endpoint-selector'
import { printSelector } from '#compile/identities/endpoint-selector'
import type { FqdnSelector } from '#model/cilium-policy'
import { printFqdn } from './cilium-dns-cache'
import type { AuthRequirement, ProxyRedirect } from './cilium-policy-entry'
import type { OwnMatch, PolicyRule, SubjectMatch } from './policy-rule'

/** Endpoints by their labels, or the host endpoints of nodes by theirs. */
export type CiliumSubject = {
  readonly kind: 'endpoints' | 'host'
  readonly selector: EndpointSelector
  /** Of fromRequires or toRequires, which bind every policy of the subject in this direction; apart for denies. */
  readonly requires: readonly Requirement[]
  readonly requiresDeny: readonly Requirement[]
  /** The names whose answers the DNS proxy sees. */
  readonly seenNames: readonly FqdnSelector[]
}

export type CiliumPeer =
  /** What the subject requires counts for these alone. */
  | { readonly kind: 'endpoints'; readonly selector: EndpointSelector }
  | { readonly kind: 'labels'; readonly selector: EndpointSelector }
  /** Identities of prefixes that lie in it. */
  | { readonly kind: 'prefix'; readonly prefix: Prefix }
  | { readonly kind: 'name'; readonly fqdn: FqdnSelector }

export type CiliumRuleDetail = { readonly redirect?: ProxyRedirect; readonly auth?: AuthRequirement }

export function ownSubject(path: string, subject: CiliumSubject): OwnMatch {
  const { kind, selector, requires, requiresDeny } = subject
  const demands = [...requires, ...requiresDeny].map((one) => JSON.stringify(one)).join(' ')
  return { kind: 'own', path, text: `${kind} ${printSelector(selector)} ${demands}`.trimEnd(), detail: subject }
}

export function ownPeer(path: string, peer: CiliumPeer, title?: string): OwnMatch {
  return { kind: 'own', path, text: printPeer(peer), detail: peer, ...(title !== undefined && { title }) }
}

export function printPeer(peer: CiliumPeer): string {
  switch (peer.kind) {
    case 'endpoints':
    case 'labels':
      return `identities with ${printSelector(peer.selector)}`
    case 'prefix':
      return `addresses in ${printPrefix(peer.prefix)}`
    case 'name':
      return `addresses learned for ${printFqdn(peer.fqdn)}`
    default:
      return peer satisfies never
  }
}

export function subjectOf(match: SubjectMatch): CiliumSubject | undefined {
  return match.kind === 'own' ? (match.detail as CiliumSubject) : undefined
}

export function peerOf(match: OwnMatch): CiliumPeer {
  return match.detail as CiliumPeer
}

export function detailOf(rule: PolicyRule): CiliumRuleDetail {
  return (rule.detail as CiliumRuleDetail | undefined) ?? {}
}
