/** The datapath of one node: interfaces held, snapshots published, mode, counters and denials. */
import { Failure } from '#base/failure'
import {
  configLayout,
  type DatapathSizes,
  type EnforcedMode,
  eventBudgetLayout,
  usualSizes,
} from '#compile/traffic-policy/datapath-maps'
import type { Direction } from '#compile/traffic-policy/entry'
import { type Denial, parseEvent } from '#compile/traffic-policy/parse-event'
import { openBpf } from './bpf-sys'
import { type Count, type FallbackCounts, readCount, readFallbacks } from './counter-rows'
import {
  type AttachRequest,
  attachInterface,
  detachInterface,
  type HeldInterface,
  isAttached,
  listHeld,
} from './datapath-interfaces'
import { ensurePrograms, notePrograms } from './datapath-programs'
import { type Publisher, publisherOf } from './datapath-publisher'
import { isModeChosen, makeFolders, openTables, readMode, writeConfig, writeMode } from './datapath-tables'
import { closeAttachments, type HeldAttachments, holdAttachments, noAttachments } from './held-attachments'
import { hookAgain } from './hook-again'
import { setAsideLost } from './lost-tables'
import { type BpfMap, closeMap, lookUp, numberKey, rowSize } from './maps'
import { loadNative, type Native } from './native'
import { inheritMode, lockOlder, type OlderVersions } from './older-versions'
import { type PrefixRow, setPathPrefixes } from './path-prefixes'
import { openPinPlace, type PinPlace } from './pin-place'
import { presentInterfaces } from './present-interfaces'
import { type Restored, restorePins } from './restore-pins'
import { openRing } from './ring-buffer'
import { withTurn } from './writer-lock'

export type DatapathOptions = {
  /** On a bpffs. */
  readonly folder: string
  readonly sizes?: DatapathSizes
  readonly native?: Native
}

/** Attaches interfaces: what a CNI chain calls, beside a running agent. */
export type Attacher = {
  readonly attach: (request: AttachRequest) => HeldInterface
  readonly detach: (held: HeldInterface) => void
  /** An agent's are as its own network namespace has them now. */
  readonly interfaces: () => readonly HeldInterface[]
  readonly isAttached: (held: HeldInterface) => boolean
  readonly mode: () => EnforcedMode | undefined
  readonly setMode: (mode: EnforcedMode) => void
  /** Sets it where nobody has set one yet. */
  readonly startMode: (mode: EnforcedMode) => void
  readonly close: () => void
}

export type Datapath = Attacher &
  Publisher & {
    /** Looks at all that is held: what lost its interface is detached, and what lost only its programs has them put back. */
    readonly dropGone: () => Dropped
    /** Takes hold of what others attached meanwhile: their programs stay even if the bpffs goes. */
    readonly hold: () => void
    /** Makes pins that are gone again; without `isThorough` only where the whole folder went. */
    readonly restorePins: (isThorough: boolean) => Restored
    /** False while the mode is the one that every new datapath has. */
    readonly isModeChosen: () => boolean
    readonly setPathMark: (mark: { readonly mask: number; readonly shift: number }) => void
    /** All of them: networks that are not among these go. Tells how many rows were written or removed. */
    readonly setPathPrefixes: (prefixes: readonly PrefixRow[]) => number
    readonly readRule: (row: number) => Count | undefined
    readonly readFallbacks: (slot: number, direction: Direction) => FallbackCounts | undefined
    /** Calls `take` with each denial since the last call. */
    readonly readDenials: (take: (denial: Denial) => void) => number
    readonly lostDenials: () => bigint
  }

export type Dropped = {
  readonly gone: readonly HeldInterface[]
  /** As they were: where nothing was left of their programs they have another lifetime now. */
  readonly hookedAgain: readonly HeldInterface[]
}

export type { AttachRequest, HeldInterface }

const directions = ['ingress', 'egress'] as const

/** Attaching takes turns by a short lock of its own; it does not need the agent's. */
export function openAttacher(options: DatapathOptions): Attacher {
  setAsideLost(options.native ?? loadNative(), options.folder)
  return openParts(options).attacher
}

/** The agent's: a second one of the same folder is refused. */
export function openDatapath(options: DatapathOptions): Datapath {
  const native = options.native ?? loadNative()
  setAsideLost(native, options.folder)
  const older = lockOlder(native, options.folder)
  try {
    const place = openPinPlace(native, options.folder)
    try {
      return openLocked(options, { place, older })
    } catch (error) {
      place.release()
      throw error
    }
  } finally {
    older.release()
  }
}

type Locks = { readonly place: PinPlace; readonly older: OlderVersions }

/** What fails on the way closes what was opened before. */
function openTools(options: DatapathOptions, { place, older }: Locks) {
  const attachments = noAttachments()
  const parts = openParts(options, { place, attachments })
  const { bpf, tables, folders, attacher } = parts
  const closers = [attacher.close, () => closeAttachments(attachments)]
  const close = (): void => {
    for (const one of closers.splice(0).toReversed()) one()
  }
  const hold = (): void => {
    const slots = new Set(listHeld({ bpf, tables }).map(({ slot }) => slot))
    holdAttachments({ bpf, folders }, attachments, slots)
  }
  try {
    older.takeOver({ bpf, attach: attacher.attach })
    const publisher = publisherOf({ bpf, tables, folders })
    closers.push(publisher.close)
    const ring = openRing(bpf.native, tables.events)
    closers.push(ring.close)
    hold()
    return { ...parts, attachments, publisher, ring, hold, close }
  } catch (error) {
    close()
    throw error
  }
}

