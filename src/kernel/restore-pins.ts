/** Pins that are gone, made again of the descriptors that an agent holds: tables, programs on their hooks, and what is bound. */
import { existsSync, readdirSync, renameSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { Failure } from '#base/failure'
import type { Bpf } from './bpf-sys'
import { listPins, openPin, pin } from './bpffs'
import type { AttachRequest } from './datapath-interfaces'
import type { Publisher } from './datapath-publisher'
import { type Folders, foldersAt, type Tables } from './datapath-tables'
import { type HeldAttachments, repinAttachments } from './held-attachments'
import { closeMap, readMapShape } from './maps'
import { takeOver } from './older-versions'
import type { PinPlace } from './pin-place'
import { withTurn } from './writer-lock'

export type Restored = {
  /** How many pins were made. */
  readonly pins: number
  /** How many datapaths that others had made in the place were taken over; their modes are not. */
  readonly takenOver: number
  readonly trouble?: PinTrouble
}

export type PinTrouble = {
  /** Why they cannot all be made now, and what to do. */
  readonly why: string
  /** Links are held by this process alone: they go with it. */
  readonly isHeldAlone: boolean
}

export type RestoreTools = {
  readonly bpf: Bpf
  readonly folders: Folders
  readonly tables: Tables
  readonly place: PinPlace
  readonly attachments: HeldAttachments
  readonly publisher: Pick<Publisher, 'repin'>
  readonly attach: (request: AttachRequest) => unknown
}

/**
 * Another datapath may stand in the place by then, of what a CNI chain attached to an empty bpffs: it is put aside, and
 * its interfaces are taken over as those of an earlier version are. Nothing is let through meanwhile.
 */
export function restorePins(tools: RestoreTools): Restored {
  try {
    putAside(tools)
    tools.place.settle()
    const pins = withTurn(tools.bpf.native, tools.folders.links, () => pinAgain(tools))
    // Also what a process that ended in the middle has left aside.
    const asides = listAsides(tools.folders)
    for (const aside of asides) takeOver({ bpf: tools.bpf, attach: tools.attach }, foldersAt(aside))
    return { pins, takenOver: asides.length }
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    return { pins: 0, takenOver: 0, trouble: { why: error.message, isHeldAlone: isHeldAlone(tools) } }
  }
}

/** A bpffs that is read-only takes no new pins, and has those that there are. */
function isHeldAlone({ place, folders, attachments }: RestoreTools): boolean {
  if (!place.isHere()) return true
  const pinned = listPins(folders.links)
  return [...attachments.links.keys()].some((name) => !pinned.includes(name))
}

function putAside({ bpf, folders: { root, tables: place }, tables }: RestoreTools): void {
  const path = join(place, tables.config.shape.name)
  const fd = openPin(bpf, path)
  if (fd === undefined) return
  const found = { fd, shape: readMapShape(bpf, fd) }
  closeMap(found)
  if (found.shape.id === readMapShape(bpf, tables.config.fd).id) return
  let count = 1
  while (existsSync(`${root}${asideMark}${count}`)) count += 1
  renameSync(root, `${root}${asideMark}${count}`)
}

const asideMark = '-aside-'

function listAsides({ root }: Folders): readonly string[] {
  const folder = dirname(root)
  return readdirSync(folder)
    .filter((name) => name.startsWith(`${basename(root)}${asideMark}`))
    .map((name) => join(folder, name))
}

function pinAgain({ bpf, folders, tables, attachments, publisher }: RestoreTools): number {
  const pinned = new Set(listPins(folders.tables))
  const lost = Object.values(tables).filter(({ shape }) => !pinned.has(shape.name))
  for (const { fd, shape } of lost) pin(bpf, fd, join(folders.tables, shape.name))
  return lost.length + repinAttachments({ bpf, folders }, attachments) + publisher.repin()
}
