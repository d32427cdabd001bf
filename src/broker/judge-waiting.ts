/** Flows that wait are judged by every set of policies: what each policy does with them, and what that adds to its counters. */
import { type Directory, indexDirectory } from '#flows/directory'
import type { StoredFlow } from '#flows/flow'
import { connectedPort } from '#flows/intern-ends'
import type {
  AuditKey,
  AuditObjects,
  JudgedFlows,
  NewVerdict,
  Offender,
  SetCounts,
  StoredAuditObject,
  WaitingFlow,
} from '#store/audit-store'
import { type EffectsJudge, effectsOf, newEffectsJudge, type PolicyEffect } from '#verify/policy/audit-effects'
import { newJudge, textOfRef } from '#verify/policy/audit-judge'
import { isAuditPolicy } from './audit-manifests'
import { worldOf } from './audit-worlds'

type AuditSet = {
  readonly semantics: string
  readonly judge: EffectsJudge
  /** By `kind namespace/name`. */
  readonly policies: ReadonlyMap<string, StoredAuditObject>
}

export function judgeWaiting(
  { objects }: AuditObjects,
  directory: Directory,
): (flows: readonly WaitingFlow[]) => JudgedFlows {
  const index = indexDirectory(directory)
  const policies = objects.filter(isAuditPolicy)
  const sets = [...new Set(policies.map(({ semantics }) => semantics))].map((semantics): AuditSet => {
    const own = policies.filter((policy) => policy.semantics === semantics)
    return {
      semantics,
      judge: newEffectsJudge(newJudge(worldOf(objects, semantics), index)),
      policies: new Map(own.map((policy) => [refText(policy), policy])),
    }
  })
  return (flows) => {
    const draft = newDraft()
    for (const { flow, scope } of flows) {
      if (flow !== undefined) for (const set of sets) judgeIn(draft, set, { flow, scope })
    }
    return finish(draft)
  }
}

function refText({ kind, namespace, name }: AuditKey): string {
  return textOfRef({ kind, ...(namespace !== '' && { namespace }), name })
}

type Open<Counts> = { -readonly [Name in keyof Counts]: Counts[Name] }

type Draft = {
  readonly verdicts: NewVerdict[]
  readonly sets: Map<string, Open<SetCounts>>
  readonly policies: Map<string, { readonly key: AuditKey; evaluated: number; allowed: number; wouldDeny: number }>
  readonly offenders: Map<string, Open<AuditKey & Offender>>
}

function newDraft(): Draft {
  return { verdicts: [], sets: new Map(), policies: new Map(), offenders: new Map() }
}

type Scoped = { readonly flow: StoredFlow; readonly scope: number }

function judgeIn(draft: Draft, set: AuditSet, { flow, scope }: Scoped): void {
  const all = [...set.policies.values()]
  const isNew = ({ generation }: StoredAuditObject): boolean => generation >= scope
  if (!all.some(isNew)) return
  // What the older ones of the set have counted already is not counted again.
  const counts = all.every(isNew) ? countsOf(draft, set.semantics) : zero()
  if (flow.decision.toUpperCase() === 'DROP') {
    counts.dropped++
    return
  }
  const { verdict, effects } = effectsOf(set.judge, flow)
  counts.evaluated++
  if (verdict.kind === 'allowed') counts.allowed++
  else if (verdict.kind === 'denied') counts.wouldDeny++
  else counts.unknown++
  const own = effects.flatMap((effect) => {
    const policy = set.policies.get(textOfRef(effect.policy))
    return policy === undefined || !isNew(policy) ? [] : [{ policy, effect }]
  })
  for (const { policy, effect } of own) draft.verdicts.push(verdictOf(flow, policy, effect))
  for (const policy of new Set(own.map((one) => one.policy))) {
    const denied = own.find((one) => one.policy === policy && one.effect.reason !== null)
    countPolicy(draft, policy, denied !== undefined)
    if (denied !== undefined) countOffender(draft, policy, { peer: denied.effect.other, flow })
  }
}

function zero(): Open<SetCounts> {
  return { evaluated: 0, allowed: 0, wouldDeny: 0, unknown: 0, dropped: 0 }
}

function countsOf({ sets }: Draft, semantics: string): Open<SetCounts> {
  const counts = sets.get(semantics) ?? zero()
  sets.set(semantics, counts)
  return counts
}

function countPolicy({ policies }: Draft, { kind, namespace, name }: AuditKey, isDenied: boolean): void {
  const key = { kind, namespace, name }
  const text = refText(key)
  const counts = policies.get(text) ?? { key, evaluated: 0, allowed: 0, wouldDeny: 0 }
  policies.set(text, counts)
  counts.evaluated++
  if (isDenied) counts.wouldDeny++
  else counts.allowed++
}

function countOffender(
  { offenders }: Draft,
  { kind, namespace, name }: AuditKey,
  { peer, flow }: { readonly peer: string; readonly flow: StoredFlow },
): void {
  const key = `${kind} ${namespace}/${name} ${peer}`
  const known = offenders.get(key) ?? { kind, namespace, name, peer, flows: 0, lastSeen: flow.lastSeen }
  offenders.set(key, known)
  known.flows++
  known.lastSeen = Math.max(known.lastSeen, flow.lastSeen)
}

function verdictOf(flow: StoredFlow, policy: StoredAuditObject, effect: PolicyEffect): NewVerdict {
  const own = { namespace: flow.pod.namespace, pod: flow.pod.name }
  const { peer } = flow
  // A Service is no pod.
  const other = { namespace: peer?.namespace ?? null, pod: peer === null || peer.kind === 'service' ? null : peer.name }
  const [source, target] = flow.direction === 'EGRESS' ? [own, other] : [other, own]
  return {
    policyUid: policy.uid,
    policyNamespace: policy.namespace,
    policyName: policy.name,
    direction: effect.direction === 'egress' ? 'Egress' : 'Ingress',
    source,
    destination: { ...target, port: connectedPort(flow) ?? 0 },
    protocol: flow.protocol,
    reason: effect.reason,
    observedAt: flow.lastSeen,
    verdict: effect.reason === null ? 'Allow' : 'WouldDeny',
  }
}

function finish({ verdicts, sets, policies, offenders }: Draft): JudgedFlows {
  return {
    verdicts,
    sets: [...sets].map(([semantics, counts]) => ({ semantics, ...counts })),
    policies: [...policies.values()].map(({ key, ...counts }) => ({ ...key, ...counts })),
    offenders: [...offenders.values()],
  }
}
