/** Snapshots in the kernel: published by one swap, pinned while bound, read back through their pins. */
import { join } from 'node:path'
import { boundRow, snapshotShape } from '#compile/traffic-policy/datapath-maps'
import type { Direction } from '#compile/traffic-policy/entry'
import { parseSnapshot } from '#compile/traffic-policy/parse-snapshot'
import { printSnapshot } from '#compile/traffic-policy/print-snapshot'
import type { Snapshot } from '#compile/traffic-policy/snapshot'
import type { Bpf } from './bpf-sys'
import { listPins, pin, unpin, withPin } from './bpffs'
import type { Folders, Tables } from './datapath-tables'
import { updateBatch } from './map-batch'
import { type BpfMap, closeMap, createMap, lookUp, numberKey, readMapShape, remove, update } from './maps'

export type SnapshotTools = { readonly bpf: Bpf; readonly folders: Folders; readonly tables: Tables }

export type Place = { readonly slot: number; readonly direction: Direction }

const zeroKey = numberKey(0)

export function pinNameOf(snapshot: Snapshot): string {
  return `${snapshot.token.toString(16).padStart(16, '0')}-${snapshot.direction}-${snapshot.publication}`
}

export type Prepared = Place & { readonly snapshot: Snapshot; readonly map: BpfMap; readonly mapId: number }

/** Created, filled and pinned: no packet meets it yet. What was made is removed again when a step fails. */
export function prepareSnapshot({ bpf, folders }: SnapshotTools, place: Place, snapshot: Snapshot): Prepared {
  const map = createMap(bpf, snapshotShape())
  try {
    update(bpf, map, zeroKey, printSnapshot(snapshot), 'fill snapshot')
    const { id } = readMapShape(bpf, map.fd)
    // Each attempt has a name of its own, and a refusal that is the same is to be told once.
    pin(bpf, map.fd, join(folders.snapshots, pinNameOf(snapshot)), `a snapshot in ${folders.snapshots}`)
    return { ...place, snapshot, map, mapId: id }
  } catch (error) {
    closeMap(map)
    throw error
  }
}

/** All at once: the kernel waits for packets in flight a single time. */
export function bindPrepared({ bpf, tables }: SnapshotTools, all: readonly Prepared[]): void {
  if (all.length === 1 && all[0] !== undefined) {
    const [one] = all
    update(bpf, tables.bound, numberKey(boundRow(one.slot, one.direction)), numberKey(one.map.fd), 'swap snapshot')
    return
  }
  const keys = Buffer.concat(all.map((one) => numberKey(boundRow(one.slot, one.direction))))
  const values = Buffer.concat(all.map((one) => numberKey(one.map.fd)))
  updateBatch(bpf, tables.bound, { count: all.length, keys, values }, 'swap snapshot')
}

/** One that is not bound: nothing of it is to stay. */
export function dropPrepared({ folders }: SnapshotTools, one: Prepared): void {
  closeMap(one.map)
  unpin(join(folders.snapshots, pinNameOf(one.snapshot)))
}

type Bound = { readonly mapId: number; readonly snapshot: Snapshot }

/** What was bound before is bound again, by its pin; false where that is lost or another's. */
export function rebind({ bpf, folders, tables }: SnapshotTools, place: Place, before: Bound): boolean {
  const isBack = withPin(bpf, join(folders.snapshots, pinNameOf(before.snapshot)), (fd) => {
    if (readMapShape(bpf, fd).id !== before.mapId) return false
    update(bpf, tables.bound, numberKey(boundRow(place.slot, place.direction)), numberKey(fd), 'swap back')
    return true
  })
  return isBack === true
}

/** Packets are denied as policy_unavailable from now on. */
export function unbind({ bpf, tables }: SnapshotTools, place: Place): boolean {
  return remove(bpf, tables.bound, numberKey(boundRow(place.slot, place.direction)))
}

export function boundMapId({ bpf, tables }: SnapshotTools, place: Place): number | undefined {
  const id = lookUp(bpf, tables.bound, numberKey(boundRow(place.slot, place.direction)))?.readUInt32LE(0)
  return id === 0 ? undefined : id
}

/** Every pin with the id of its map and its content; what is no snapshot of this version has none. */
export function readPins(tools: SnapshotTools): ReadonlyMap<number, { pinName: string; snapshot?: Snapshot }> {
  const { bpf, folders } = tools
  const found = new Map<number, { pinName: string; snapshot?: Snapshot }>()
  for (const pinName of listPins(folders.snapshots)) {
    withPin(bpf, join(folders.snapshots, pinName), (fd) => {
      const shape = readMapShape(bpf, fd)
      const isSnapshot = shape.type === 'array' && shape.valueSize === snapshotShape().valueSize
      const bytes = isSnapshot ? lookUp(bpf, { fd, shape }, zeroKey) : undefined
      const snapshot = bytes === undefined ? undefined : parseSnapshot(bytes)
      found.set(shape.id, { pinName, ...(snapshot === undefined ? {} : { snapshot }) })
    })
  }
  return found
}

/** Pins whose map is bound nowhere hold memory for nothing. */
export function sweepPins(tools: SnapshotTools, boundIds: ReadonlySet<number>): number {
  let swept = 0
  for (const [id, { pinName }] of readPins(tools)) {
    if (boundIds.has(id)) continue
    unpin(join(tools.folders.snapshots, pinName))
    swept += 1
  }
  return swept
}
