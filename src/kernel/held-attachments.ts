/** Descriptors of what is attached: while they are open the programs stay, and can be pinned again, whatever becomes of the bpffs. */
import { closeSync } from 'node:fs'
import { join } from 'node:path'
import { Failure } from '#base/failure'
import type { Bpf } from './bpf-sys'
import { listPins, openPin, pin } from './bpffs'
import type { Folders } from './datapath-tables'
import { readLink } from './links'
import { readProgramInfo } from './programs'

type Attachment = { readonly fd: number; readonly id: number }

/** By pin name: links, and for clsact programs. */
export type HeldAttachments = { readonly links: Map<string, Attachment>; readonly programs: Map<string, Attachment> }

type Kind = {
  readonly folder: 'links' | 'programs'
  readonly idOf: (bpf: Bpf, fd: number) => number
  /** What is attached no more is not held. */
  readonly isInUse: (bpf: Bpf, fd: number) => boolean
}

const kinds: readonly Kind[] = [
  {
    folder: 'links',
    idOf: (bpf, fd) => readLink(bpf, fd).id,
    isInUse: (bpf, fd) => readLink(bpf, fd).interfaceIndex !== 0,
  },
  { folder: 'programs', idOf: (bpf, fd) => readProgramInfo(bpf, fd).id, isInUse: () => true },
]

export function noAttachments(): HeldAttachments {
  return { links: new Map(), programs: new Map() }
}

/**
 * Takes hold of all that is pinned, and keeps what lost its pin for as long as its slot is held: to let go of a link would
 * take its program off. A slot that was given to another interface has another link under its name.
 */
export function holdAttachments(tools: Tools, held: HeldAttachments, slots: ReadonlySet<number>): void {
  for (const kind of kinds) holdKind(tools, held[kind.folder], { kind, slots })
}

type Tools = { readonly bpf: Bpf; readonly folders: Folders }
type Holding = { readonly kind: Kind; readonly slots: ReadonlySet<number> }

function holdKind({ bpf, folders }: Tools, known: Map<string, Attachment>, { kind, slots }: Holding): void {
  const pinned = listPins(folders[kind.folder])
  for (const name of pinned) {
    const fd = openAny(bpf, join(folders[kind.folder], name))
    if (fd === undefined) continue
    const before = known.get(name)
    // Whatever this descriptor becomes, one of both is let go of.
    let spare: number | undefined = fd
    try {
      const id = kind.idOf(bpf, fd)
      if (before?.id === id) continue
      known.set(name, { fd, id })
      spare = before?.fd
    } finally {
      if (spare !== undefined) closeSync(spare)
    }
  }
  for (const [name, { fd }] of known) {
    const [slot = ''] = name.split('-')
    if (pinned.includes(name) || (slots.has(Number(slot)) && kind.isInUse(bpf, fd))) continue
    closeSync(fd)
    known.delete(name)
  }
}

/** What cannot be opened, as on a bpffs that is read-only now, stays held as it is. */
function openAny(bpf: Bpf, path: string): number | undefined {
  try {
    return openPin(bpf, path)
  } catch (error) {
    if (error instanceof Failure) return undefined
    throw error
  }
}

/** Tells how many pins were made. */
export function repinAttachments({ bpf, folders }: Tools, held: HeldAttachments): number {
  let made = 0
  for (const { folder, isInUse } of kinds) {
    const pinned = new Set(listPins(folders[folder]))
    for (const [name, { fd }] of held[folder]) {
      if (pinned.has(name) || !isInUse(bpf, fd)) continue
      pin(bpf, fd, join(folders[folder], name))
      made += 1
    }
  }
  return made
}

export function closeAttachments({ links, programs }: HeldAttachments): void {
  for (const { fd } of [...links.values(), ...programs.values()]) closeSync(fd)
}
