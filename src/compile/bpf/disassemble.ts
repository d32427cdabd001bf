/** A program's bytes as text in the manner of the kernel's verifier log, for error messages and tests. */
import type { Program } from './assemble'
import {
  aluCodes,
  atomicCodes,
  callCode,
  classCodes,
  exitCode,
  helperNumbers,
  jumpAlways,
  jumpCodes,
  modeCodes,
  registerSource,
  sizeCodes,
} from './instruction-codes'

type Slot = {
  readonly opcode: number
  readonly destination: number
  readonly source: number
  readonly offset: number
  readonly immediate: number
}

/** One line an instruction, numbered by slot as the verifier numbers them; labels stand on lines of their own. */
export function disassemble(program: Program): readonly string[] {
  const { bytes, labels } = program
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const maps = new Map(program.relocations.map((one) => [one.slot, one]))
  const lines: string[] = []
  for (let slot = 0; slot < bytes.length / 8; slot++) {
    const label = labels.get(slot)
    if (label !== undefined) lines.push(`${label}:`)
    const read = readSlot(view, slot)
    if (read.opcode === (classCodes.ld | sizeCodes.u64)) {
      const reference = maps.get(slot)
      lines.push(`${slot}: r${read.destination} = ${describeWide(read, readSlot(view, slot + 1).immediate, reference)}`)
      slot += 1
    } else lines.push(`${slot}: ${describe(slot, read)}`)
  }
  return lines
}

/** The lines around one slot: what to show beside the verifier's complaint. */
export function disassembleAround(program: Program, slot: number, count = 4): readonly string[] {
  const lines = disassemble(program)
  const at = lines.findIndex((line) => line.startsWith(`${slot}: `))
  return at < 0 ? [] : lines.slice(Math.max(0, at - count), at + count + 1)
}

function readSlot(view: DataView, slot: number): Slot {
  const at = slot * 8
  return {
    opcode: view.getUint8(at),
    destination: view.getUint8(at + 1) & 15,
    source: view.getUint8(at + 1) >> 4,
    offset: view.getInt16(at + 2, true),
    immediate: view.getInt32(at + 4, true),
  }
}

function describeWide(slot: Slot, upper: number, reference: { readonly map: string } | undefined): string {
  if (reference !== undefined) return `map ${reference.map}${upper === 0 ? '' : ` value+${upper}`}`
  return `${(BigInt(upper) << 32n) | BigInt(slot.immediate >>> 0)} ll`
}

function describe(slot: number, read: Slot): string {
  const { opcode } = read
  switch (opcode & 7) {
    case classCodes.alu32:
    case classCodes.alu64:
      return describeAlu(read)
    case classCodes.jmp:
    case classCodes.jmp32:
      return describeJump(slot, read)
    case classCodes.ldx:
      return `r${read.destination} = ${memory(read, read.source)}`
    case classCodes.st:
      return `${memory(read, read.destination)} = ${read.immediate}`
    default:
      return describeStore(read)
  }
}

function describeAlu(read: Slot): string {
  const op = nameOf(aluCodes, read.opcode & 0xf0)
  const letter = (read.opcode & 7) === classCodes.alu64 ? 'r' : 'w'
  const left = `${letter}${read.destination}`
  if (op === 'end') return `r${read.destination} = be${read.immediate} r${read.destination}`
  if (op === 'neg') return `${left} = -${left}`
  return `${left} ${aluSigns[op] ?? op} ${operand(read, letter)}`
}

const aluSigns: Readonly<Record<string, string>> = {
  add: '+=',
  sub: '-=',
  mul: '*=',
  div: '/=',
  or: '|=',
  and: '&=',
  lsh: '<<=',
  rsh: '>>=',
  mod: '%=',
  xor: '^=',
  mov: '=',
  arsh: 's>>=',
}

const jumpSigns: Readonly<Record<string, string>> = {
  eq: '==',
  gt: '>',
  ge: '>=',
  set: '&',
  ne: '!=',
  sgt: 's>',
  sge: 's>=',
  lt: '<',
  le: '<=',
  slt: 's<',
  sle: 's<=',
}

function describeJump(slot: number, read: Slot): string {
  const op = read.opcode & 0xf0
  const isWide = (read.opcode & 7) === classCodes.jmp
  if (op === callCode) return `call ${nameOf(helperNumbers, read.immediate)}`
  if (op === exitCode) return 'exit'
  if (op === jumpAlways) return `goto ${slot + 1 + (isWide ? read.offset : read.immediate)}`
  const letter = isWide ? 'r' : 'w'
  const sign = jumpSigns[nameOf(jumpCodes, op)] ?? '?'
  return `if ${letter}${read.destination} ${sign} ${operand(read, letter)} goto ${slot + 1 + read.offset}`
}

function describeStore(read: Slot): string {
  const isAtomic = (read.opcode & 0xe0) === modeCodes.atomic
  if (!isAtomic) return `${memory(read, read.destination)} = r${read.source}`
  return `lock ${nameOf(atomicCodes, read.immediate)} ${memory(read, read.destination)} r${read.source}`
}

function operand(read: Slot, letter: string): string {
  return (read.opcode & registerSource) !== 0 ? `${letter}${read.source}` : String(read.immediate)
}

function memory(read: Slot, base: number): string {
  const sign = read.offset < 0 ? '-' : '+'
  return `*(${nameOf(sizeCodes, read.opcode & 0x18)})(r${base} ${sign} ${Math.abs(read.offset)})`
}

function nameOf(table: Readonly<Record<string, number>>, code: number): string {
  return Object.entries(table).find(([, value]) => value === code)?.[0] ?? String(code)
}
