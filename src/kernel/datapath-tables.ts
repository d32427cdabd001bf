/** The datapath's tables: opened by their pins, made where there are none, and never another layout under one name. */
import { closeSync } from 'node:fs'
import { join } from 'node:path'
import { Failure } from '#base/failure'
import type { MapShape } from '#compile/bpf/map-shape'
import {
  configLayout,
  type DatapathMap,
  type DatapathSizes,
  datapathMaps,
  datapathVersion,
  type EnforcedMode,
  modeNumbers,
  snapshotShape,
} from '#compile/traffic-policy/datapath-maps'
import type { Bpf } from './bpf-sys'
import { checkBpffs, makeFolder, openPin, pin, unpin } from './bpffs'
import { type BpfMap, closeMap, createMap, lookUp, numberKey, readMapShape, update } from './maps'

export type Folders = {
  readonly root: string
  readonly tables: string
  readonly links: string
  readonly programs: string
  readonly snapshots: string
}

export type Tables = Readonly<Record<DatapathMap, BpfMap>>

export function foldersOf(folder: string, version: number | string = datapathVersion): Folders {
  return foldersAt(join(folder, `v${version}`))
}

export function foldersAt(root: string): Folders {
  return {
    root,
    tables: join(root, 'tp_tables'),
    links: join(root, 'tp_links'),
    programs: join(root, 'tp_programs'),
    snapshots: join(root, 'tp_snapshots'),
  }
}

export function makeFolders(folder: string): Folders {
  checkBpffs(folder)
  const folders = foldersOf(folder)
  for (const path of Object.values(folders)) makeFolder(path)
  return folders
}

/**
 * What is not there yet is made, and pinned once `prepare` is done with the whole: where that fails nothing is left. The
 * descriptors are the caller's to close, but for a failure.
 */
export function openTables(
  { bpf, folders, sizes }: { readonly bpf: Bpf; readonly folders: Folders; readonly sizes: DatapathSizes },
  prepare: (tables: Tables) => void = () => {},
): Tables {
  const opened: BpfMap[] = []
  const made: BpfMap[] = []
  const pattern = createMap(bpf, snapshotShape())
  try {
    const entries = Object.entries(datapathMaps(sizes)).map(([name, shape]) => {
      const found = openTable(bpf, pathOf(folders, shape), shape)
      const map = found ?? createMap(bpf, shape, name === 'bound' ? pattern : undefined)
      opened.push(map)
      if (found === undefined) made.push(map)
      return [name, map]
    })
    const tables = Object.fromEntries(entries) as Tables
    prepare(tables)
    pinAll(bpf, folders, made)
    return tables
  } catch (error) {
    for (const map of opened) closeMap(map)
    throw error
  } finally {
    closeMap(pattern)
  }
}

function pathOf({ tables }: Folders, { name }: MapShape): string {
  return join(tables, name)
}

function pinAll(bpf: Bpf, folders: Folders, made: readonly BpfMap[]): void {
  const pinned: string[] = []
  try {
    for (const { fd, shape } of made) {
      pin(bpf, fd, pathOf(folders, shape))
      pinned.push(pathOf(folders, shape))
    }
  } catch (error) {
    for (const path of pinned) unpin(path)
    throw error
  }
}

/** Undefined where there is none; the descriptor is the caller's. */
export function openTable(bpf: Bpf, path: string, shape: MapShape): BpfMap | undefined {
  const fd = openPin(bpf, path)
  if (fd === undefined) return undefined
  let isKept = false
  try {
    const found = readMapShape(bpf, fd)
    // What was made with other sizes stays as it is: its rows are in use.
    isKept = found.type === shape.type && found.keySize === shape.keySize && found.valueSize === shape.valueSize
    if (isKept) return { fd, shape: { ...shape, maxEntries: found.maxEntries } }
  } finally {
    if (!isKept) closeSync(fd)
  }
  throw new Failure(
    'kernel.refused',
    `${path} holds a table of another layout than this version's; stop the agents of this node and remove the folder`,
  )
}

const configRow = numberKey(0)

export function readConfig(bpf: Bpf, tables: ConfigTable): Buffer {
  return lookUp(bpf, tables.config, configRow) ?? Buffer.alloc(configLayout.size)
}

type ConfigTable = Pick<Tables, 'config'>

/** Undefined for a number that this version does not know. */
export function readMode(bpf: Bpf, tables: ConfigTable): EnforcedMode | undefined {
  const number = readConfig(bpf, tables).readUInt32LE(configLayout.mode)
  return (Object.keys(modeNumbers) as EnforcedMode[]).find((mode) => modeNumbers[mode] === number)
}

export function isModeChosen(bpf: Bpf, tables: ConfigTable): boolean {
  return readConfig(bpf, tables).readUInt32LE(configLayout.isChosen) === 1
}

/** As `writeConfig`, under the lock of whoever may write. */
export function writeMode(bpf: Bpf, tables: ConfigTable, mode: EnforcedMode): void {
  writeConfig(bpf, tables, (row) => {
    row.writeUInt32LE(modeNumbers[mode], configLayout.mode)
    row.writeUInt32LE(1, configLayout.isChosen)
  })
}

/** Under the lock of whoever may write: the whole row is written. */
export function writeConfig(bpf: Bpf, tables: ConfigTable, change: (row: Buffer) => void): void {
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
