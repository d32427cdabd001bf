/** What the store keeps of policies in audit mode: the objects, the flows that wait to be judged, verdicts and counters. */
import type { StoredFlow } from '#flows/flow'
import type { Instant } from '#flows/instant'

/** Of an object in audit mode; `namespace` is empty where the kind has none. */
export type AuditKey = { readonly kind: string; readonly namespace: string; readonly name: string }

/** A policy, or an object that such policies read: a Namespace for its labels. */
export type AuditObject = AuditKey & {
  readonly uid: string
  /** Policies of one text are judged together: `k8s`, `cilium-1.18`. Empty: no policy, and every set has it. */
  readonly semantics: string
  readonly manifest: Readonly<Record<string, unknown>>
}

export type StoredAuditObject = AuditObject & {
  /** The generation of all policies that brought it, or changed it last. */
  readonly generation: number
  readonly updatedAt: Instant
}

export type AuditObjects = { readonly generation: number; readonly objects: readonly StoredAuditObject[] }

/** `scope`: policies of earlier generations have judged it. 0: none has. */
export type WaitingFlow = { readonly queueId: number; readonly scope: number; readonly flow: StoredFlow | undefined }

/** What a policy that is only watched would have done to a flow. */
export type StoredVerdict = {
  readonly id: number
  readonly policyUid: string
  readonly policyNamespace: string
  readonly policyName: string
  readonly direction: 'Ingress' | 'Egress'
  readonly source: { readonly namespace: string | null; readonly pod: string | null }
  readonly destination: { readonly namespace: string | null; readonly pod: string | null; readonly port: number }
  readonly protocol: string
  readonly reason: string | null
  readonly observedAt: Instant
  readonly verdict: 'Allow' | 'WouldDeny'
}

export type NewVerdict = Omit<StoredVerdict, 'id'>

export type AuditCounts = {
  readonly evaluated: number
  readonly allowed: number
  readonly wouldDeny: number
}

export type SetCounts = AuditCounts & {
  readonly unknown: number
  /** Dropped when they were seen: nothing is asked of them. */
  readonly dropped: number
}

export type PolicyTally = AuditKey & AuditCounts

export type Offender = { readonly peer: string; readonly flows: number; readonly lastSeen: Instant }

/** What a number of flows came to. */
export type JudgedFlows = {
  readonly verdicts: readonly NewVerdict[]
  readonly sets: readonly (SetCounts & { readonly semantics: string })[]
  readonly policies: readonly PolicyTally[]
  readonly offenders: readonly (AuditKey & Offender)[]
}

export type AuditPassSettings = {
  /** Flows without a peer are judged once they are older: until then the late pass may find it. */
  readonly windowSeconds: number
  readonly chunkRows?: number
  /** Asked at the pass's beginning, and again whenever policies have changed. */
  readonly prepare: (objects: AuditObjects) => Promise<(flows: readonly WaitingFlow[]) => JudgedFlows>
}

export type AuditPassDone = { readonly judged: number; readonly verdicts: number; readonly lost: number }

export type AuditSummary = {
  readonly generation: number
  /** Flows that are not judged yet. */
  readonly waiting: number
  readonly sets: readonly (SetCounts & { readonly semantics: string; readonly judgedAt: Instant | null })[]
  /** Policies alone, by namespace, name and kind; of each the peers that most denied flows are with. */
  readonly policies: readonly (Omit<StoredAuditObject, 'manifest'> &
    AuditCounts & { readonly offenders: readonly Offender[] })[]
}

export type AuditStore = {
  readonly objects: () => Promise<AuditObjects>
  /** What is as it was keeps its counters. `isWhole`: objects that are not among these go. */
  readonly put: (
    objects: readonly AuditObject[],
    how: { readonly isWhole: boolean; readonly now: Instant },
  ) => Promise<AuditObjects>
  /** How many went. Their verdicts stay until retention. */
  readonly remove: (keys: readonly AuditKey[] | 'all') => Promise<number>
  readonly summary: () => Promise<AuditSummary>
  readonly hasPolicies: () => Promise<boolean>
}
