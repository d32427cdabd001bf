/** The datapath's rows of the performance table: nanoseconds a packet by test run, nftables on the same hook, publishing. */

import type { Ip } from '#base/ip'
import { assemble } from '#compile/bpf/assemble'
import { createAssembler, reg } from '#compile/bpf/assembler'
import { framePointer } from '#compile/bpf/instruction-codes'
import { configLayout, modeNumbers, programNumbers } from '#compile/traffic-policy/datapath-maps'
import type { Direction, Entry } from '#compile/traffic-policy/entry'
import { dispatchProgram } from '#compile/traffic-policy/program-dispatch'
import type { Bpf } from '#kernel/bpf-sys'
import { publisherOf } from '#kernel/datapath-publisher'
import { writeConfig } from '#kernel/datapath-tables'
import { update } from '#kernel/maps'
import { loadProgram, testRun } from '#kernel/programs'
import { createBpffsFolder } from '../test/kernel/bpffs-folder'
import { bindAll, type DatapathCase, giveToken, openDatapathCase, snapshotOf } from '../test/kernel/datapath-case'
import { measureOnHook } from './bench-hook'
import { firstPort } from './bench-ports'

const slot = 1
const ruleCount = 64
const interfaces = 100

/** 64 rules of one entry each that differ by port; nftables has the same ones of IPv4. */
const entriesFrom = (source: Ip, length: number): readonly Entry[] =>
  Array.from({ length: ruleCount }, (_, rule) => ({
    family: source.family,
    protocol: 'udp',
    source: { ip: source, length },
    destinationPorts: { from: firstPort + rule, to: firstPort + rule },
    action: 'allow',
    rule,
  }))
const entries = entriesFrom({ family: 'ipv4', words: [0x0a000000] }, 8)
const entries6 = entriesFrom({ family: 'ipv6', words: [0xfd000000, 0, 0, 0] }, 8)

/** A UDP packet of 10.0.0.1 to 10.0.0.2. */
export function benchFrame(destinationPort: number): Buffer {
  const frame = Buffer.alloc(64)
  frame.writeUInt16BE(0x0800, 12)
  frame.writeUInt8(0x45, 14)
  frame.writeUInt16BE(50, 16)
  frame.writeUInt8(64, 22)
  frame.writeUInt8(17, 23)
  frame.writeUInt32BE(0x0a000001, 26)
  frame.writeUInt32BE(0x0a000002, 30)
  frame.writeUInt16BE(40_000, 34)
  frame.writeUInt16BE(destinationPort, 36)
  frame.writeUInt16BE(30, 38)
  return frame
}

function answerOf(frame: Buffer): Buffer {
  const answer = Buffer.from(frame)
  for (const [from, to, length] of [
    [26, 30, 4],
    [30, 26, 4],
    [34, 36, 2],
    [36, 34, 2],
  ] as const)
    frame.copy(answer, to, from, from + length)
  return answer
}

/** The same of fd00::1 to fd00::2. */
function benchFrame6(destinationPort: number): Buffer {
  const frame = Buffer.alloc(84)
  frame.writeUInt16BE(0x86dd, 12)
  frame.writeUInt8(0x60, 14)
  frame.writeUInt16BE(30, 18)
  frame.writeUInt8(17, 20)
  frame.writeUInt8(64, 21)
  frame.writeUInt8(0xfd, 22)
  frame.writeUInt8(1, 37)
  frame.writeUInt8(0xfd, 38)
  frame.writeUInt8(2, 53)
  benchFrame(destinationPort).copy(frame, 54, 34)
  return frame
}

export type Row = readonly string[]

/** Undefined where programs cannot be loaded. */
export function benchDatapath(rounds: number): readonly Row[] {
  const folder = createBpffsFolder()
  try {
    const datapath = openDatapathCase(folder)
    return [...testRunRows(datapath, rounds), ...hookRows(datapath, rounds), publishRow(datapath, rounds)]
  } finally {
    folder.remove()
  }
}

const fromRuns = 50_000
const runsARound = 12

