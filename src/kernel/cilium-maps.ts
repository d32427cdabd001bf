/** Maps of Cilium's layouts in a bpffs of their own: created, filled, pinned under their names and read back. */
import { join, resolve } from 'node:path'
import { Failure } from '#base/failure'
import type { MapShape } from '#compile/bpf/map-shape'
import type { DumpedMap, DumpedRow } from '#compile/cilium/dumped-map'
import { type Bpf, openBpf, succeed } from './bpf-sys'
import { mountBpffs, openPin, repin } from './bpffs'
import { type BpfMap, closeMap, createMap, lookUp, nextKey, numberKey, update } from './maps'

export type LoadedMap = { readonly name: string; readonly path: string; readonly rows: number }

/** Programs cannot be made up, and maps that traffic fills would only take memory. */
function isLoadable({ layout }: DumpedMap): boolean {
  return layout.by !== 'datapath' && layout.type !== 'programArray'
}

/** Replaces what was pinned in the folder under the same names. */
export function loadMaps(at: string, maps: readonly DumpedMap[]): readonly LoadedMap[] {
  const bpf = openBpf()
  // Mount points are told by their whole paths.
  const folder = resolve(at)
  mountBpffs(bpf, folder)
  return maps.filter(isLoadable).map((map) => {
    const path = join(folder, map.layout.name)
    const loaded = map.inner === undefined ? loadRows(bpf, map) : loadTables(bpf, map)
    try {
      repin(bpf, loaded.fd, path)
    } finally {
      closeMap(loaded)
    }
    readBack(bpf, map, path)
    return { name: map.layout.name, path, rows: map.rows.length }
  })
}

/** The kernel keeps fifteen characters of a name; pins keep the whole. */
function shapeOf({ layout }: DumpedMap): MapShape {
  const { name, type, keySize, valueSize, maxEntries } = layout
  return { name: name.slice(0, 15), type, keySize, valueSize, maxEntries }
}

function loadRows(bpf: Bpf, map: DumpedMap): BpfMap {
  const made = createMap(bpf, shapeOf(map))
  for (const { keyBytes, valueBytes } of map.rows) update(bpf, made, keyBytes, valueBytes)
  return made
}

/** Each service's table is an array of one row. */
function loadTables(bpf: Bpf, map: DumpedMap): BpfMap {
  const size = Math.max(4, ...[...(map.inner?.values() ?? [])].map((table) => table.byteLength))
  const shape: MapShape = { name: 'cilium_lb_magle', type: 'array', keySize: 4, valueSize: size, maxEntries: 1 }
  const pattern = createMap(bpf, shape)
  const made = createMap(bpf, shapeOf(map), pattern)
  closeMap(pattern)
  for (const row of map.rows) {
    const inner = createMap(bpf, shape)
    update(bpf, inner, numberKey(0), tableBytes(map, row))
    update(bpf, made, row.keyBytes, numberKey(inner.fd))
    closeMap(inner)
  }
  return made
}

function tableBytes({ inner }: DumpedMap, row: DumpedRow): Uint8Array {
  return new Uint8Array(inner?.get(row)?.buffer ?? new ArrayBuffer(4))
}

/** From the pin, as anybody else would read it. */
function readBack(bpf: Bpf, map: DumpedMap, path: string): void {
  const fd = openPin(bpf, path)
  if (fd === undefined) throw new Failure('kernel.refused', `${path} is gone right after it was pinned`)
  const opened = { fd, shape: shapeOf(map) }
  try {
    const wanted = new Map(map.rows.map((row) => [hexOf(row.keyBytes), row]))
    const found = keysOf(bpf, opened)
    const differs = found.find((key) => !isSame(bpf, opened, { key, map, row: wanted.get(hexOf(key)) }))
    if (found.length === wanted.size && differs === undefined) return
    const what =
      differs === undefined
        ? `${found.length} rows where ${wanted.size} were written`
        : `another row at ${hexOf(differs)}`
    throw new Failure('kernel.refused', `${path} reads back with ${what}`)
  } finally {
    closeMap(opened)
  }
}

function keysOf(bpf: Bpf, map: BpfMap): readonly Buffer[] {
  const keys: Buffer[] = []
  for (let key = nextKey(bpf, map); key !== undefined; key = nextKey(bpf, map, key)) keys.push(key)
  return keys
}

type ReadRow = { readonly key: Buffer; readonly map: DumpedMap; readonly row: DumpedRow | undefined }

function isSame(bpf: Bpf, opened: BpfMap, { key, map, row }: ReadRow): boolean {
  const value = lookUp(bpf, opened, key)
  if (row === undefined || value === undefined) return false
  if (map.inner === undefined) return value.equals(row.valueBytes)
  // A map of maps reads back as the inner map's id.
  const bytes = tableBytes(map, row)
  return readTable(bpf, value.readUInt32LE(0), bytes.length)?.equals(bytes) === true
}

/** The one row of a lookup table. */
export function readTable(bpf: Bpf, id: number, valueSize: number): Buffer | undefined {
  const result = bpf.call('mapById', 'open a table', (attributes) => attributes.u32(0, id))
  const shape: MapShape = { name: 'table', type: 'array', keySize: 4, valueSize, maxEntries: 1 }
  const map = { fd: succeed(result, `opening the table ${id}`), shape }
  try {
    return lookUp(bpf, map, numberKey(0))
  } finally {
    closeMap(map)
  }
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}
