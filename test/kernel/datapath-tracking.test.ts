/** What random packets alone do not show: time, segments, path classes, scattered bytes, and that the check would notice. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  configLayout,
  connectionKeyLayout,
  connectionLayout,
  type DatapathMap,
  fallbackRow,
  modeNumbers,
  prefixKeyLayout,
  programNumbers,
} from '#compile/traffic-policy/datapath-maps'
import type { Entry } from '#compile/traffic-policy/entry'
import { parseEvent } from '#compile/traffic-policy/parse-event'
import { clockContext, clockProgram } from '#compile/traffic-policy/program-clock'
import { datapathProgram } from '#compile/traffic-policy/program-datapath'
import { dispatchProgram } from '#compile/traffic-policy/program-dispatch'
import { context } from '#compile/traffic-policy/program-frame'
import { writeConfig } from '#kernel/datapath-tables'
import { readBatches } from '#kernel/map-batch'
import { type BpfMap, lookUp, numberKey, update } from '#kernel/maps'
import { measureTicksPerSecond } from '#kernel/measure-ticks'
import { loadProgram, testRun } from '#kernel/programs'
import { openRing } from '#kernel/ring-buffer'
import { randomOf, seedOfRun } from '../random/random'
import { randomEntry } from '../random/random-entry'
import { type BpffsFolder, createBpffsFolder } from './bpffs-folder'
import { checkRound, type Slot } from './check-datapath'
import { bindAll, type DatapathCase, giveToken, openDatapathCase, snapshotOf } from './datapath-case'
import { describeKernel } from './describe-kernel'
import { createPacketRunner, decisionOf, type PacketRunner, type TestPacket } from './packet-runner'

const slot = 200
const udpAllow: Entry = { protocol: 'udp', action: 'allow', rule: 0 }

/** UDP from 10.0.0.1:5000 to 10.0.0.2:53, or the answer. */
function udpFrame(isAnswer = false, totalLength = 36): Buffer {
  const frame = Buffer.alloc(50)
  frame.writeUInt16BE(0x0800, 12)
  frame.writeUInt8(0x45, 14)
  frame.writeUInt16BE(totalLength, 16)
  frame.writeUInt8(17, 23)
  frame.writeUInt32BE(isAnswer ? 0x0a000002 : 0x0a000001, 26)
  frame.writeUInt32BE(isAnswer ? 0x0a000001 : 0x0a000002, 30)
  frame.writeUInt16BE(isAnswer ? 53 : 5000, 34)
  frame.writeUInt16BE(isAnswer ? 5000 : 53, 36)
  frame.writeUInt16BE(8, 38)
  return frame
}

const request: TestPacket = { slot, direction: 'egress', linkLayer: 'ethernet', mark: 0, frame: udpFrame() }
const answer: TestPacket = { ...request, direction: 'ingress', frame: udpFrame(true) }