/** The least of many short runs, taken in turn: other work on the machine only ever adds. */
type Stopwatch = {
  readonly measure: (name: string, fd: number, frame: Buffer) => void
  readonly least: (name: string) => number
}

/** By the wall clock: the kernel tells whole nanoseconds. */
function startStopwatch(bpf: Bpf): Stopwatch {
  const times = new Map<string, number>()
  const least = (name: string): number => times.get(name) ?? Number.POSITIVE_INFINITY
  return {
    measure(name, fd, packet) {
      const start = process.hrtime.bigint()
      testRun(bpf, fd, { packet, repeat: fromRuns })
      times.set(name, Math.min(least(name), Number(process.hrtime.bigint() - start) / fromRuns))
    },
    least,
  }
}

const emptyName = 'the empty program'
const goals: Readonly<Record<string, string>> = {
  'no match, stateless': '6',
  'no match, stateful': '6',
  'no match, stateful, IPv6': '6',
  established: '4',
  'established, the answer': '4',
  'established, IPv6': '4',
}

function testRunRows(datapath: DatapathCase, rounds: number): readonly Row[] {
  const token = giveToken(datapath, slot)
  const watch = startStopwatch(datapath.bpf)
  const empty = loadProgram(datapath.bpf, 'bench_empty', constantProgram(-1), () => 0).fd
  const ingress = loadDispatch(datapath, 'ingress')
  const egress = loadDispatch(datapath, 'egress')
  const lookUps = lookUpPrograms(datapath)
  const names: string[] = []
  const inTurn = (programs: readonly (readonly [string, number, Buffer])[]): void => {
    for (const [name] of programs) if (!names.includes(name)) names.push(name)
    for (let run = 0; run < runsARound; run++) {
      watch.measure(emptyName, empty, benchFrame(firstPort))
      for (const [name, fd, frame] of programs) watch.measure(name, fd, frame)
    }
  }
  for (let round = 0; round < rounds; round++) {
    setMode(datapath, 'enforce')
    bindBoth(datapath, { token, entries, stateful: false })
    inTurn([
      ['rule 1, stateless', ingress, benchFrame(firstPort)],
      ['rule 64, stateless', ingress, benchFrame(firstPort + ruleCount - 1)],
      ['no match, stateless', ingress, benchFrame(firstPort - 1)],
    ])
    bindBoth(datapath, { token, entries, stateful: true })
    inTurn([
      ['established', ingress, benchFrame(firstPort)],
      ['established, the answer', egress, answerOf(benchFrame(firstPort))],
      ['no match, stateful', ingress, benchFrame(firstPort - 1)],
      ...lookUps,
    ])
    bindBoth(datapath, { token, entries: entries6, stateful: true })
    inTurn([
      ['established, IPv6', ingress, benchFrame6(firstPort)],
      ['no match, stateful, IPv6', ingress, benchFrame6(firstPort - 1)],
    ])
    setMode(datapath, 'off')
    inTurn([['mode off', ingress, benchFrame(firstPort)]])
  }
  const base = watch.least(emptyName)
  return names.map((name) => [
    `traffic policy, 64 rules: ${name}, against ${emptyName}`,
    `${watch.least(name).toFixed(1)} ns`,
    `${base.toFixed(1)} ns`,
    (watch.least(name) / base).toFixed(1),
    goals[name] ?? '',
    '',
  ])
}

/** What the kernel's own look-up costs, and no program of connections can do without. */
function lookUpPrograms({ bpf, tables }: DatapathCase): readonly (readonly [string, number, Buffer])[] {
  return (['connections4', 'connections6'] as const).map((name) => {
    const { keySize, valueSize } = tables[name].shape
    const a = createAssembler()
    const start = -keySize
    update(bpf, tables[name], Buffer.alloc(keySize), Buffer.alloc(valueSize))
    for (let at = start; at < 0; at += 8) a.store('u64', framePointer, at, 0)
    a.loadMap(1, name)
    a.mov(2, reg(framePointer))
    a.alu('add', 2, start)
    a.call('map_lookup_elem')
    a.mov(0, -1)
    a.exit()
    const { fd } = loadProgram(bpf, 'bench_look_up', assemble(a.listing), () => tables[name].fd)
    return [`nothing but a look-up by ${keySize} bytes`, fd, benchFrame(firstPort)]
  })
}

