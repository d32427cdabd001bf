/** Random policies and random packets: the datapath's decisions and counters against the reference's, packet by packet. */
import { type Ip, printIp } from '#base/ip'
import {
  configLayout,
  counterLayout,
  type EnforcedMode,
  modeNumbers,
  prefixKeyLayout,
} from '#compile/traffic-policy/datapath-maps'
import { type Direction, type Entry, type PathClass, pathClasses } from '#compile/traffic-policy/entry'
import { type Decision, isSameDecision } from '#compile/traffic-policy/policy-packet'
import { fallbackReasons } from '#compile/traffic-policy/reasons'
import { createReference } from '#compile/traffic-policy/reference-connection'
import { parsePacket } from '#compile/traffic-policy/reference-parse'
import type { Snapshot } from '#compile/traffic-policy/snapshot'
import { writeConfig } from '#kernel/datapath-tables'
import { readBatches } from '#kernel/map-batch'
import { numberKey, rowSize, update } from '#kernel/maps'
import { type Random, randomOf } from '../random/random'
import { randomEntry, randomPortEntry } from '../random/random-entry'
import { answerOf, randomError, randomFrame, randomTalk, type Talk } from '../random/random-frame'
import { bindAll, type DatapathCase, giveToken, snapshotOf } from './datapath-case'
import { type PacketRunner, segmentsOfTest, type TestPacket } from './packet-runner'

export const slotsInUse = 64
const directions = ['ingress', 'egress'] as const
const markShift = 8
const phases = 3

export type Slot = {
  readonly slot: number
  readonly token: bigint
  readonly linkLayer: 'ethernet' | 'ip'
  readonly reference: ReturnType<typeof createReference>
  readonly bound: Map<Direction, Snapshot>
  readonly vpc: number
  /** Which way each one's first packet goes; edits find them still talking. */
  readonly talks: { talk: Talk; way: Direction }[]
}

export type Round = {
  readonly seed: number
  readonly packets: number
  /** Changes what is bound behind the reference's back: the check must notice. */
  readonly spoil?: (snapshot: Snapshot) => Snapshot
  /** Sees the connections that both remember once the packets are through. */
  readonly look?: (slots: readonly Slot[]) => void
  /** As one packet that the kernel will make several of: lengths of zero are then no fault. */
  readonly isSegmented?: boolean
}

export type Tally = { readonly packets: number; readonly reasons: ReadonlyMap<string, number> }

/** One round: policies in all slots, packets through them, an edit of most policies, more packets of the same talks, and again. */
export function checkRound(
  one: DatapathCase,
  run: PacketRunner<Decision | 'refused'>,
  { seed, packets, spoil = (snapshot) => snapshot, look, isSegmented = false }: Round,
): Tally {
  const random = randomOf(seed)
  const before = readCounters(one)
  const expected = new Map<string, bigint>()
  const reasons = new Map<string, number>()
  const slots = Array.from({ length: slotsInUse }, (_, index) => freshSlot(one, random, index + 1))
  const each = Math.ceil(packets / (phases * slotsInUse))
  writePrefixes(one)
  for (let phase = 0; phase < phases; phase++) {
    setMode(one, random.pick<EnforcedMode>(['audit', 'enforce', 'enforce']))
    publishAll(one, random, slots, { isEdit: phase > 0, spoil })
    const sent = slots.flatMap((slot) => packetsOf(random, slot, each))
    const decided = run(sent.map(({ packet }) => packet))
    for (const [index, { packet, slot }] of sent.entries()) {
      const got = decided[index]
      // The kernel takes no such packet for a test.
      if (got === 'refused') continue
      const wanted = decideByReference(slot, packet, isSegmented)
      if (got === undefined || !isSameDecision(wanted, got)) throw new Error(tell(seed, { packet, slot, wanted, got }))
      reasons.set(wanted.reason, (reasons.get(wanted.reason) ?? 0) + 1)
      count(expected, packet, { slot, decision: wanted, segments: isSegmented ? segmentsOfTest : 1 })
    }
  }
  setMode(one, 'enforce')
  compareCounters(one, { before, expected, seed })
  look?.(slots)
  return { packets: phases * slotsInUse * each, reasons }
}

