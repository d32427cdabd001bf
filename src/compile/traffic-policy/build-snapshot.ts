/** A compiled policy made ready for one direction of one interface, and whether two such snapshots say the same. */
import type { CompiledPolicy } from './compile-policy'
import type { Direction } from './entry'
import { printSnapshot, ruleNameHash } from './print-snapshot'
import type { Snapshot } from './snapshot'

export type SnapshotPlace = {
  readonly token: bigint
  readonly direction: Direction
  /** The publication with which the policy came to stay: this one's own number unless it follows one of the same UID. */
  readonly binding: number
  readonly publication: number
  /** One for each rule, in their order. */
  readonly counterRows: readonly number[]
}

export function buildSnapshot(compiled: CompiledPolicy, place: SnapshotPlace): Snapshot {
  const { token, direction, binding, publication, counterRows } = place
  return {
    token,
    direction,
    policyUid: compiled.uid,
    generation: compiled.generation,
    binding,
    publication,
    stateful: compiled.stateful,
    rules: compiled.rules.map(({ name, action }, index) => ({
      nameHash: ruleNameHash(name),
      action,
      counterRow: counterRows[index] ?? 0,
    })),
    entries: compiled.entries,
  }
}

/**
 * Format, entries, rule names and actions, as bytes. Which rows count and whose lifetime and publication it is are no part
 * of it: a restarted agent cannot know the rows before it has read them.
 */
export function snapshotContent(snapshot: Snapshot): Uint8Array {
  const rules = snapshot.rules.map((rule) => ({ ...rule, counterRow: 0 }))
  return printSnapshot({ ...snapshot, token: 0n, binding: 0, publication: 0, policyUid: '', generation: 0, rules })
}

export function hasSameContent(one: Snapshot, other: Snapshot): boolean {
  const bytes = snapshotContent(other)
  return snapshotContent(one).every((byte, at) => byte === bytes[at])
}
