/** A verdict of a watched policy, as the compatible path writes it. */
import Type, { type Static } from 'typebox'
import { type Instant, printNaive } from '#flows/instant'
import { nullableText, word } from './schema-parts'

export const verdictWords = ['Allow', 'WouldDeny'] as const
export const policyDirections = ['Ingress', 'Egress'] as const

export const VerdictRecord = Type.Object(
  {
    id: Type.Integer(),
    policy_uid: Type.String(),
    policy_namespace: Type.String({ description: 'empty: the policy is cluster-scoped' }),
    policy_name: Type.String(),
    direction: word(policyDirections, 'of the policy'),
    src_namespace: nullableText('of the pod that connects'),
    src_pod: nullableText('its name'),
    dst_namespace: nullableText('of the pod that is connected to'),
    dst_pod: nullableText('its name'),
    dst_port: Type.Integer(),
    protocol: Type.String(),
    reason: nullableText('why it would be denied'),
    observed_at: Type.String({ description: 'UTC' }),
    verdict: word(verdictWords, 'what the policy would have done'),
  },
  { description: 'What a policy that is only watched would have done to a flow.' },
)

export type VerdictRecord = Static<typeof VerdictRecord>

/** What `StoredVerdict` has, without knowing the store. */
type PrintableVerdict = {
  readonly id: number
  readonly policyUid: string
  readonly policyNamespace: string
  readonly policyName: string
  readonly direction: (typeof policyDirections)[number]
  readonly source: { readonly namespace: string | null; readonly pod: string | null }
  readonly destination: { readonly namespace: string | null; readonly pod: string | null; readonly port: number }
  readonly protocol: string
  readonly reason: string | null
  readonly observedAt: Instant
  readonly verdict: (typeof verdictWords)[number]
}

export function printVerdict(verdict: PrintableVerdict): VerdictRecord {
  return {
    id: verdict.id,
    policy_uid: verdict.policyUid,
    policy_namespace: verdict.policyNamespace,
    policy_name: verdict.policyName,
    direction: verdict.direction,
    src_namespace: verdict.source.namespace,
    src_pod: verdict.source.pod,
    dst_namespace: verdict.destination.namespace,
    dst_pod: verdict.destination.pod,
    dst_port: verdict.destination.port,
    protocol: verdict.protocol,
    reason: verdict.reason,
    observed_at: printNaive(verdict.observedAt),
    verdict: verdict.verdict,
  }
}
