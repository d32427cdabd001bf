/** What an earlier version of Portolan left pinned: its interfaces and its mode are taken over, then its pins go. */
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type DatapathMap, datapathMaps, datapathVersion, usualSizes } from '#compile/traffic-policy/datapath-maps'
import type { Bpf } from './bpf-sys'
import { listPins, unpin, withPin } from './bpffs'
import { type AttachRequest, clearInterface, type HeldInterface, listHeld, pinName } from './datapath-interfaces'
import {
  type Folders,
  foldersOf,
  isModeChosen,
  openTable,
  readConfig,
  type Tables,
  writeConfig,
} from './datapath-tables'
import { findPlace } from './find-place'
import { detachLink, type LinkInfo, readLink } from './links'
import { findLost } from './lost-tables'
import { type BpfMap, closeMap } from './maps'
import type { Native } from './native'
import { takeWriterLock } from './writer-lock'

type Taker = { readonly bpf: Bpf; readonly attach: (request: AttachRequest) => unknown }

export type OlderVersions = {
  /** With nothing let through meanwhile: this version's programs are on a hook before the earlier one's leave it. */
  readonly takeOver: (tools: Taker) => void
  readonly release: () => void
}

/** The latest first. */
function findOlder(folder: string): readonly Folders[] {
  const versions = Array.from({ length: datapathVersion - 1 }, (_, index) => datapathVersion - 1 - index)
  const older = versions.map((version) => foldersOf(folder, version)).filter(({ root }) => existsSync(root))
  return [...findLost(folder), ...older]
}

/**
 * Until one is chosen for this version, the node's mode is what it was: also for what a CNI chain attaches before the
 * agent has started.
 */
export function inheritMode(
  { bpf, tables }: { readonly bpf: Bpf; readonly tables: Pick<Tables, 'config'> },
  folder: string,
): void {
  for (const older of findOlder(folder)) {
    if (isModeChosen(bpf, tables)) return
    const config = openOlder(bpf, older, 'config')
    if (config === undefined) continue
    const row = readConfig(bpf, { config })
    if (isModeChosen(bpf, { config })) writeConfig(bpf, tables, (own) => void row.copy(own))
    closeMap(config)
  }
}

/** Their agents must be gone: one that still runs is told before anything is made. */
export function lockOlder(native: Native, folder: string): OlderVersions {
  const found = findOlder(folder)
  const locks: { readonly release: () => void }[] = []
  const release = (): void => {
    for (const lock of locks.splice(0)) lock.release()
  }
  try {
    for (const { root } of found) locks.push(takeWriterLock(native, root))
  } catch (error) {
    release()
    throw error
  }
  return {
    takeOver(tools) {
      for (const folders of found) takeOver(tools, folders)
    },
    release,
  }
}

/** The rows of the mode and of interfaces are alike in all versions so far; others are refused as another layout. */
export function takeOver(tools: Taker, older: Folders): void {
  const interfaces = openOlder(tools.bpf, older, 'interfaces')
  try {
    const isTaken = interfaces === undefined || takeInterfaces(tools, older, interfaces)
    // With links that no row tells of: of what was half attached, or is gone.
    if (isTaken) rmSync(older.root, { recursive: true })
  } finally {
    if (interfaces !== undefined) closeMap(interfaces)
  }
}

function openOlder(bpf: Bpf, { tables }: Folders, name: DatapathMap): BpfMap | undefined {
  const shape = datapathMaps(usualSizes)[name]
  return openTable(bpf, join(tables, shape.name), shape)
}

/** Whether none is left. */
function takeInterfaces({ bpf, attach }: Taker, older: Folders, interfaces: BpfMap): boolean {
  let isAll = true
  for (const held of listHeld({ bpf, tables: { interfaces } })) {
    const links = readLinks(bpf, older, held)
    const place = findPlace(bpf, held, links[0])
    if (place === undefined && links.length > 0) {
      isAll = false
      continue
    }
    if (place !== undefined) attach({ ...place, side: held.side, vpc: held.vpc })
    dropPrograms(bpf, older, held)
    clearInterface(bpf, interfaces, held.slot)
  }
  return isAll
}

const hooks = ['ingress', 'egress'] as const

/** Of an interface that is still there. */
function readLinks(bpf: Bpf, older: Folders, { slot }: HeldInterface): readonly LinkInfo[] {
  return hooks.flatMap((hook) => {
    const link = withPin(bpf, join(older.links, pinName(slot, hook)), (fd) => readLink(bpf, fd))
    return link === undefined || link.interfaceIndex === 0 ? [] : [link]
  })
}

/** A filter of clsact has this version's program by now: there is one place for it on a hook. */
function dropPrograms(bpf: Bpf, older: Folders, { slot }: HeldInterface): void {
  for (const hook of hooks) {
    const name = pinName(slot, hook)
    withPin(bpf, join(older.links, name), (fd) => detachLink(bpf, fd))
    unpin(join(older.links, name))
    if (listPins(older.programs).includes(name)) unpin(join(older.programs, name))
  }
}