function setMode({ bpf, tables }: DatapathCase, mode: EnforcedMode): void {
  writeConfig(bpf, tables, (row) => void row.writeUInt32LE(modeNumbers[mode], configLayout.mode))
}

/** Of two VPCs, in the world of `randomIp`: the longest prefix that holds the remote end gives the path class. */
const prefixes: readonly Prefixed[] = [
  { vpc: 1, family: 4, length: 16, words: [0x0a000000], path: 'Private' },
  { vpc: 1, family: 4, length: 32, words: [0x0a000005], path: 'Edge' },
  { vpc: 1, family: 6, length: 32, words: [0xfd000001, 0, 0, 0], path: 'Internet' },
  { vpc: 2, family: 4, length: 0, words: [0], path: 'VIP' },
  { vpc: 2, family: 6, length: 64, words: [0xfd000000, 1, 0, 0], path: 'Service' },
]
type Prefixed = {
  readonly vpc: number
  readonly family: 4 | 6
  readonly length: number
  readonly words: readonly number[]
  readonly path: PathClass
}

function writePrefixes({ bpf, tables }: DatapathCase): void {
  for (const { vpc, family, length, words, path } of prefixes) {
    const key = Buffer.alloc(prefixKeyLayout.size)
    key.writeUInt32LE(64 + length, prefixKeyLayout.length)
    key.writeUInt32LE(vpc, prefixKeyLayout.vpc)
    key.writeUInt32LE(family, prefixKeyLayout.family)
    for (const [index, word] of words.entries()) key.writeUInt32BE(word, prefixKeyLayout.address + 4 * index)
    update(bpf, tables.prefixes, key, numberKey(pathClasses.indexOf(path)))
  }
}

/** By the address that a packet has at its remote end. */
function pathByPrefix(vpc: number, remote: Ip): PathClass {
  const found = prefixes
    .filter((one) => one.vpc === vpc && (one.family === 4) === (remote.family === 'ipv4') && holds(one, remote))
    .toSorted((a, b) => b.length - a.length)
  return found[0]?.path ?? 'unclassified'
}

function holds({ length, words }: Prefixed, { words: other }: Ip): boolean {
  const bits = (all: readonly number[]): string => all.map((word) => word.toString(2).padStart(32, '0')).join('')
  return bits(words).slice(0, length) === bits(other).slice(0, length)
}

function freshSlot(one: DatapathCase, random: Random, slot: number): Slot {
  const vpc = random.pick([0, 1, 2])
  return {
    slot,
    token: giveToken(one, slot, vpc),
    vpc,
    talks: [],
    linkLayer: random.chance(0.7) ? 'ethernet' : 'ip',
    reference: createReference(),
    bound: new Map(),
  }
}

type Publication = { readonly isEdit: boolean; readonly spoil: (snapshot: Snapshot) => Snapshot }

function publishAll(one: DatapathCase, random: Random, slots: readonly Slot[], { isEdit, spoil }: Publication): void {
  const bindings = slots.flatMap((slot) =>
    directions.flatMap((direction): readonly Binding[] => {
      const after = slot.bound.get(direction)
      if (isEdit && random.chance(0.3)) return []
      if (random.chance(0.04)) return [{ slot, direction, snapshot: undefined }]
      const firstRow = 128 * slot.slot + (direction === 'egress' ? 64 : 0)
      const entries = isEdit && after !== undefined ? editEntries(random, after.entries) : randomEntries(random)
      const isSame = isEdit && random.chance(0.85)
      const stateful = after !== undefined && random.chance(0.95) ? after.stateful : random.chance(0.85)
      const spec = { token: slot.token, direction, entries, stateful, firstRow }
      return [{ slot, direction, snapshot: snapshotOf({ ...spec, after: isSame ? after : undefined }) }]
    }),
  )
  bindAll(
    one,
    bindings.map(({ slot, direction, snapshot }) => ({
      slot: slot.slot,
      direction,
      snapshot: snapshot === undefined ? undefined : spoil(snapshot),
    })),
  )
  for (const { slot, direction, snapshot } of bindings) {
    slot.reference.bind(direction, snapshot)
    if (snapshot === undefined) slot.bound.delete(direction)
    else slot.bound.set(direction, snapshot)
  }
}

