/** A snapshot: one policy generation compiled for one direction of one interface's lifetime, as it is published. */
import type { Action, Direction, Entry } from './entry'

export type SnapshotRule = {
  /** From `ruleNameHash`: names themselves come from the cluster. */
  readonly nameHash: bigint
  readonly action: Action
  readonly counterRow: number
}

export type Snapshot = {
  /** The interface's lifetime it was made for. */
  readonly token: bigint
  readonly direction: Direction
  /** The policy's UID, at most 64 bytes. */
  readonly policyUid: string
  readonly generation: number
  /** The publication with which this policy came to stay here: connections end when it goes, not when it is edited. */
  readonly binding: number
  /** Counts publications, failed ones too; two snapshots of one interface never share it. */
  readonly publication: number
  readonly stateful: boolean
  readonly rules: readonly SnapshotRule[]
  readonly entries: readonly Entry[]
}