describeKernel('the datapath and time, segments, paths and scattered bytes', () => {
  let folder: BpffsFolder
  let datapath: DatapathCase
  let run: PacketRunner
  let ticksPerSecond = 0
  const seed = seedOfRun() + 500_000

  const bind = (entries: readonly Entry[], vpc = 0): void => {
    const token = giveToken(datapath, slot, vpc)
    const spec = { token, stateful: true, firstRow: 30_000 }
    const egress = snapshotOf({ ...spec, direction: 'egress', entries })
    const ingress = snapshotOf({
      ...spec,
      direction: 'ingress',
      entries: [{ action: 'deny', rule: 0 }],
      firstRow: 30_100,
    })
    bindAll(datapath, [
      { slot, direction: 'egress', snapshot: egress },
      { slot, direction: 'ingress', snapshot: ingress },
    ])
  }
  const ticksNow = (): number => {
    const clock = loadProgram(datapath.bpf, 'test_clock', clockProgram(), () => 0)
    const { context: answered } = testRun(datapath.bpf, clock.fd, {
      packet: Buffer.alloc(64),
      context: Buffer.alloc(192),
    })
    return answered.readUInt32LE(clockContext.ticks)
  }
  const connections = (take: (key: Buffer, row: Buffer, table: BpfMap) => void): void => {
    for (const table of [datapath.tables.connections4, datapath.tables.connections6]) {
      const { keySize, valueSize } = table.shape
      readBatches(datapath.bpf, table, { count: 4096 }, ({ count, keys, values }) => {
        for (let index = 0; index < count; index++) {
          const key = keys.subarray(index * keySize, (index + 1) * keySize)
          take(key, values.subarray(index * valueSize, (index + 1) * valueSize), table)
        }
      })
    }
  }

  beforeAll(() => {
    folder = createBpffsFolder()
    datapath = openDatapathCase(folder)
    writeConfig(datapath.bpf, datapath.tables, (row) => {
      row.writeUInt32LE(modeNumbers.enforce, configLayout.mode)
      row.writeUInt32LE(0x700, configLayout.markMask)
      row.writeUInt32LE(8, configLayout.markShift)
    })
    run = createPacketRunner(datapath.bpf, datapath.tables.programs)
    ticksPerSecond = measureTicksPerSecond(datapath.bpf)
  })
  afterAll(() => folder.remove())

  test('the check notices one entry that was changed behind its back', () => {
    const spoil = randomOf(seed)
    const round = () =>
      checkRound(datapath, run, {
        seed,
        packets: 10_000,
        spoil: (snapshot) => {
          const at = spoil.below(snapshot.entries.length)
          const entries = snapshot.entries.map((entry, index) =>
            index === at ? randomEntry(spoil, { rule: entry.rule }) : entry,
          )
          return { ...snapshot, entries }
        },
      })
    expect(round).toThrow(/the reference says/)
  })

  test('every connection is remembered as long as the reference says, state by state', () => {
    const close = (slots: readonly Slot[]): void => {
      const now = ticksNow()
      const tokens = new Set(slots.map(({ token }) => token))
      const found: number[] = []
      connections((key, row) => {
        const isFragments = key.readUInt8(connectionKeyLayout.kind) > 0x0f
        if (isFragments || !tokens.has(row.readBigUInt64LE(connectionLayout.token))) return
        found.push(((row.readUInt32LE(connectionLayout.deadline) - now) >>> 0) / ticksPerSecond)
      })
      const wanted = slots.flatMap(({ reference }) => reference.remembered()).sort((a, b) => a - b)
      const times = [10, 30, 60, 120, 210, 432_000]
      const nearest = (seconds: number): number =>
        times.find((time) => time >= seconds && time - seconds < 10) ?? Number.NaN
      expect(found.map(nearest).sort((a, b) => a - b)).toEqual(wanted)
      expect(new Set(wanted)).toEqual(new Set(times))
    }
    checkRound(datapath, run, { seed: seed + 1, packets: 20_480, look: close })
  })

  test('a connection past its time is none: the answer is denied, the request is asked anew', () => {
    bind([udpAllow])
    expect(run([request, answer]).map(({ reason }) => reason)).toEqual(['rule', 'established'])
    connections((key, row, table) => {
      row.writeBigUInt64LE(1n, connectionLayout.deadline)
      if (key.readUInt16LE(connectionKeyLayout.slot) === slot)
        update(datapath.bpf, table, Buffer.from(key), Buffer.from(row))
    })
    expect(run([answer, request, answer]).map(({ reason }) => reason)).toEqual(['rule', 'rule', 'established'])
  })

  test('a packet to be segmented counts as its segments, and may be too long to tell its length', () => {
    bind([udpAllow])
    const fdOf = (name: string): number => datapath.tables[name as DatapathMap].fd
    const number = programNumbers.ethernet.egress
    const dispatch = loadProgram(datapath.bpf, 'test_dispatch', dispatchProgram(slot, number), fdOf)
    const skb = Buffer.alloc(192)
    const send = (frame: Buffer, segments: number) => {
      skb.writeUInt32LE(segments, context.segments)
      skb.writeUInt32LE(segments === 0 ? 0 : 1000, context.segmentSize)
      const { context: out } = testRun(datapath.bpf, dispatch.fd, { packet: frame, context: skb })
      return decisionOf(out.readUInt32LE(context.decision)).reason
    }
    const established = (): bigint => {
      const row = lookUp(datapath.bpf, datapath.tables.fallbacks, numberKey(fallbackRow(slot, 'egress', 'established')))
      let sum = 0n
      for (let at = 0; row !== undefined && at < row.length; at += 8) sum += row.readBigUInt64LE(at)
      return sum
    }
    expect(send(udpFrame(), 0)).toBe('rule')
    const before = established()
    expect(send(udpFrame(), 44)).toBe('established')
    expect(established() - before).toBe(44n)
    expect(send(udpFrame(false, 0), 44)).toBe('established')
    expect(send(udpFrame(false, 0), 0)).toBe('malformed')
  })

  test('a header that the stated length cuts short is malformed, though the frame is filled up behind it', () => {
    bind([{ action: 'allow', rule: 0 }])
    const reasonOf = (frame: Buffer) => run([{ ...request, frame }])[0]?.reason
    const udp6 = (payloadLength: number): Buffer => {
      const frame = Buffer.alloc(80)
      frame.writeUInt16BE(0x86dd, 12)
      frame.writeUInt8(0x60, 14)
      frame.writeUInt16BE(payloadLength, 18)
      frame.writeUInt8(17, 20)
      frame.writeUInt16BE(8, 58)
      return frame
    }
    expect([36, 28, 27, 20].map((length) => reasonOf(udpFrame(false, length)))).toEqual([
      'rule',
      'established',
      'malformed',
      'malformed',
    ])
    expect([9, 8, 7, 0].map((length) => reasonOf(udp6(length)))).toEqual([
      'rule',
      'established',
      'malformed',
      'malformed',
    ])
  })

  test('a path class comes from the longest prefix of the VPC that holds the remote end, and a mark goes before it', () => {
    const write = (vpc: number, length: number, word: number, pathClass: number): void => {
      const key = Buffer.alloc(prefixKeyLayout.size)
      key.writeUInt32LE(64 + length, prefixKeyLayout.length)
      key.writeUInt32LE(vpc, prefixKeyLayout.vpc)
      key.writeUInt32LE(4, prefixKeyLayout.family)
      key.writeUInt32BE(word, prefixKeyLayout.address)
      update(datapath.bpf, datapath.tables.prefixes, key, numberKey(pathClass))
    }
    write(7, 8, 0x0a000000, 2)
    write(7, 32, 0x0a000002, 1)
    write(8, 8, 0x0a000000, 3)
    const decide = (vpc: number, mark = 0) => {
      bind(
        [
          { paths: ['Private'], action: 'allow', rule: 0 },
          { paths: ['VIP'], action: 'allow', rule: 1 },
        ],
        vpc,
      )
      return run([{ ...request, mark }])[0]
    }
    expect(decide(7)).toEqual({ verdict: 'allow', reason: 'rule', rule: 0 })
    expect(decide(8)).toEqual({ verdict: 'allow', reason: 'rule', rule: 1 })
    expect(decide(9)).toEqual({ verdict: 'deny', reason: 'no_match' })
    expect(decide(0)).toEqual({ verdict: 'deny', reason: 'no_match' })
    expect(decide(7, 3 << 8)).toEqual({ verdict: 'allow', reason: 'rule', rule: 1 })
    expect(decide(7, 7 << 8)).toEqual({ verdict: 'allow', reason: 'rule', rule: 0 })
  })

  test('the last of 256 entries is asked', () => {
    const others = Array.from(
      { length: 255 },
      (_, index): Entry => ({
        protocol: 'udp',
        destinationPorts: { from: 1000 + index, to: 1000 + index },
        action: 'deny',
        rule: 0,
      }),
    )
    bind([...others, { ...udpAllow, rule: 1 }])
    expect(run([request])).toEqual([{ verdict: 'allow', reason: 'rule', rule: 1 }])
  })

  test('a denial tells who sent what to whom and why; more than a tick’s budget are counted as lost', () => {
    const ring = openRing(datapath.bpf.native, datapath.tables.events)
    ring.read(() => {})
    bind([{ ...udpAllow, action: 'deny' }])
    const denials: unknown[] = []
    run([request])
    ring.read((record) => denials.push(parseEvent(record)))
    expect(denials).toEqual([
      expect.objectContaining({
        slot,
        direction: 'egress',
        reason: 'rule',
        rule: 0,
        mode: 'enforce',
        protocol: 17,
        source: { family: 'ipv4', words: [0x0a000001] },
        destination: { family: 'ipv4', words: [0x0a000002] },
        sourcePort: 5000,
        destinationPort: 53,
        length: 50,
      }),
    ])
    run(Array.from({ length: 2000 }, () => request))
    const told = ring.read(() => {})
    expect(told).toBeLessThan(2000)
    const budget = lookUp(datapath.bpf, datapath.tables.eventBudget, numberKey(0)) ?? Buffer.alloc(0)
    let lost = 0n
    for (let at = 0; at < budget.length; at += 24) lost += budget.readBigUInt64LE(at + 16)
    expect(Number(lost)).toBeGreaterThanOrEqual(2000 - told)
    ring.close()
  })

  test('programs that read every byte by helper, as scattered packets need, decide the same', () => {
    const fdOf = (name: string): number => datapath.tables[name as DatapathMap].fd
    for (const linkLayer of ['ethernet', 'ip'] as const) {
      for (const direction of ['ingress', 'egress'] as const) {
        const program = datapathProgram({ direction, linkLayer, ticksPerSecond, readsDirectly: false })
        const loaded = loadProgram(datapath.bpf, 'test_by_helper', program, fdOf)
        update(
          datapath.bpf,
          datapath.tables.programs,
          numberKey(programNumbers[linkLayer][direction]),
          numberKey(loaded.fd),
        )
      }
    }
    expect(checkRound(datapath, run, { seed: seed + 2, packets: 20_480 }).packets).toBeGreaterThanOrEqual(20_480)
  })
})
