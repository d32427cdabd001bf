/** The datapath's rows of the performance table: nanoseconds a packet by test run, nftables on the same hook, publishing. */
import { assemble } from '#compile/bpf/assemble'
import { createAssembler } from '#compile/bpf/assembler'
import { configLayout, modeNumbers } from '#compile/traffic-policy/datapath-maps'
import type { Entry } from '#compile/traffic-policy/entry'
import { dispatchProgram } from '#compile/traffic-policy/program-dispatch'
import { publisherOf } from '#kernel/datapath-publisher'
import { writeConfig } from '#kernel/datapath-tables'
import { loadProgram, testRun } from '#kernel/programs'
import { createBpffsFolder } from '../test/kernel/bpffs-folder'
import { bindAll, type DatapathCase, giveToken, openDatapathCase, snapshotOf } from '../test/kernel/datapath-case'
import { measureOnHook } from './bench-hook'
import { firstPort } from './bench-ports'

const slot = 1
const ruleCount = 64
const interfaces = 100

/** 64 rules of one entry each that differ by port; nftables has the same ones. */
const entries: readonly Entry[] = Array.from({ length: ruleCount }, (_, rule) => ({
  family: 'ipv4',
  protocol: 'udp',
  source: { ip: { family: 'ipv4', words: [0x0a000000] }, length: 8 },
  destinationPorts: { from: firstPort + rule, to: firstPort + rule },
  action: 'allow',
  rule,
}))

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

/** The least of many short runs, taken in turn: other work on the machine only ever adds. */
function testRunRows(datapath: DatapathCase, rounds: number): readonly Row[] {
  const token = giveToken(datapath, slot)
  const dispatch = loadDispatch(datapath)
  const empty = loadProgram(datapath.bpf, 'bench_empty', constantProgram(-1), () => 0).fd
  const times = new Map<string, number>()
  const measure = (name: string, fd: number, port: number): void => {
    const { nanoseconds } = testRun(datapath.bpf, fd, { packet: benchFrame(port), repeat: 20_000 })
    times.set(name, Math.min(times.get(name) ?? Number.POSITIVE_INFINITY, nanoseconds))
  }
  for (let round = 0; round < 4 * rounds; round++) {
    setMode(datapath, 'enforce')
    measure('empty program', empty, firstPort)
    for (const stateful of [false, true]) {
      const snapshot = snapshotOf({ token, direction: 'ingress', entries, stateful, firstRow: 0 })
      bindAll(datapath, [{ slot, direction: 'ingress', snapshot }])
      const kind = stateful ? 'stateful' : 'stateless'
      if (stateful) measure('established', dispatch, firstPort)
      else measure(`rule 1, ${kind}`, dispatch, firstPort)
      if (!stateful) measure(`rule 64, ${kind}`, dispatch, firstPort + ruleCount - 1)
      measure(`no match, ${kind}`, dispatch, firstPort - 1)
    }
    setMode(datapath, 'off')
    measure('mode off', dispatch, firstPort)
  }
  const base = times.get('empty program') ?? Number.NaN
  const goals: Readonly<Record<string, string>> = {
    'no match, stateless': '6',
    'no match, stateful': '6',
    established: '4',
  }
  return [...times]
    .filter(([name]) => name !== 'empty program')
    .map(([name, time]) => [
      `traffic policy, 64 rules: ${name}, against the empty program`,
      `${time} ns`,
      `${base} ns`,
      (time / base).toFixed(1),
      goals[name] ?? '',
      '',
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
    datapath: loadDispatch(datapath),
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

function loadDispatch({ bpf, tables }: DatapathCase): number {
  const fdOf = (name: string): number => tables[name as keyof typeof tables].fd
  return loadProgram(bpf, 'bench_dispatch', dispatchProgram(slot, 0), fdOf).fd
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
