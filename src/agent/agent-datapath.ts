/** What the agent needs of a datapath: the kernel's, or a working model of it. */
import type { Datapath, HeldInterface } from '#kernel/datapath'

export type AgentDatapath = Pick<
  Datapath,
  | 'interfaces'
  | 'dropGone'
  | 'hold'
  | 'publish'
  | 'unbind'
  | 'published'
  | 'restorePins'
  | 'isModeChosen'
  | 'sweepWhenDue'
  | 'mode'
  | 'setMode'
  | 'setPathMark'
  | 'setPathPrefixes'
  | 'readRule'
  | 'readFallbacks'
  | 'close'
> & {
  /** Whether an interface is one of the agent's own network namespace. */
  readonly isHere: (held: HeldInterface) => boolean
  /** Why one that this datapath does not hold is under policy all the same; undefined where it is not. */
  readonly whyStrange: (interfaceName: string) => string | undefined
}