type BenchPolicy = { readonly token: bigint; readonly entries: readonly Entry[]; readonly stateful: boolean }

/** The egress policy allows nothing by itself: only answers pass. */
function bindBoth(datapath: DatapathCase, { entries: asked, ...rest }: BenchPolicy): void {
  const spec = { ...rest, firstRow: 0 }
  const none: readonly Entry[] = [{ action: 'deny', rule: 0 }]
  const egress = snapshotOf({ ...spec, direction: 'egress', entries: none, firstRow: 2 * ruleCount })
  bindAll(datapath, [
    { slot, direction: 'ingress', snapshot: snapshotOf({ ...spec, direction: 'ingress', entries: asked }) },
    { slot, direction: 'egress', snapshot: egress },
  ])
}

/** Frames as from a device, dropped at the hook: by an empty program, by no match of the datapath, and by nftables. */
function hookRows(datapath: DatapathCase, rounds: number): readonly Row[] {
  giveToken(datapath, slot)
  setMode(datapath, 'enforce')
  const token = giveToken(datapath, slot)
  const snapshot = snapshotOf({ token, direction: 'ingress', entries, stateful: true, firstRow: 0 })
  bindAll(datapath, [{ slot, direction: 'ingress', snapshot }])
  const drop = loadProgram(datapath.bpf, 'bench_drop', constantProgram(2), () => 0).fd
  const times = measureOnHook(datapath.bpf, {
    rounds,
    drop,
    datapath: loadDispatch(datapath, 'ingress'),
    frame: benchFrame(firstPort - 1),
  })
  const [ours, theirs] = [times.datapath - times.drop, times.nftables - times.drop]
  return [
    [
      'no match on the ingress hook, less injecting and dropping, against 64 linear nftables rules',
      `${Math.round(ours)} ns`,
      `${Math.round(theirs)} ns`,
      `1 : ${(theirs / ours).toFixed(1)}`,
      '1 : 10',
      '',
    ],
  ]
}

function publishRow(datapath: DatapathCase, rounds: number): Row {
  const tokens = Array.from({ length: interfaces }, (_, index) => giveToken(datapath, index + 1))
  const publisher = publisherOf(datapath)
  const rules = entries.map((_, rule) => ({ name: `rule-${rule}`, action: 'allow' as const }))
  let best = Number.POSITIVE_INFINITY
  for (let generation = 1; generation <= rounds; generation++) {
    const policy = { uid: 'bench', generation, stateful: true, rules, entries }
    const requests = tokens.flatMap((token, index) =>
      (['ingress', 'egress'] as const).map((direction) => ({ slot: index + 1, direction, token, policy })),
    )
    const start = performance.now()
    publisher.publish(requests)
    best = Math.min(best, performance.now() - start)
  }
  return [
    `publish ${interfaces} interfaces × 64 rules, both directions`,
    `${Math.round(best)} ms`,
    '',
    '',
    '1000 ms',
    '',
  ]
}

function loadDispatch({ bpf, tables }: DatapathCase, direction: Direction): number {
  const fdOf = (name: string): number => tables[name as keyof typeof tables].fd
  const number = programNumbers.ethernet[direction]
  return loadProgram(bpf, 'bench_dispatch', dispatchProgram(slot, number), fdOf).fd
}

function setMode({ bpf, tables }: DatapathCase, mode: keyof typeof modeNumbers): void {
  writeConfig(bpf, tables, (row) => row.writeUInt32LE(modeNumbers[mode], configLayout.mode))
}

function constantProgram(verdict: number) {
  const a = createAssembler()
  a.mov(0, verdict)
  a.exit()
  return assemble(a.listing)
}
