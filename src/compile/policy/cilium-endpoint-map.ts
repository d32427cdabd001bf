/** The whole policy map of one endpoint: the entries for every identity that the input knows of. */
import { selectsLabels } from '#compile/identities/endpoint-selector'
import { type LabelSet, namespaceKey } from '#compile/identities/label'
import type { NamedPort } from '#model/pod'
import type { CiliumIdentities } from './cilium-identities'
import { type KnownPeer, type KnownPeers, knownPeers, mayMatch } from './cilium-known-peers'
import { clusterPortNames } from './cilium-named-ports'
import type { PolicyEntry } from './cilium-policy-entry'
import { buildPolicyMap, type PolicyMap } from './cilium-policy-map'
import { subjectOf } from './cilium-rule'
import { type Candidate, ownEntries, ruleEntries, type SubjectRules, wantedRules } from './cilium-wanted-entries'
import { mayBeOpen, type OpenRule, openRules } from './open-rules'
import type { CompiledPolicy, Direction, PolicyRule } from './policy-rule'

/** An endpoint as policies see it; the host's labels are its node's. */
export type PolicyEndpoint = {
  readonly kind: 'endpoints' | 'host'
  readonly labels: LabelSet
  readonly ports: readonly NamedPort[]
}

/** What the maps of all endpoints rest on. */
export type PolicyMaker = {
  readonly identities: CiliumIdentities
  /** By direction and the namespace that their subjects must have; under '' those that name none. */
  readonly policies: ReadonlyMap<string, readonly NumberedPolicy[]>
  readonly peers: KnownPeers
}

type NumberedPolicy = { readonly policy: CompiledPolicy; readonly number: number }

export function policyMaker(identities: CiliumIdentities, policies: readonly CompiledPolicy[]): PolicyMaker {
  const byPlace = new Map<string, NumberedPolicy[]>()
  for (const [number, policy] of policies.entries()) {
    const key = `${policy.direction} ${namespaceOf(policy)}`
    const there = byPlace.get(key)
    if (there === undefined) byPlace.set(key, [{ policy, number }])
    else there.push({ policy, number })
  }
  return { identities, policies: byPlace, peers: knownPeers(identities) }
}

function namespaceOf({ subject }: CompiledPolicy): string {
  const requirements = subjectOf(subject)?.selector.requirements ?? []
  const named = requirements.find(({ key, operator }) => key === namespaceKey && operator === 'In')
  return named?.values.length === 1 ? (named.values[0] ?? '') : ''
}

/** Those that may hold for an endpoint, in the order of all. */
function policiesNear(
  { policies }: PolicyMaker,
  { labels }: PolicyEndpoint,
  direction: Direction,
): readonly CompiledPolicy[] {
  const own = (labels.byKey.get(namespaceKey) ?? []).map(({ value }) => value)
  return ['', ...own]
    .flatMap((namespace) => policies.get(`${direction} ${namespace}`) ?? [])
    .sort((a, b) => a.number - b.number)
    .map(({ policy }) => policy)
}

/** Both directions, as the map holds them; rules that may match are left out. */
export function endpointPolicyMap(maker: PolicyMaker, endpoint: PolicyEndpoint): PolicyMap {
  const entries = (['ingress', 'egress'] as const).flatMap((direction) => {
    const subject = subjectIn(maker, endpoint, direction)
    const ofRules = subject.candidates.flatMap((candidate) => entriesFor(maker, subject, candidate))
    return [...ownEntries(subject), ...ofRules]
  })
  return buildPolicyMap(entries, maker.identities.settings.version)
}

/** Rules of the endpoint that may match an identity: what the map holds of them depends on what the input does not tell. */
export function openRulesOf(
  maker: PolicyMaker,
  endpoint: PolicyEndpoint,
  { direction, identity }: { readonly direction: Direction; readonly identity: number },
): readonly OpenRule[] {
  const isAny = policiesNear(maker, endpoint, direction).some(({ rules }) => rules.some(mayBeOpen))
  const peer = isAny ? maker.peers.all.find(({ identity: { number } }) => number === identity) : undefined
  return peer === undefined ? [] : openRules(subjectIn(maker, endpoint, direction), peer)
}

type Subject = SubjectRules & { readonly candidates: readonly Candidate[] }

function subjectIn(maker: PolicyMaker, endpoint: PolicyEndpoint, direction: Direction): Subject {
  const { identities } = maker
  const own = policiesNear(maker, endpoint, direction).filter((policy) => {
    const subject = subjectOf(policy.subject)
    if (subject?.kind !== endpoint.kind) return false
    if (endpoint.kind === 'host' && !identities.settings.hasHostFirewall) return false
    return selectsLabels(subject.selector, endpoint.labels)
  })
  return {
    direction,
    policies: own,
    candidates: own.flatMap((policy) => policy.rules.map((rule) => ({ policy, rule, isCertain: false }))),
    namedPorts: direction === 'ingress' ? endpoint.ports : clusterPortNames(identities.cluster).ports,
    settings: identities.settings,
    isOnNode: endpoint.kind !== 'host',
  }
}

function entriesFor({ peers }: PolicyMaker, subject: Subject, candidate: Candidate): readonly PolicyEntry[] {
  const asked = { ...subject, candidates: [candidate] }
  const entries: PolicyEntry[] = []
  for (const { identity } of peersFor(candidate.rule, peers)) {
    const wanted = wantedRules(asked, identity).filter(({ match }) => match === 'yes')
    if (wanted.length === 0) continue
    entries.push(...ruleEntries(asked, wanted))
    // One entry for everybody says it for all.
    if (wanted[0]?.identity === 0) break
  }
  return entries
}

function peersFor(rule: PolicyRule, peers: KnownPeers): readonly KnownPeer[] {
  if (rule.peers === 'any') return peers.all.slice(0, 1)
  const [only, ...others] = rule.peers
  if (only === undefined) return []
  if (others.length === 0) return mayMatch(only, peers)
  return [...new Set(rule.peers.flatMap((match) => mayMatch(match, peers)))]
}