type Binding = { readonly slot: Slot; readonly direction: Direction; readonly snapshot: Snapshot | undefined }

/** Mostly as many entries as rules, and now and then all that a snapshot can hold. */
function randomEntries(random: Random): readonly Entry[] {
  const rules = random.chance(0.5) ? random.between(1, 8) : random.between(1, 64)
  const count = random.chance(0.1) ? random.between(64, 256) : rules
  if (random.chance(0.15)) return Array.from({ length: rules }, (_, rule) => randomPortEntry(random, { rule }))
  return Array.from({ length: count }, (_, index) => {
    const entry = randomEntry(random, { rule: Math.min(index, rules - 1) })
    return random.chance(0.1) ? { action: entry.action, rule: entry.rule } : entry
  }).filter((entry) => entry.rule === rules - 1 || !isCatchAll(entry) || random.chance(0.2))
}

function isCatchAll(entry: Entry): boolean {
  return Object.keys(entry).length === 2
}

/** Some change their action, some go: what is left may match a packet no more. */
function editEntries(random: Random, entries: readonly Entry[]): readonly Entry[] {
  const kept = entries.filter(() => random.chance(0.9))
  return (kept.length > 0 ? kept : entries).map((entry) =>
    random.chance(0.25) ? { ...entry, action: random.pick<Entry['action']>(['allow', 'deny']) } : entry,
  )
}

type Sent = { readonly slot: Slot; readonly packet: TestPacket }

/** A few talks per slot, so that answers, errors and later fragments meet what went before. */
function packetsOf(random: Random, slot: Slot, count: number): readonly Sent[] {
  for (let index = 0; index < 12; index++) {
    if (slot.talks[index] !== undefined && random.chance(0.7)) continue
    slot.talks[index] = { talk: randomTalk(random), way: random.pick<Direction>([...directions]) }
  }
  return Array.from({ length: count }, () => {
    const { talk, way } = random.pickFrom(slot.talks) ?? { talk: randomTalk(random), way: 'egress' as const }
    const isAnswer = random.chance(0.45)
    const form = { isAnswer, linkLayer: slot.linkLayer }
    const spoken: Talk = isAnswer ? answerOf(talk) : talk
    const isError = random.chance(0.08)
    const goes = isAnswer !== isError ? other(way) : way
    const frame = isError ? randomError(random, spoken, form) : randomFrame(random, spoken, form)
    const mark = random.chance(0.7) ? 0 : random.below(8) << markShift
    return { slot, packet: { slot: slot.slot, direction: goes, linkLayer: slot.linkLayer, mark, frame } }
  })
}

function other(direction: Direction): Direction {
  return direction === 'ingress' ? 'egress' : 'ingress'
}

function decideByReference(slot: Slot, packet: TestPacket, isSegmented: boolean): Decision {
  const { frame, linkLayer, direction } = packet
  const marked = pathClasses[packet.mark >> markShift] ?? 'unclassified'
  const path = marked === 'unclassified' ? pathByRemote(slot, packet, isSegmented) : marked
  return slot.reference.decide({ frame, linkLayer, direction, path, seconds: 0, isSegmented })
}

