/**
 * Runs many packets through the datapath's own programs in one test run: a little program takes them one after the other
 * from a table, puts each into the packet at hand, jumps into the datapath, and finds its decision there the next time.
 */

import { Failure } from '#base/failure'
import { invariant } from '#base/invariant'
import { assemble } from '#compile/bpf/assemble'
import { createAssembler, reg } from '#compile/bpf/assembler'
import { framePointer } from '#compile/bpf/instruction-codes'
import type { MapShape } from '#compile/bpf/map-shape'
import { programNumbers } from '#compile/traffic-policy/datapath-maps'
import type { Direction } from '#compile/traffic-policy/entry'
import type { Decision } from '#compile/traffic-policy/policy-packet'
import { context } from '#compile/traffic-policy/program-frame'
import { reasonOf } from '#compile/traffic-policy/reasons'
import type { Bpf } from '#kernel/bpf-sys'
import { readBatches, updateBatch } from '#kernel/map-batch'
import { type BpfMap, createMap, numberKey, update } from '#kernel/maps'
import { loadProgram, testRun } from '#kernel/programs'

export type TestPacket = {
  readonly slot: number
  readonly direction: Direction
  readonly linkLayer: 'ethernet' | 'ip'
  readonly mark: number
  readonly frame: Uint8Array
}

export const longestFrame = 1024
const layout = { length: 0, slot: 4, mark: 8, program: 12, frame: 16, size: 16 + longestFrame } as const
const batch = 2048

export type PacketRunner<Answer = Decision> = (packets: readonly TestPacket[]) => readonly Answer[]

/** `programs` is the datapath's array of programs. */
export function createPacketRunner(bpf: Bpf, programs: BpfMap): PacketRunner {
  const array = (name: string, valueSize: number, maxEntries: number): MapShape => ({
    name,
    type: 'array',
    keySize: 4,
    valueSize,
    maxEntries,
  })
  const maps: Readonly<Record<string, BpfMap>> = {
    packets: createMap(bpf, array('test_packets', layout.size, batch)),
    decisions: createMap(bpf, array('test_decisions', 4, batch)),
    cursor: createMap(bpf, array('test_cursor', 16, 1)),
    programs,
  }
  const mapOf = (name: string): BpfMap => {
    const map = maps[name]
    invariant(map !== undefined, `the runner knows the table ${name}`)
    return map
  }
  const program = loadProgram(bpf, 'test_runner', runnerProgram(), (name) => mapOf(name).fd)
  return (packets) => {
    const decisions: Decision[] = []
    for (let start = 0; start < packets.length; start += batch) {
      decisions.push(...runBatch(bpf, { mapOf, fd: program.fd }, packets.slice(start, start + batch)))
    }
    return decisions
  }
}

type Runner = { readonly mapOf: (name: string) => BpfMap; readonly fd: number }

function runBatch(bpf: Bpf, { mapOf, fd }: Runner, packets: readonly TestPacket[]): readonly Decision[] {
  const values = Buffer.alloc(packets.length * layout.size)
  const keys = Buffer.concat(packets.map((_, index) => numberKey(index)))
  for (const [index, packet] of packets.entries()) writePacket(values, index * layout.size, packet)
  updateBatch(bpf, mapOf('packets'), { count: packets.length, keys, values })
  const cursor = Buffer.alloc(16)
  cursor.writeUInt32LE(packets.length, 8)
  update(bpf, mapOf('cursor'), numberKey(0), cursor)
  const frame = Buffer.alloc(64)
  frame.writeUInt16BE(0x88b5, 12)
  testRun(bpf, fd, { packet: frame, repeat: packets.length + 1 })
  const decisions: Decision[] = []
  readBatches(bpf, mapOf('decisions'), { count: batch }, (rows) => {
    for (let index = 0; index < rows.count; index++) decisions.push(decisionOf(rows.values.readUInt32LE(4 * index)))
  })
  return decisions.slice(0, packets.length)
}

/** What one packet says that it will become. */
export const segmentsOfTest = 44

/**
 * One test run a packet, each to be segmented: the runner above would make packets of it that are whole. The kernel
 * refuses those whose type says IP and that have no whole header of it.
 */
