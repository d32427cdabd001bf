/** The cluster as the controller meets it: objects with the statuses that others wrote, and a place for its own. */
import type { ObjectsRead, WatchObjects } from '#sources/watch-source'
import type { ConditionPatch } from '#wire/condition-patch'

export type ObjectStore = {
  /** Once; throws a Failure where something cannot be read. */
  readonly read: () => Promise<ObjectsRead>
  readonly watch: WatchObjects
  /** Server-side apply by the controller's field manager: the conditions are all that it says of the object. */
  readonly apply: (patch: ConditionPatch) => Promise<void>
}
