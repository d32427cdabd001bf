/** Pins that are gone, made again of the descriptors that an agent holds: tables, programs on their hooks, and what is bound. */
import { existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
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
  /** Why they cannot all be made now, and what to do; undefined where everything is pinned. */
  readonly trouble?: string
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
    const aside = putAside(tools)
    tools.place.settle()
    const pins = withTurn(tools.bpf.native, tools.folders.links, () => pinAgain(tools))
    if (aside !== undefined) takeOver({ bpf: tools.bpf, attach: tools.attach }, aside)
    return { pins }
  } catch (error) {
    if (error instanceof Failure) return { pins: 0, trouble: error.message }
    throw error
  }
}

function putAside({ bpf, folders: { root, tables: place }, tables }: RestoreTools): Folders | undefined {
  const path = join(place, tables.config.shape.name)
  const fd = openPin(bpf, path)
  if (fd === undefined) return undefined
  const found = { fd, shape: readMapShape(bpf, fd) }
  closeMap(found)
  if (found.shape.id === readMapShape(bpf, tables.config.fd).id) return undefined
  let count = 1
  while (existsSync(`${root}-aside-${count}`)) count += 1
  const aside = `${root}-aside-${count}`
  renameSync(root, aside)
  return foldersAt(aside)
}

function pinAgain({ bpf, folders, tables, attachments, publisher }: RestoreTools): number {
  const pinned = new Set(listPins(folders.tables))
  const lost = Object.values(tables).filter(({ shape }) => !pinned.has(shape.name))
  for (const { fd, shape } of lost) pin(bpf, fd, join(folders.tables, shape.name))
  return lost.length + repinAttachments({ bpf, folders }, attachments) + publisher.repin()
}
