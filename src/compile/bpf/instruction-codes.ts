/** The numbers of BPF's instruction set (RFC 9669): one table a part of the opcode byte. */

export const classCodes = { ld: 0, ldx: 1, st: 2, stx: 3, alu32: 4, jmp: 5, jmp32: 6, alu64: 7 } as const

export const sizeCodes = { u8: 0x10, u16: 0x08, u32: 0x00, u64: 0x18 } as const
export type Size = keyof typeof sizeCodes

export const modeCodes = { imm: 0x00, mem: 0x60, atomic: 0xc0 } as const

export const aluCodes = {
  add: 0x00,
  sub: 0x10,
  mul: 0x20,
  div: 0x30,
  or: 0x40,
  and: 0x50,
  lsh: 0x60,
  rsh: 0x70,
  neg: 0x80,
  mod: 0x90,
  xor: 0xa0,
  mov: 0xb0,
  arsh: 0xc0,
  end: 0xd0,
} as const
export type AluOp = Exclude<keyof typeof aluCodes, 'end' | 'neg'>

/** Comparisons without a sign, but for those whose names begin with `s`; `set` is "any of these bits". */
export const jumpCodes = {
  eq: 0x10,
  gt: 0x20,
  ge: 0x30,
  set: 0x40,
  ne: 0x50,
  sgt: 0x60,
  sge: 0x70,
  lt: 0xa0,
  le: 0xb0,
  slt: 0xc0,
  sle: 0xd0,
} as const
export type Comparison = keyof typeof jumpCodes

export const jumpAlways = 0x00
export const callCode = 0x80
export const exitCode = 0x90
/** In the opcode byte: the second operand is a register. */
export const registerSource = 0x08

export const atomicCodes = { add: 0x00, or: 0x40 } as const
export type AtomicOp = keyof typeof atomicCodes

/** What the source register field of a 64-bit immediate says of it. */
export const pseudoCodes = { none: 0, map: 1, mapValue: 2 } as const

/** Kernel functions by the numbers of `enum bpf_func_id`. */
export const helperNumbers = {
  map_lookup_elem: 1,
  map_update_elem: 2,
  map_delete_elem: 3,
  ktime_get_ns: 5,
  skb_store_bytes: 9,
  tail_call: 12,
  skb_load_bytes: 26,
  skb_change_tail: 38,
  jiffies64: 118,
  ringbuf_reserve: 131,
  ringbuf_submit: 132,
  ktime_get_coarse_ns: 160,
} as const
export type Helper = keyof typeof helperNumbers

export type Register = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10
export const framePointer = 10
