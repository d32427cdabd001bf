/** What an agent is given: its node, where objects come from and statuses go, the datapath, a clock and a log. */
import type { EnforcedMode } from '#compile/traffic-policy/datapath-maps'
import type { NodeMode } from '#enforce/node-view'
import type { PathPrefix } from '#enforce/path-prefixes'
import type { Watch, WatchObjects } from '#sources/watch-source'
import type { AgentClock } from './agent-clock'
import type { AgentDatapath } from './agent-datapath'
import type { AgentLog } from './agent-log'
import type { StatusSink } from './status-sink'

export type AgentOptions = {
  readonly node: string
  readonly objects: WatchObjects
  readonly status: StatusSink
  /** Throws a Failure where there can be none, as without privileges. */
  readonly open: () => AgentDatapath
  /** The mode of a node whose datapath could not be opened. */
  readonly modeWithout: () => NodeMode
  /** Set at the start; without it the node's mode stays what it is. */
  readonly mode?: EnforcedMode
  /** Which bits of a packet's mark hold its path class; without it what was set before stays. */
  readonly pathMark?: PathMark
  /** The networks that give packets a path class; without it those that were set before stay. */
  readonly pathPrefixes?: WatchPathPrefixes
  /** Calls `wake` when interfaces or what is attached to them may have changed. */
  readonly interfaces: (wake: (change: InterfaceChange) => void) => InterfaceWatch
  readonly clock: AgentClock
  readonly log: AgentLog
}

export type PathMark = { readonly mask: number; readonly shift: number }

export type WatchPathPrefixes = (handlers: {
  readonly take: (prefixes: readonly PathPrefix[]) => void
  /** Why what stands there now is not used, and what to do; what was taken before counts on. */
  readonly tell: (trouble: string) => void
}) => Watch

export type InterfaceWatch = {
  /** Watches what could not be watched before. */
  readonly refresh: () => void
  readonly close: () => void
}

export type InterfaceChange = {
  /** Undefined where it may be any. */
  readonly name?: string
  /** Something may have gone: what is held is looked at. */
  readonly mayBeGone: boolean
  /** Its programs may have: so it is looked at where it is one of this node's attachments. */
  readonly mayBeUnhooked?: true
}
