/** A datapath of test runs alone: tables and programs without interfaces, and policies published straight into slots. */
import { randomBytes } from 'node:crypto'
import { type DatapathSizes, interfaceLayout, usualSizes } from '#compile/traffic-policy/datapath-maps'
import type { Direction, Entry } from '#compile/traffic-policy/entry'
import { ruleNameHash } from '#compile/traffic-policy/print-snapshot'
import type { Snapshot } from '#compile/traffic-policy/snapshot'
import { type Bpf, openBpf } from '#kernel/bpf-sys'
import { ensurePrograms } from '#kernel/datapath-programs'
import { bindPrepared, dropPrepared, prepareSnapshot, unbind } from '#kernel/datapath-snapshots'
import { type Folders, makeFolders, openTables, type Tables } from '#kernel/datapath-tables'
import { numberKey, update } from '#kernel/maps'
import type { BpffsFolder } from './bpffs-folder'

export type DatapathCase = { readonly bpf: Bpf; readonly tables: Tables; readonly folders: Folders }

export function openDatapathCase(folder: BpffsFolder, sizes: Partial<DatapathSizes> = {}): DatapathCase {
  const bpf = openBpf()
  const folders = makeFolders(folder.path)
  const tables = openTables({ bpf, folders, sizes: { ...usualSizes, connections: 1 << 18, ...sizes } })
  ensurePrograms(bpf, tables)
  return { bpf, tables, folders }
}

/** A new lifetime in the slot; earlier connections there are void. */
export function giveToken({ bpf, tables }: DatapathCase, slot: number, vpc = 0): bigint {
  const token = randomBytes(8).readBigUInt64LE() | 1n
  const row = Buffer.alloc(interfaceLayout.size)
  row.writeBigUInt64LE(token, interfaceLayout.token)
  row.writeUInt32LE(vpc, interfaceLayout.vpc)
  update(bpf, tables.interfaces, numberKey(slot), row)
  return token
}

let publication = 0

export type SnapshotSpec = {
  readonly token: bigint
  readonly direction: Direction
  readonly entries: readonly Entry[]
  readonly stateful: boolean
  readonly firstRow: number
  /** The snapshot that this one is an edit of. */
  readonly after?: Snapshot | undefined
}

export function snapshotOf({ token, direction, entries, stateful, firstRow, after }: SnapshotSpec): Snapshot {
  publication += 1
  const count = Math.max(0, ...entries.map(({ rule }) => rule)) + 1
  return {
    token,
    direction,
    policyUid: after?.policyUid ?? `policy-${publication}`,
    generation: (after?.generation ?? 0) + 1,
    binding: after?.binding ?? publication,
    publication,
    stateful,
    rules: Array.from({ length: count }, (_, index) => ({
      nameHash: ruleNameHash(`rule-${index}`),
      action: entries.find(({ rule }) => rule === index)?.action ?? 'deny',
      counterRow: firstRow + index,
    })),
    entries,
  }
}

export function bindAll(
  one: DatapathCase,
  bindings: readonly {
    readonly slot: number
    readonly direction: Direction
    readonly snapshot: Snapshot | undefined
  }[],
): void {
  for (const { slot, direction, snapshot } of bindings) if (snapshot === undefined) unbind(one, { slot, direction })
  const prepared = bindings.flatMap(({ slot, direction, snapshot }) =>
    snapshot === undefined ? [] : [prepareSnapshot(one, { slot, direction }, snapshot)],
  )
  if (prepared.length > 0) bindPrepared(one, prepared)
  // The table holds them: neither descriptor nor pin is needed any more.
  for (const each of prepared) dropPrepared(one, each)
}
