/** A cluster's objects as they come and go: what a loop reads, whether they stand in files or behind an API. */
import type { Finding } from '#base/finding'
import type { Cluster } from '#model/cluster'

export type ObjectsRead = {
  readonly cluster: Cluster
  readonly findings: readonly Finding[]
  /** A part could never be read: what is missing may be there, so that nothing may be concluded from its absence. */
  readonly isPartial: boolean
}

export type WatchHandlers = {
  /** With everything there is: at first, and after each change. */
  readonly take: (read: ObjectsRead) => void
  /** What cannot be read, as a sentence; what was read of it before counts on. */
  readonly tell: (trouble: string) => void
}

export type Watch = {
  /** Looks again, in case word of a change was lost. */
  readonly refresh: () => void
  readonly close: () => void
}

export type WatchObjects = (handlers: WatchHandlers) => Watch
