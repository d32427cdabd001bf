/** A listing becomes a program: what is never reached goes, labels become distances, and map names stay to be linked. */
import { invariant } from '#base/invariant'
import type { Instruction, Label, ListingLine, MapReference } from './assembler'
import { classCodes, exitCode, jumpAlways } from './instruction-codes'

export type Relocation = MapReference & { readonly slot: number }

export type Program = {
  /** Eight bytes a slot, little-endian; map references are zero until `linkProgram`. */
  readonly bytes: Uint8Array
  readonly relocations: readonly Relocation[]
  /** Where a label stands, for whoever reads the program as text. */
  readonly labels: ReadonlyMap<number, string>
}

const slotSize = 8
const goto = classCodes.jmp | jumpAlways
/** Linux 6.6: the distance of an unconditional jump is in the immediate. */
const gotoLong = classCodes.jmp32 | jumpAlways

export function assemble(listing: readonly ListingLine[]): Program {
  const lines = withoutIdleJumps(withoutDeadCode(listing))
  const { slots, places } = layOut(lines)
  const bytes = new Uint8Array(slots * slotSize)
  const relocations: Relocation[] = []
  let slot = 0
  for (const line of lines) {
    if ('place' in line) continue
    writeInstruction(new DataView(bytes.buffer), slot, line, places)
    if (line.reference !== undefined) relocations.push({ ...line.reference, slot })
    slot += slotsOf(line)
  }
  const labels = new Map(
    lines.flatMap((line): [number, string][] =>
      'place' in line ? [[places.get(line.place.number) ?? 0, line.place.label]] : [],
    ),
  )
  return { bytes, relocations, labels }
}

/** The program with the maps' file descriptors in it. */
export function linkProgram(program: Program, fdOf: (map: string) => number): Uint8Array {
  const bytes = Uint8Array.from(program.bytes)
  const view = new DataView(bytes.buffer)
  for (const { slot, map } of program.relocations) view.setInt32(slot * slotSize + 4, fdOf(map), true)
  return bytes
}

/** The kernel refuses a program with an instruction that no path reaches. */
function withoutDeadCode(listing: readonly ListingLine[]): readonly ListingLine[] {
  const placeOf = new Map(listing.flatMap((line, index) => ('place' in line ? [[line.place.number, index]] : [])))
  const reached = new Set<number>()
  const open = [0]
  for (let index = open.pop(); index !== undefined; index = open.pop()) {
    if (reached.has(index)) continue
    const line = listing[index]
    invariant(line !== undefined, 'a BPF program ends with an exit or a jump')
    reached.add(index)
    if ('place' in line) {
      open.push(index + 1)
      continue
    }
    if (line.target !== undefined) open.push(placeIn(placeOf, line.target))
    if (line.opcode !== goto && line.opcode !== (classCodes.jmp | exitCode)) open.push(index + 1)
  }
  return listing.filter((_, index) => reached.has(index))
}

/** A jump to what stands next anyway costs the verifier a step and the reader a line. */
function withoutIdleJumps(lines: readonly ListingLine[]): readonly ListingLine[] {
  return lines.filter((line, index) => {
    if ('place' in line || line.opcode !== goto) return true
    for (let next = index + 1; ; next++) {
      const following = lines[next]
      if (following === undefined || !('place' in following)) return true
      if (following.place.number === line.target?.number) return false
    }
  })
}

function layOut(lines: readonly ListingLine[]): { readonly slots: number; readonly places: Map<number, number> } {
  const places = new Map<number, number>()
  let slots = 0
  for (const line of lines) {
    if (!('place' in line)) {
      slots += slotsOf(line)
      continue
    }
    invariant(!places.has(line.place.number), `the label ${line.place.label} stands in two places`)
    places.set(line.place.number, slots)
  }
  return { slots, places }
}

function slotsOf(instruction: Instruction): number {
  return instruction.upper === undefined ? 1 : 2
}

function placeIn(places: ReadonlyMap<number, number>, label: Label): number {
  const place = places.get(label.number)
  invariant(place !== undefined, `the label ${label.label} is placed`)
  return place
}

function writeInstruction(
  view: DataView,
  slot: number,
  instruction: Instruction,
  places: ReadonlyMap<number, number>,
): void {
  const { opcode, offset, immediate } = withDistance(slot, instruction, places)
  const at = slot * slotSize
  invariant(fits(immediate, 32) && fits(offset, 16), 'the numbers of an instruction fit their fields')
  view.setUint8(at, opcode)
  view.setUint8(at + 1, instruction.destination | (instruction.source << 4))
  view.setInt16(at + 2, offset, true)
  view.setInt32(at + 4, immediate, true)
  if (instruction.upper !== undefined) view.setInt32(at + slotSize + 4, instruction.upper, true)
}

function withDistance(slot: number, instruction: Instruction, places: ReadonlyMap<number, number>): Instruction {
  if (instruction.target === undefined) return instruction
  const distance = placeIn(places, instruction.target) - slot - 1
  if (fits(distance, 16)) return { ...instruction, offset: distance }
  invariant(instruction.opcode === goto, `the conditional jump to ${instruction.target.label} spans 16 bits at most`)
  return { ...instruction, opcode: gotoLong, immediate: distance }
}

function fits(value: number, bits: 16 | 32): boolean {
  const half = 2 ** (bits - 1)
  // An immediate may also be written without its sign.
  return Number.isInteger(value) && value >= -half && value < (bits === 32 ? 2 * half : half)
}