function pathByRemote({ vpc }: Slot, packet: TestPacket, isSegmented: boolean): PathClass {
  const { frame, linkLayer, direction } = packet
  const parsed = parsePacket(frame, { linkLayer, isIngress: direction === 'ingress', isSegmented })
  if (parsed.kind !== 'ip') return 'unclassified'
  return pathByPrefix(vpc, direction === 'ingress' ? parsed.source : parsed.destination)
}

type Counted = { readonly slot: Slot; readonly decision: Decision; readonly segments: number }

function count(expected: Map<string, bigint>, packet: TestPacket, { slot, decision, segments }: Counted): void {
  const { reason, rule } = decision
  const add = (key: string, number: number): void => void expected.set(key, (expected.get(key) ?? 0n) + BigInt(number))
  if (reason !== 'rule') {
    const row = 2 * slot.slot + (packet.direction === 'egress' ? 1 : 0)
    add(`fallbacks ${fallbackReasons.length * row + fallbackReasons.indexOf(reason)}`, segments)
    return
  }
  // A reply may be decided by the other direction's policy: the rules of both are counted together here.
  const row = 64 * slot.slot + (rule ?? 0)
  add(`hits ${row}`, 1)
  add(`bytes ${row}`, packet.frame.length)
}

function readCounters({ bpf, tables }: DatapathCase): Map<string, bigint> {
  const sums = new Map<string, bigint>()
  const add = (key: string, number: bigint): void => void sums.set(key, (sums.get(key) ?? 0n) + number)
  readBatches(bpf, tables.counters, { count: 4096 }, ({ count: rows, keys, values }) => {
    for (let index = 0; index < rows; index++) {
      const row = keys.readUInt32LE(4 * index)
      const key = 64 * Math.floor(row / 128) + (row % 64)
      const size = rowSize(tables.counters.shape)
      for (let at = index * size; at < (index + 1) * size; at += counterLayout.size) {
        add(`hits ${key}`, values.readBigUInt64LE(at))
        add(`bytes ${key}`, values.readBigUInt64LE(at + 8))
      }
    }
  })
  readBatches(bpf, tables.fallbacks, { count: 4096 }, ({ count: rows, keys, values }) => {
    const size = rowSize(tables.fallbacks.shape)
    for (let index = 0; index < rows; index++) {
      for (let at = index * size; at < (index + 1) * size; at += 8) {
        add(`fallbacks ${keys.readUInt32LE(4 * index)}`, values.readBigUInt64LE(at))
      }
    }
  })
  return sums
}

type CounterCheck = {
  readonly before: ReadonlyMap<string, bigint>
  readonly expected: ReadonlyMap<string, bigint>
  readonly seed: number
}

function compareCounters(one: DatapathCase, { before, expected, seed }: CounterCheck): void {
  for (const [key, now] of readCounters(one)) {
    const grown = now - (before.get(key) ?? 0n)
    const wanted = expected.get(key) ?? 0n
    if (grown !== wanted) throw new Error(`seed ${seed}: the counter ${key} grew by ${grown}, not by ${wanted}`)
  }
}

type Difference = {
  readonly packet: TestPacket
  readonly slot: Slot
  readonly wanted: Decision
  readonly got: Decision | undefined
}

function tell(seed: number, { packet, slot, wanted, got }: Difference): string {
  const rule = wanted.rule ?? got?.rule
  const entries = slot.bound.get(packet.direction)?.entries.filter((entry) => entry.rule === rule) ?? []
  const text = entries.map((entry) => JSON.stringify(entry, (_, value) => (value?.words ? printIp(value) : value)))
  return [
    `seed ${seed}: PORTOLAN_SEED=${seed} repeats this`,
    `the reference says ${JSON.stringify(wanted)}, the datapath ${JSON.stringify(got)}`,
    `slot ${packet.slot} ${packet.direction} ${packet.linkLayer}, mark ${packet.mark}`,
    Buffer.from(packet.frame).toString('hex'),
    ...text,
  ].join('\n')
}
