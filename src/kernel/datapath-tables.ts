/** The datapath's tables: opened by their pins, made where there are none, and never another layout under one name. */
import { closeSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { Failure } from '#base/failure'
import type { MapShape } from '#compile/bpf/map-shape'
import {
  configLayout,
  type DatapathMap,
  type DatapathSizes,
  datapathMaps,
  datapathVersion,
  snapshotShape,
} from '#compile/traffic-policy/datapath-maps'
import type { Bpf } from './bpf-sys'
import { checkBpffs, openPin, pin } from './bpffs'
import { type BpfMap, closeMap, createMap, lookUp, numberKey, readMapShape, update } from './maps'

export type Folders = {
  readonly root: string
  readonly tables: string
  readonly links: string
  readonly programs: string
  readonly snapshots: string
}

export type Tables = Readonly<Record<DatapathMap, BpfMap>>

export function makeFolders(folder: string): Folders {
  checkBpffs(folder)
  const root = join(folder, `v${datapathVersion}`)
  const folders = {
    root,
    tables: join(root, 'tp_tables'),
    links: join(root, 'tp_links'),
    programs: join(root, 'tp_programs'),
    snapshots: join(root, 'tp_snapshots'),
  }
  for (const path of Object.values(folders)) mkdirSync(path, { recursive: true, mode: 0o700 })
  return folders
}

export function openTables(bpf: Bpf, folders: Folders, sizes: DatapathSizes): Tables {
  const opened: BpfMap[] = []
  const pattern = createMap(bpf, snapshotShape())
  try {
    const tables = Object.entries(datapathMaps(sizes)).map(([name, shape]) => {
      const map = openTable(bpf, join(folders.tables, shape.name), shape, name === 'bound' ? pattern : undefined)
      opened.push(map)
      return [name, map]
    })
    return Object.fromEntries(tables) as Tables
  } catch (error) {
    for (const map of opened) closeMap(map)
    throw error
  } finally {
    closeMap(pattern)
  }
}

function openTable(bpf: Bpf, path: string, shape: MapShape, inner: BpfMap | undefined): BpfMap {
  const fd = openPin(bpf, path)
  if (fd === undefined) {
    const map = createMap(bpf, shape, inner)
    pin(bpf, map.fd, path)
    return map
  }
  const found = readMapShape(bpf, fd)
  // What was made with other sizes stays as it is: its rows are in use.
  const isKnown = found.type === shape.type && found.keySize === shape.keySize && found.valueSize === shape.valueSize
  if (isKnown) return { fd, shape: { ...shape, maxEntries: found.maxEntries } }
  closeSync(fd)
  throw new Failure(
    'kernel.refused',
    `${path} holds a table of another layout than this version's; stop the agents of this node and remove the folder`,
  )
}

const configRow = numberKey(0)

export function readConfig(bpf: Bpf, tables: Tables): Buffer {
  return lookUp(bpf, tables.config, configRow) ?? Buffer.alloc(configLayout.size)
}

/** Under the lock of whoever may write: the whole row is written. */
export function writeConfig(bpf: Bpf, tables: Tables, change: (row: Buffer) => void): void {
  const row = readConfig(bpf, tables)
  change(row)
  update(bpf, tables.config, configRow, row)
}

export function readNumber(bpf: Bpf, tables: Tables, row: number): bigint {
  return lookUp(bpf, tables.numbers, numberKey(row))?.readBigUInt64LE() ?? 0n
}

export function writeNumber(bpf: Bpf, tables: Tables, row: number, number: bigint): void {
  const value = Buffer.alloc(8)
  value.writeBigUInt64LE(number)
  update(bpf, tables.numbers, numberKey(row), value)
}
