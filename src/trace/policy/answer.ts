/** What the evaluator answers of one connection: each direction with its decision, its reasons and all that bears on it. */
import type { ObjectRef, Origin } from '#base/finding'
import type { RuleAction } from '#compile/policy/policy-rule'
import type { Reason } from '#model/trace'

export type Decision = 'allowed' | 'denied' | 'unknown'

export type PolicyReason = Reason & { readonly path?: string }

/** A rule that matches the connection, or may. */
export type RuleReport = {
  readonly object: ObjectRef
  readonly origin: Origin
  readonly path: string
  readonly name?: string
  readonly action: RuleAction
  /** Others match too, but a rule before them has decided. */
  readonly decides: boolean
  /** False where the input cannot tell whether it matches. */
  readonly isCertain: boolean
  readonly sentence: string
}

/** A policy that says nothing of the connection, and why. */
export type OtherPolicy = {
  readonly object: ObjectRef
  readonly origin: Origin
  readonly path?: string
  readonly why: string
}

export type DirectionAnswer = {
  readonly decision: Decision
  readonly because: readonly [PolicyReason, ...PolicyReason[]]
  readonly rules: readonly RuleReport[]
  /** The tiers that the connection passed: `[ANP] Pass -> [NPv1] Dropped`. */
  readonly tiers: string
  readonly others: readonly OtherPolicy[]
  /** What would have to change for another decision. */
  readonly changes: readonly string[]
}

/** `allowed` is null where it is unknown: both directions must allow. */
export type PolicyAnswer = {
  readonly allowed: boolean | null
  readonly ingress: DirectionAnswer
  readonly egress: DirectionAnswer
  /** What holds of the connection as a whole: replies, and what both sides rest on. */
  readonly notes: readonly string[]
}
