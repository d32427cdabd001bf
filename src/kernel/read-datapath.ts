/** The datapath as it is, read beside a running agent: no lock is taken, nothing is made and nothing is changed. */
import { closeSync } from 'node:fs'
import { join } from 'node:path'
import { Failure } from '#base/failure'
import { type DatapathMap, datapathMaps, snapshotShape, usualSizes } from '#compile/traffic-policy/datapath-maps'
import type { Direction } from '#compile/traffic-policy/entry'
import { parseSnapshot } from '#compile/traffic-policy/parse-snapshot'
import type { Snapshot } from '#compile/traffic-policy/snapshot'
import { type Bpf, openBpf } from './bpf-sys'
import { listPins, openPin } from './bpffs'
import { type Count, type FallbackCounts, readCount, readFallbacks } from './counter-rows'
import { type HeldInterface, listHeld } from './datapath-interfaces'
import { boundMapId } from './datapath-snapshots'
import { type Folders, foldersOf, type Tables } from './datapath-tables'
import { type BpfMap, closeMap, lookUp, numberKey, readMapShape } from './maps'
import { loadNative, type Native } from './native'
import { namespaceInode, ownNamespace } from './network-namespace'
import { type PrefixRow, readPathPrefixes } from './path-prefixes'
import { presentInterfaces } from './present-interfaces'

export type DatapathReading = {
  readonly interfaces: readonly HeldInterface[]
  /** In this process's own network namespace. */
  readonly isHere: (held: HeldInterface) => boolean
  readonly direction: (slot: number, direction: Direction) => DirectionReading
  readonly pathPrefixes: () => readonly PrefixRow[]
  readonly close: () => void
}

export type DirectionReading = {
  /** Absent where nothing is bound; without a snapshot where it cannot be read, its pin being lost. */
  readonly bound?: { readonly snapshot?: Snapshot }
  /** Of each rule of the snapshot; undefined where the row cannot be read. */
  readonly counts: readonly (Count | undefined)[]
  /** Undefined where they cannot be read. */
  readonly fallbacks?: FallbackCounts
}

/** Throws a Failure where there is no datapath, or where this process may not read it. */
export function readDatapath({ folder, native = loadNative() }: { folder: string; native?: Native }): DatapathReading {
  const bpf = openBpf(native)
  const folders = foldersOf(folder)
  const tables = openReadOnly(bpf, folders)
  const own = namespaceInode(ownNamespace)
  return {
    interfaces: presentInterfaces({ bpf, folders }, listHeld({ bpf, tables })),
    isHere: ({ namespace }) => namespace === own,
    direction: (slot, direction) => readDirection({ bpf, folders, tables }, slot, direction),
    pathPrefixes: () => readPathPrefixes(bpf, tables.prefixes),
    close() {
      for (const map of Object.values(tables)) closeMap(map)
    },
  }
}

function openReadOnly(bpf: Bpf, { tables }: Folders): Tables {
  const opened: [DatapathMap, BpfMap][] = []
  try {
    for (const [name, shape] of Object.entries(datapathMaps(usualSizes))) {
      const fd = openPin(bpf, join(tables, shape.name), 'read')
      if (fd === undefined) {
        throw new Failure('kernel.refused', `${tables} holds no datapath; name the folder of the agent with --bpffs`)
      }
      const { maxEntries } = readMapShape(bpf, fd)
      opened.push([name as DatapathMap, { fd, shape: { ...shape, maxEntries } }])
    }
    return Object.fromEntries(opened) as Tables
  } catch (error) {
    for (const [, map] of opened) closeMap(map)
    throw error
  }
}

type Tools = { readonly bpf: Bpf; readonly folders: Folders; readonly tables: Tables }

function readDirection(tools: Tools, slot: number, direction: Direction): DirectionReading {
  const { bpf, tables } = tools
  const bound = readBound(tools, slot, direction)
  const fallbacks = orUndefined(() => readFallbacks(bpf, tables, slot, direction))
  const rest = fallbacks === undefined ? {} : { fallbacks }
  const snapshot = bound?.snapshot
  if (snapshot === undefined) return { ...(bound !== undefined && { bound }), counts: [], ...rest }
  const counts = snapshot.rules.map(({ counterRow }) => orUndefined(() => readCount(bpf, tables, counterRow)))
  return { bound: { snapshot }, counts, ...rest }
}

/** What was replaced while it was looked for is looked for again. */
function readBound(tools: Tools, slot: number, direction: Direction): DirectionReading['bound'] {
  const idNow = (): number | undefined => boundMapId(tools, { slot, direction })
  let mapId = idNow()
  for (;;) {
    if (mapId === undefined) return undefined
    const snapshot = findSnapshot(tools, mapId)
    if (snapshot !== undefined) return { snapshot }
    const before = mapId
    mapId = idNow()
    if (mapId === before) return {}
  }
}

/** By the id of its map: a pin's name alone proves nothing. */
function findSnapshot({ bpf, folders }: Tools, mapId: number): Snapshot | undefined {
  for (const name of listPins(folders.snapshots)) {
    // It may have been unpinned since the folder was listed.
    const fd = orUndefined(() => openPin(bpf, join(folders.snapshots, name), 'read'))
    if (fd === undefined) continue
    try {
      const { id } = readMapShape(bpf, fd)
      if (id !== mapId) continue
      const bytes = lookUp(bpf, { fd, shape: snapshotShape() }, numberKey(0))
      return bytes === undefined ? undefined : parseSnapshot(bytes)
    } finally {
      closeSync(fd)
    }
  }
  return undefined
}

function orUndefined<T>(read: () => T | undefined): T | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof Failure) return undefined
    throw error
  }
}