function openLocked(options: DatapathOptions, locks: Locks): Datapath {
  const { place } = locks
  const opened = openTools(options, locks)
  const { bpf, tables, folders, attacher, detachGone, alone, attachments, publisher, ring, hold, close } = opened
  const detach = (held: HeldInterface): void => {
    for (const direction of directions) publisher.unbind({ slot: held.slot, direction })
    attacher.detach(held)
    hold()
  }
  return {
    ...attacher,
    ...publisher,
    attach(request) {
      const held = attacher.attach(request)
      hold()
      return held
    },
    detach,
    dropGone() {
      const dropped = detachGone()
      for (const { slot } of dropped.gone) for (const direction of directions) publisher.unbind({ slot, direction })
      hold()
      return dropped
    },
    hold,
    interfaces: () => presentInterfaces({ bpf, folders }, listHeld({ bpf, tables }), attachments),
    publish(requests) {
      const why = place.whyLost()
      if (why !== undefined) throw new Failure('kernel.refused', why)
      return publisher.publish(requests)
    },
    restorePins(isThorough) {
      if (!isThorough && place.isHere()) return { pins: 0, takenOver: 0 }
      const { attach } = attacher
      const restored = restorePins({ bpf, folders, tables, place, attachments, publisher, attach })
      if (restored.pins + restored.takenOver > 0) hold()
      return restored
    },
    isModeChosen: () => isModeChosen(bpf, tables),
    setPathMark: ({ mask, shift }) =>
      alone(() =>
        writeConfig(bpf, tables, (row) => {
          row.writeUInt32LE(mask, configLayout.markMask)
          row.writeUInt32LE(shift, configLayout.markShift)
        }),
      ),
    setPathPrefixes: (prefixes) => setPathPrefixes(bpf, tables.prefixes, prefixes),
    readRule: (row) => readCount(bpf, tables, row),
    readFallbacks: (slot, direction) => readFallbacks(bpf, tables, slot, direction),
    readDenials: (take) =>
      ring.read((record) => {
        const denial = parseEvent(record)
        if (denial !== undefined) take(denial)
      }),
    lostDenials: () => readLost(bpf, tables.eventBudget),
    close() {
      close()
      place.release()
    },
  }
}

/** What an agent has beside an attacher: its place and what it holds. */
type Held = { readonly place: PinPlace; readonly attachments: HeldAttachments }

function openParts({ folder, sizes = usualSizes, native = loadNative() }: DatapathOptions, agent?: Held) {
  const bpf = openBpf(native)
  const folders = makeFolders(folder)
  // Nobody else is at work in a folder that is gone.
  const alone = <T>(work: () => T): T =>
    agent?.place.isHere() === false ? work() : withTurn(native, folders.links, work)
  const tables = alone(() => {
    let isNew = false
    const opened = openTables({ bpf, folders, sizes }, (made) => {
      isNew = ensurePrograms(bpf, made)
    })
    try {
      // Only now are the tables that the programs use the ones that everybody finds.
      if (isNew) notePrograms(bpf, opened)
      inheritMode({ bpf, tables: opened }, folder)
    } catch (error) {
      for (const map of Object.values(opened)) closeMap(map)
      throw error
    }
    return opened
  })
  const tools = { bpf, folders, tables }
  const attacher: Attacher = {
    attach: (request) => alone(() => attachInterface(tools, request)),
    detach: (held) =>
      alone(() => {
        // Its slot may be another's by now.
        if (listHeld(tools).some(({ token }) => token === held.token)) detachInterface(tools, held)
      }),
    interfaces: () => listHeld(tools),
    isAttached: (held) => isAttached(tools, held),
    mode: () => readMode(bpf, tables),
    setMode: (mode) => alone(() => writeMode(bpf, tables, mode)),
    startMode: (mode) =>
      alone(() => {
        if (!isModeChosen(bpf, tables)) writeMode(bpf, tables, mode)
      }),
    close() {
      for (const map of Object.values(tables)) closeMap(map)
    },
  }
  /** In one turn: what another process is about to attach has a row, and no programs yet. */
  const detachGone = (): Dropped =>
    alone(() => {
      const lost = listHeld(tools).filter((held) => !isAttached(tools, held, agent?.attachments))
      const hookedAgain = lost.filter((held) => hookAgain(tools, held))
      const gone = lost.filter((held) => !hookedAgain.includes(held))
      for (const held of gone) detachInterface(tools, held)
      return { gone, hookedAgain }
    })
  return { bpf, tables, folders, attacher, detachGone, alone }
}

function readLost(bpf: ReturnType<typeof openBpf>, map: BpfMap): bigint {
  const slots = lookUp(bpf, map, numberKey(0)) ?? Buffer.alloc(rowSize(map.shape))
  let lost = 0n
  for (let at = 0; at < slots.length; at += eventBudgetLayout.size) {
    lost += slots.readBigUInt64LE(at + eventBudgetLayout.lost)
  }
  return lost
}
