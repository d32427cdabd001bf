/** What a node's agent can tell of itself at one moment: the metrics, and whoever asks, read this and nothing else. */
import type { Action, Direction } from '#compile/traffic-policy/entry'
import type { FallbackReason } from '#compile/traffic-policy/reasons'

/** One mode at any time; `unsupported` when the kernel refuses, `unknown` before the datapath has been read. */
export type NodeMode = 'off' | 'audit' | 'enforce' | 'unsupported' | 'unknown'

/** Absent `hits` and `bytes`: the row could not be read. */
export type RuleView = {
  readonly name: string
  readonly action: Action
  readonly hits?: bigint
  readonly bytes?: bigint
}

/** What is bound now. `rules` is absent where the snapshot was adopted without being readable. */
export type InstalledView = {
  readonly policyNamespace?: string
  /** Absent for the built-in policy, and where it stands in no object any more. */
  readonly policyName?: string
  readonly policyUid: string
  readonly generation: number
  readonly rules?: readonly RuleView[]
}

export type DirectionView = {
  readonly direction: Direction
  readonly installed?: InstalledView
  /** Hits of each reason; absent when the row could not be read. */
  readonly fallbacks?: Readonly<Record<FallbackReason, bigint>>
}

export type InterfaceView = {
  readonly kind: 'VPCAttachment' | 'EdgeAttachment'
  readonly namespace: string
  readonly attachment: string
  /** Empty when it is not known. */
  readonly vpc: string
  readonly interface: string
  readonly directions: readonly DirectionView[]
}

export type NodeView = {
  readonly node: string
  readonly mode: NodeMode
  readonly interfaces: readonly InterfaceView[]
  /** Rows that could not be read, since the agent started. */
  readonly counterReadErrors: number
}
