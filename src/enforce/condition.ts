/** Conditions as Kubernetes has them: what was judged now, with the moment its status last changed kept from before. */
import type { TrafficPolicyBindingStatus } from '#model/traffic-policy-binding-schema'

export type Condition = NonNullable<TrafficPolicyBindingStatus['conditions']>[number]

/** Without its times. Messages hold no moment that passes by itself, so that an unchanged world is an unchanged status. */
export type Judgement = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>

export type ConditionHistory = {
  /** As they were written last. */
  readonly before: readonly Condition[]
  /** metadata.generation of the object that was judged. */
  readonly generation: number
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** What the controller owns of a list of conditions: those that it says no more are gone. */
export const controllerTypes: readonly string[] = [
  'Resolved',
  'IngressResolved',
  'EgressResolved',
  'Installed',
  'Enforcing',
  'Conflict',
  'TrafficPolicyResolved',
  'Valid',
]

/** `lastTransitionTime` moves when the status of a type changes, not with its reason. */
export function datedConditions(
  judged: readonly Judgement[],
  { before, generation, now }: ConditionHistory,
): readonly Condition[] {
  return judged.map(({ type, status, reason, message }) => {
    const known = before.find((one) => one.type === type && one.status === status)
    return {
      type,
      status,
      observedGeneration: generation,
      lastTransitionTime: known?.lastTransitionTime ?? printTime(now),
      reason,
      message: message.slice(0, mostMessage),
    }
  })
}

/** What the schema of conditions takes. */
const mostMessage = 32_768

/** To the second, as the API server keeps times. */
export function printTime(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replace(/\.\d+Z$/, 'Z')
}
