/** Instructions against the bytes of RFC 9669, and what happens to labels, dead code and map names. */
import { expect, test } from 'vitest'
import { assemble, linkProgram } from './assemble'
import { type Assembler, createAssembler, reg } from './assembler'
import { disassemble, disassembleAround } from './disassemble'

function program(write: (a: Assembler) => void) {
  const a = createAssembler()
  write(a)
  return assemble(a.listing)
}

function hex(write: (a: Assembler) => void): string {
  const { bytes } = program((a) => {
    write(a)
    a.exit()
  })
  return Buffer.from(bytes.subarray(0, -8)).toString('hex')
}

test.each([
  ['mov r1, 7', 'b701000007000000', (a: Assembler) => a.mov(1, 7)],
  ['mov r1, -1', 'b7010000ffffffff', (a: Assembler) => a.mov(1, -1)],
  ['mov r6, r1', 'bf16000000000000', (a: Assembler) => a.mov(6, reg(1))],
  ['add r2, r3', '0f32000000000000', (a: Assembler) => a.alu('add', 2, reg(3))],
  ['and32 w2, 0xff', '54020000ff000000', (a: Assembler) => a.alu32('and', 2, 255)],
  ['neg r3', '8703000000000000', (a: Assembler) => a.negate(3)],
  ['be16 r4', 'dc04000010000000', (a: Assembler) => a.toBigEndian(4, 16)],
  ['ldxw r0, [r1+76]', '61104c0000000000', (a: Assembler) => a.load('u32', 0, 1, 76)],
  ['ldxdw r3, [r10-8]', '79a3f8ff00000000', (a: Assembler) => a.load('u64', 3, 10, -8)],
  ['ldxb r3, [r2+9]', '7123090000000000', (a: Assembler) => a.load('u8', 3, 2, 9)],
  ['stxh [r10-2], r1', '6b1afeff00000000', (a: Assembler) => a.store('u16', 10, -2, reg(1))],
  ['stw [r10-4], 5', '620afcff05000000', (a: Assembler) => a.store('u32', 10, -4, 5)],
  ['lock add [r1+8], r2', 'db21080000000000', (a: Assembler) => a.atomic('add', 'u64', 1, 8, 2)],
  ['lock or [r1+4], r2', 'c321040040000000', (a: Assembler) => a.atomic('or', 'u32', 1, 4, 2)],
  ['call 26', '850000001a000000', (a: Assembler) => a.call('skb_load_bytes')],
  [
    'lddw r1',
    '1801000088776655'.concat('0000000044332211'),
    (a: Assembler) => a.loadImmediate64(1, 0x1122334455667788n),
  ],
])('%s', (_, expected, write) => {
  expect(hex(write)).toBe(expected)
})

test('a jump counts slots from the next instruction, both ways, and a wide instruction is two of them', () => {
  const { bytes } = program((a) => {
    const back = a.newLabel('back')
    const end = a.newLabel('end')
    a.place(back)
    a.jumpIf('eq', 1, 0, end)
    a.loadImmediate64(2, 1n)
    a.jumpIf32('gt', 1, reg(2), back)
    a.mov(0, 1)
    a.place(end)
    a.exit()
  })
  const offsets = [0, 3].map((slot) => new DataView(bytes.buffer).getInt16(slot * 8 + 2, true))
  expect(offsets).toEqual([4, -4])
  expect(bytes[0]).toBe(0x15)
  expect(bytes[3 * 8]).toBe(0x2e)
})

test('what no path reaches is left out, and a jump to the next line with it', () => {
  const { bytes, labels } = program((a) => {
    const end = a.newLabel('end')
    const nowhere = a.newLabel('nowhere')
    a.mov(0, 1)
    a.jump(end)
    a.place(nowhere)
    a.mov(0, 2)
    a.jump(nowhere)
    a.place(end)
    a.exit()
  })
  expect(bytes).toHaveLength(16)
  expect([...labels.values()]).toEqual(['end'])
})

test('a far unconditional jump becomes gotol, a far conditional one is refused', () => {
  const farConditional = () =>
    program((a) => {
      const end = a.newLabel('end')
      a.jumpIf('eq', 1, 0, end)
      for (let count = 0; count < 40_000; count++) a.mov(0, count)
      a.place(end)
      a.exit()
    })
  expect(farConditional).toThrow(/conditional jump to end/)
  const { bytes } = program((a) => {
    const middle = a.newLabel('middle')
    const end = a.newLabel('end')
    a.jumpIf('eq', 1, 0, middle)
    a.jump(end)
    a.place(middle)
    for (let count = 0; count < 40_000; count++) a.mov(0, count)
    a.place(end)
    a.exit()
  })
  expect(bytes[8]).toBe(0x06)
  expect(new DataView(bytes.buffer).getInt32(12, true)).toBe(40_000)
})

test('a label that is jumped to and never placed is a bug, and so is one placed twice', () => {
  expect(() => program((a) => a.jump(a.newLabel('lost')))).toThrow(/the label lost is placed/)
  const twice = () =>
    program((a) => {
      const label = a.newLabel('double')
      a.place(label)
      a.place(label)
      a.exit()
    })
  expect(twice).toThrow(/double stands in two places/)
})

test('a program that runs off its end is a bug', () => {
  expect(() => program((a) => a.mov(0, 0))).toThrow(/ends with an exit or a jump/)
})

test('maps are linked by name: by descriptor, or by an address inside their value', () => {
  const written = program((a) => {
    a.loadMap(1, 'rows')
    a.loadMapValue(2, 'mode', 4)
    a.exit()
  })
  const bytes = linkProgram(written, (map) => (map === 'rows' ? 9 : 11))
  expect(Buffer.from(bytes.subarray(0, 32)).toString('hex')).toBe(
    '1811000009000000'.concat('0000000000000000', '182200000b000000', '0000000004000000'),
  )
})

test('the text of a program names registers, maps, helpers and labels', () => {
  const written = program((a) => {
    const end = a.newLabel('end')
    a.loadMapValue(1, 'mode', 4)
    a.load('u32', 2, 1, 0)
    a.jumpIf32('eq', 2, 0, end)
    a.store('u8', 10, -1, 3)
    a.atomic('add', 'u64', 1, 8, 2)
    a.call('map_lookup_elem')
    a.toBigEndian(2, 16)
    a.place(end)
    a.mov(0, -1)
    a.exit()
  })
  expect(disassemble(written)).toEqual([
    '0: r1 = map mode value+4',
    '2: r2 = *(u32)(r1 + 0)',
    '3: if w2 == 0 goto 8',
    '4: *(u8)(r10 - 1) = 3',
    '5: lock add *(u64)(r1 + 8) r2',
    '6: call map_lookup_elem',
    '7: r2 = be16 r2',
    'end:',
    '8: r0 = -1',
    '9: exit',
  ])
  expect(disassembleAround(written, 9, 1)).toEqual(['8: r0 = -1', '9: exit'])
})