export function createSegmentRunner(bpf: Bpf, programs: BpfMap): PacketRunner<Decision | 'refused'> {
  const { fd } = loadProgram(bpf, 'test_segments', jumpProgram(), () => programs.fd)
  const skb = Buffer.alloc(192)
  return (packets) =>
    packets.map(({ frame, slot, mark, linkLayer, direction }) => {
      skb.writeUInt32LE(mark, context.mark)
      skb.writeUInt32LE(slot, context.slot)
      skb.writeUInt32LE(programNumbers[linkLayer][direction], chosenProgram)
      skb.writeUInt32LE(segmentsOfTest, context.segments)
      skb.writeUInt32LE(1000, context.segmentSize)
      try {
        return decisionOf(testRun(bpf, fd, { packet: frame, context: skb }).context.readUInt32LE(context.decision))
      } catch (error) {
        if (error instanceof Failure && /EINVAL/.test(error.message)) return 'refused'
        throw error
      }
    })
}

/** In the context, behind what the datapath uses. */
const chosenProgram = context.decision + 4

function jumpProgram() {
  const a = createAssembler()
  a.load('u32', 3, 1, chosenProgram)
  a.loadMap(2, 'programs')
  a.call('tail_call')
  a.mov(0, 0)
  a.exit()
  return assemble(a.listing)
}

function writePacket(values: Buffer, at: number, packet: TestPacket): void {
  const { frame, slot, mark, linkLayer, direction } = packet
  invariant(frame.length >= 14 && frame.length <= longestFrame, `a test packet has 14 to ${longestFrame} bytes`)
  values.writeUInt32LE(frame.length, at + layout.length)
  values.writeUInt32LE(slot, at + layout.slot)
  values.writeUInt32LE(mark, at + layout.mark)
  values.writeUInt32LE(programNumbers[linkLayer][direction], at + layout.program)
  values.set(frame, at + layout.frame)
}

export function decisionOf(number: number): Decision {
  const reason = reasonOf((number >> 8) & 0xff)
  invariant(reason !== undefined, `the datapath decided for a reason that is known: ${number}`)
  const verdict = (number & 0xff) === 0 ? 'allow' : 'deny'
  return { verdict, reason, ...(reason === 'rule' ? { rule: (number >> 16) & 0xff } : {}) }
}

function runnerProgram() {
  const a = createAssembler()
  const fp = framePointer
  const first = a.newLabel('first')
  const end = a.newLabel('end')
  a.mov(6, reg(1))
  a.loadMapValue(7, 'cursor', 0)
  a.load('u32', 8, 7, 0)
  a.jumpIf('eq', 8, 0, first)
  a.mov(1, reg(8))
  a.alu('sub', 1, 1)
  a.store('u32', fp, -4, reg(1))
  a.loadMap(1, 'decisions')
  a.mov(2, reg(fp))
  a.alu('add', 2, -4)
  a.call('map_lookup_elem')
  a.jumpIf('eq', 0, 0, end)
  a.load('u32', 1, 6, context.decision)
  a.store('u32', 0, 0, reg(1))
  a.place(first)
  a.load('u32', 1, 7, 8)
  a.jumpIf('ge', 8, reg(1), end)
  a.store('u32', fp, -4, reg(8))
  a.alu('add', 8, 1)
  a.store('u32', 7, 0, reg(8))
  a.loadMap(1, 'packets')
  a.mov(2, reg(fp))
  a.alu('add', 2, -4)
  a.call('map_lookup_elem')
  a.jumpIf('eq', 0, 0, end)
  a.mov(8, reg(0))
  a.load('u32', 9, 8, layout.length)
  a.jumpIf('gt', 9, longestFrame, end)
  a.jumpIf('lt', 9, 14, end)
  a.mov(1, reg(6))
  a.mov(2, reg(9))
  a.mov(3, 0)
  a.call('skb_change_tail')
  a.jumpIf('ne', 0, 0, end)
  a.mov(1, reg(6))
  a.mov(2, 0)
  a.mov(3, reg(8))
  a.alu('add', 3, layout.frame)
  a.mov(4, reg(9))
  a.mov(5, 0)
  a.call('skb_store_bytes')
  a.jumpIf('ne', 0, 0, end)
  a.load('u32', 1, 8, layout.mark)
  a.store('u32', 6, context.mark, reg(1))
  a.load('u32', 1, 8, layout.slot)
  a.store('u32', 6, context.slot, reg(1))
  a.mov(1, 0xffff)
  a.store('u32', 6, context.decision, reg(1))
  a.load('u32', 3, 8, layout.program)
  a.mov(1, reg(6))
  a.loadMap(2, 'programs')
  a.call('tail_call')
  a.place(end)
  a.mov(0, 0)
  a.exit()
  return assemble(a.listing)
}
