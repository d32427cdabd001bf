/** The whole policy map of one endpoint: the entries for every identity that the input knows of. */
import { selectsLabels } from '#compile/identities/endpoint-selector'
import { reservedIdentities } from '#compile/identities/identities'
import { type LabelSet, printLabelSet } from '#compile/identities/label'
import { type NamedPort, namedPorts } from '#model/pod'
import { type CiliumIdentities, labelsOfPod, type PeerIdentity } from './cilium-identities'
import { buildPolicyMap, type PolicyMap } from './cilium-policy-map'
import { subjectOf } from './cilium-rule'
import { type SubjectRules, wantedEntries, wantedRules } from './cilium-wanted-entries'
import type { CompiledPolicy, Direction } from './policy-rule'

/** An endpoint as policies see it; the host's labels are its node's. */
export type PolicyEndpoint = {
  readonly kind: 'endpoints' | 'host'
  readonly labels: LabelSet
  readonly ports: readonly NamedPort[]
}

/** What the maps of all endpoints rest on. */
export type PolicyMaker = {
  readonly identities: CiliumIdentities
  readonly policies: readonly CompiledPolicy[]
  readonly peers: readonly KnownPeer[]
}

type KnownPeer = { readonly identity: PeerIdentity; readonly ports: readonly NamedPort[] }

export function policyMaker(identities: CiliumIdentities, policies: readonly CompiledPolicy[]): PolicyMaker {
  return { identities, policies, peers: peersOf(identities) }
}

/** Both directions, as the map holds them; rules that may match are left out. */
export function endpointPolicyMap(maker: PolicyMaker, endpoint: PolicyEndpoint): PolicyMap {
  const entries = (['ingress', 'egress'] as const).flatMap((direction) => {
    const own = subjectIn(maker, endpoint, direction)
    return [
      ...wantedEntries(own, [], () => false),
      ...maker.peers.flatMap(({ identity, ports }) => {
        const subject = direction === 'ingress' ? own : { ...own, namedPorts: ports }
        return wantedEntries(subject, wantedRules(subject, identity), ({ match }) => match === 'yes')
      }),
    ]
  })
  return buildPolicyMap(entries, maker.identities.settings.version)
}

function subjectIn(
  { identities, policies }: PolicyMaker,
  endpoint: PolicyEndpoint,
  direction: Direction,
): SubjectRules {
  const own = policies.filter((policy) => {
    const subject = subjectOf(policy.subject)
    if (policy.direction !== direction || subject?.kind !== endpoint.kind) return false
    if (endpoint.kind === 'host' && !identities.settings.hasHostFirewall) return false
    return selectsLabels(subject.selector, endpoint.labels)
  })
  return {
    direction,
    policies: own,
    candidates: own.flatMap((policy) => policy.rules.map((rule) => ({ policy, rule, isCertain: false }))),
    namedPorts: endpoint.ports,
    settings: identities.settings,
    isOnNode: endpoint.kind !== 'host',
  }
}

/** Names of ports are those of the pods that have the identity. */
function peersOf(identities: CiliumIdentities): readonly KnownPeer[] {
  const { cluster, settings, table, prefixes } = identities
  const ports = new Map<string, NamedPort[]>()
  for (const pod of cluster.pods.values()) {
    const own = namedPorts(pod)
    if (own.length === 0) continue
    const key = printLabelSet(labelsOfPod(identities, pod))
    const there = ports.get(key)
    if (there === undefined) ports.set(key, [...own])
    else there.push(...own)
  }
  const known = [...reservedIdentities(settings.isDualStack), ...table.values()].map(
    ({ number, labels }): KnownPeer => ({
      identity: { number, labels, names: [], title: `identity ${number}` },
      ports: ports.get(printLabelSet(labels)) ?? [],
    }),
  )
  const ofPrefixes = prefixes.identities.map(
    ({ number, labels, prefix, names }): KnownPeer => ({
      identity: { number, labels, prefix, names, title: `identity ${number}` },
      ports: [],
    }),
  )
  return [...known, ...ofPrefixes]
}
