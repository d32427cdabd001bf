/** Writes BPF instructions one by one, with labels for jumps and names for maps, and hands them out as a listing. */
import {
  type AluOp,
  type AtomicOp,
  aluCodes,
  atomicCodes,
  type Comparison,
  callCode,
  classCodes,
  exitCode,
  type Helper,
  helperNumbers,
  jumpAlways,
  jumpCodes,
  modeCodes,
  pseudoCodes,
  type Register,
  registerSource,
  type Size,
  sizeCodes,
} from './instruction-codes'

export type Label = { readonly label: string; readonly number: number }

/** A register, or a number that fits 32 bits with its sign. */
export type Operand = { readonly reg: Register } | number

export type MapReference = { readonly map: string; readonly valueOffset?: number }

export type Instruction = {
  readonly opcode: number
  readonly destination: number
  readonly source: number
  readonly offset: number
  readonly immediate: number
  /** The upper half of a 64-bit immediate: the instruction then takes two slots. */
  readonly upper?: number
  readonly target?: Label
  readonly reference?: MapReference
}

export type ListingLine = Instruction | { readonly place: Label }

export type Assembler = ReturnType<typeof createAssembler>

export const reg = (number: Register): Operand => ({ reg: number })

export function createAssembler() {
  const listing: ListingLine[] = []
  let labelCount = 0

  const emit = (opcode: number, fields: Partial<Instruction> = {}): void => {
    listing.push({ destination: 0, source: 0, offset: 0, immediate: 0, ...fields, opcode })
  }
  const operate = (
    opcode: number,
    destination: Register,
    operand: Operand,
    fields: Partial<Instruction> = {},
  ): void => {
    if (typeof operand === 'number') emit(opcode, { ...fields, destination, immediate: operand })
    else emit(opcode | registerSource, { ...fields, destination, source: operand.reg })
  }
  const wide = (destination: Register, source: number, low: number, high: number, reference?: MapReference): void =>
    emit(classCodes.ld | sizeCodes.u64 | modeCodes.imm, {
      destination,
      source,
      immediate: low,
      upper: high,
      ...(reference === undefined ? {} : { reference }),
    })

  return {
    listing: listing as readonly ListingLine[],

    newLabel(label: string): Label {
      labelCount += 1
      return { label, number: labelCount }
    },
    place(label: Label): void {
      listing.push({ place: label })
    },

    alu(op: AluOp, destination: Register, operand: Operand): void {
      operate(classCodes.alu64 | aluCodes[op], destination, operand)
    },
    /** The upper half of the register becomes zero. */
    alu32(op: AluOp, destination: Register, operand: Operand): void {
      operate(classCodes.alu32 | aluCodes[op], destination, operand)
    },
    mov(destination: Register, operand: Operand): void {
      operate(classCodes.alu64 | aluCodes.mov, destination, operand)
    },
    negate(destination: Register): void {
      emit(classCodes.alu64 | aluCodes.neg, { destination })
    },
    /** Between network order and the processor's. */
    toBigEndian(destination: Register, bits: 16 | 32 | 64): void {
      emit(classCodes.alu32 | aluCodes.end | registerSource, { destination, immediate: bits })
    },
    loadImmediate64(destination: Register, value: bigint): void {
      const low = Number(BigInt.asIntN(32, value))
      wide(destination, pseudoCodes.none, low, Number(BigInt.asIntN(32, value >> 32n)))
    },
    loadMap(destination: Register, map: string): void {
      wide(destination, pseudoCodes.map, 0, 0, { map })
    },
    /** The address of a byte in the value of a map that has one. */
    loadMapValue(destination: Register, map: string, valueOffset: number): void {
      wide(destination, pseudoCodes.mapValue, 0, valueOffset, { map, valueOffset })
    },

    load(size: Size, destination: Register, source: Register, offset: number): void {
      emit(classCodes.ldx | sizeCodes[size] | modeCodes.mem, { destination, source, offset })
    },
    store(size: Size, destination: Register, offset: number, operand: Operand): void {
      const mode = sizeCodes[size] | modeCodes.mem
      if (typeof operand === 'number') emit(classCodes.st | mode, { destination, offset, immediate: operand })
      else emit(classCodes.stx | mode, { destination, offset, source: operand.reg })
    },
    atomic(op: AtomicOp, size: 'u32' | 'u64', destination: Register, offset: number, source: Register): void {
      const opcode = classCodes.stx | sizeCodes[size] | modeCodes.atomic
      emit(opcode, { destination, source, offset, immediate: atomicCodes[op] })
    },

    jump(target: Label): void {
      emit(classCodes.jmp | jumpAlways, { target })
    },
    jumpIf(comparison: Comparison, left: Register, right: Operand, target: Label): void {
      operate(classCodes.jmp | jumpCodes[comparison], left, right, { target })
    },
    /** Compares the lower halves only. */
    jumpIf32(comparison: Comparison, left: Register, right: Operand, target: Label): void {
      operate(classCodes.jmp32 | jumpCodes[comparison], left, right, { target })
    },
    call(helper: Helper): void {
      emit(classCodes.jmp | callCode, { immediate: helperNumbers[helper] })
    },
    exit(): void {
      emit(classCodes.jmp | exitCode)
    },
  }
}
