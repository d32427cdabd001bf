/** Kubernetes' own semantics: NetworkPolicy (networking.k8s.io/v1) and the tiers of network-policy-api around it. */
import type { Prefix } from '#base/prefix'
import { compileKubernetesPolicies } from '#compile/policy/compile-kubernetes-policies'
import type { CompiledPolicy } from '#compile/policy/policy-rule'
import { judgeKubernetes } from './judge-kubernetes'
import { explainPeer, explainSubject, matchPeer, matchSubject } from './match-kubernetes'
import { noteConnection } from './note-connection'
import type { Semantics } from './semantics'
import { walkTiers } from './walk-tiers'

export const kubernetesSemantics: Semantics = {
  name: 'k8s',
  compile: compileKubernetesPolicies,
  distinguish: (party) => (party.kind === 'entity' ? party.name : ''),
  seesAddressOf: (kind) => kind !== 'entity',
  matchSubject,
  matchPeer,
  rangesOf,
  decide: (lane, rules, at) => walkTiers(lane, rules, at).decision,
  judge: judgeKubernetes,
  explainSubject,
  explainPeer,
  notes: noteConnection,
}

/** Exceptions cut as well as the ranges they are made in. */
export function rangesOf(policies: readonly CompiledPolicy[]): readonly Prefix[] {
  return policies.flatMap(({ rules }) =>
    rules.flatMap(({ peers }) =>
      peers === 'any' ? [] : peers.flatMap((peer) => (peer.kind === 'addresses' ? [peer.cidr, ...peer.except] : [])),
    ),
  )
}
