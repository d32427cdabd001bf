/** What a rule's test may look at: the path's packet, the hook it is in, and the node. */
import type { Fields, Path } from './path'
import type { Test } from './question'
import type { World } from './world'

export type Hook = 'INGRESS' | 'PREROUTING' | 'INPUT' | 'FORWARD' | 'OUTPUT' | 'POSTROUTING'

export type View = {
  readonly path: Path
  readonly fields: Fields
  readonly hook: Hook
  readonly table: string
  readonly world: World
}

/** A rule's clause, compiled: all of its tests must hold. */
export type Decide = (view: View) => readonly Test[]
