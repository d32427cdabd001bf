/** The whole policy map of one endpoint: the entries for every identity that the input knows of. */
import { reservedIdentities } from '#compile/identities/identities'
import { printLabelSet } from '#compile/identities/label'
import { buildPolicyMap, type PolicyMap } from '#compile/policy/cilium-policy-map'
import type { Direction } from '#compile/policy/policy-rule'
import { type IdentityContext, labelsOfPod, type PeerIdentity } from './cilium-identity'
import { type SubjectRules, wantedEntries, wantedRules } from './cilium-lane'
import { policiesFor } from './lane'
import type { NamedPort, PartyClass } from './party'
import { namedPorts } from './party-facts'
import type { PolicyWorld } from './policy-world'

/** Both directions, as the map holds them; rules that may match are left out. */
export function endpointPolicyMap(world: PolicyWorld, context: IdentityContext, endpoint: PartyClass): PolicyMap {
  const entries = (['ingress', 'egress'] as const).flatMap((direction) => {
    const peers = peersOf(context)
    const own = subjectIn(world, context, { endpoint, direction, ports: endpoint.ports })
    return [
      ...wantedEntries(own, [], () => false),
      ...peers.flatMap(({ identity, ports }) => {
        const subject = direction === 'ingress' ? own : { ...own, namedPorts: ports }
        return wantedEntries(subject, wantedRules(subject, identity), ({ match }) => match === 'yes')
      }),
    ]
  })
  return buildPolicyMap(entries, context.settings.version)
}

type EndpointSide = {
  readonly endpoint: PartyClass
  readonly direction: Direction
  readonly ports: readonly NamedPort[]
}

function subjectIn(world: PolicyWorld, { settings }: IdentityContext, side: EndpointSide): SubjectRules {
  const { policies } = policiesFor(world, side.direction, side.endpoint)
  const { direction, endpoint, ports } = side
  return { direction, policies, namedPorts: ports, settings, isOnNode: endpoint.kind !== 'node' }
}

type KnownPeer = { readonly identity: PeerIdentity; readonly ports: readonly NamedPort[] }

/** Names of ports are those of the pods that have the identity. */
function peersOf(context: IdentityContext): readonly KnownPeer[] {
  const ports = new Map<string, NamedPort[]>()
  for (const pod of context.cluster.pods.values()) {
    const key = printLabelSet(labelsOfPod(context, pod))
    ports.set(key, [...(ports.get(key) ?? []), ...namedPorts(pod)])
  }
  const reserved = reservedIdentities(context.settings.isDualStack)
  const known = [...reserved, ...context.table.values()].map(
    ({ number, labels }): KnownPeer => ({
      identity: { number, labels, names: [], title: `identity ${number}` },
      ports: ports.get(printLabelSet(labels)) ?? [],
    }),
  )
  const prefixes = context.prefixes.identities.map(
    ({ number, labels, prefix, names }): KnownPeer => ({
      identity: { number, labels, prefix, names, title: `identity ${number}` },
      ports: [],
    }),
  )
  return [...known, ...prefixes]
}
