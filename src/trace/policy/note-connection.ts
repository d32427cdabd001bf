/** What holds of a connection as a whole under Kubernetes' semantics. */
import { describeParty } from './describe-policy'
import type { PartyClass } from './party'
import type { LanePoint } from './semantics'

export function noteConnection(source: PartyClass, target: PartyClass, { protocol }: LanePoint): readonly string[] {
  const hosts = [source, target].filter(({ kind, party }) => kind === 'node' && party.kind === 'pod')
  return [
    'replies of an allowed connection are allowed without rules of their own; what a changed policy does to connections that are there is not defined upstream',
    ...hosts.map(
      ({ party }) =>
        `${describeParty(party)} has the address of its node: upstream does not define what NetworkPolicies do to it, and it counts as the node here`,
    ),
    ...(protocol === 'ICMP' || protocol === 'ICMPv6' ? ['NetworkPolicy speaks of TCP, UDP and SCTP alone'] : []),
  ]
}
