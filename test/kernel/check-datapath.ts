/** Random policies and random packets: the datapath's decisions and counters against the reference's, packet by packet. */
import { printIp } from '#base/ip'
import { counterLayout } from '#compile/traffic-policy/datapath-maps'
import { type Direction, type Entry, pathClasses } from '#compile/traffic-policy/entry'
import { type Decision, isSameDecision } from '#compile/traffic-policy/policy-packet'
import { fallbackReasons } from '#compile/traffic-policy/reasons'
import { createReference } from '#compile/traffic-policy/reference-connection'
import type { Snapshot } from '#compile/traffic-policy/snapshot'
import { readBatches } from '#kernel/map-batch'
import { rowSize } from '#kernel/maps'
import { type Random, randomOf } from '../random/random'
import { randomEntry } from '../random/random-entry'
import { answerOf, randomError, randomFrame, randomTalk, type Talk } from '../random/random-frame'
import { bindAll, type DatapathCase, giveToken, snapshotOf } from './datapath-case'
import type { PacketRunner, TestPacket } from './packet-runner'

export const slotsInUse = 64
const directions = ['ingress', 'egress'] as const
const markShift = 8

export type Slot = {
  readonly slot: number
  readonly token: bigint
  readonly linkLayer: 'ethernet' | 'ip'
  readonly reference: ReturnType<typeof createReference>
  readonly bound: Map<Direction, Snapshot>
}

export type Round = {
  readonly seed: number
  readonly packets: number
  /** Changes what is bound behind the reference's back: the check must notice. */
  readonly spoil?: (snapshot: Snapshot) => Snapshot
  /** Sees the connections that both remember once the packets are through. */
  readonly look?: (slots: readonly Slot[]) => void
}

export type Tally = { readonly packets: number; readonly reasons: ReadonlyMap<string, number> }

/** One round: policies in all slots, packets through them, an edit of most policies, packets again. */
export function checkRound(
  one: DatapathCase,
  run: PacketRunner,
  { seed, packets, spoil = (snapshot) => snapshot, look }: Round,
): Tally {
  const random = randomOf(seed)
  const before = readCounters(one)
  const expected = new Map<string, bigint>()
  const reasons = new Map<string, number>()
  const slots = Array.from({ length: slotsInUse }, (_, index) => freshSlot(one, random, index + 1))
  for (const isEdit of [false, true]) {
    publishAll(one, random, slots, { isEdit, spoil })
    const sent = slots.flatMap((slot) => packetsOf(random, slot, Math.ceil(packets / (2 * slotsInUse))))
    const decided = run(sent.map(({ packet }) => packet))
    for (const [index, { packet, slot }] of sent.entries()) {
      const wanted = decideByReference(slot, packet)
      const got = decided[index]
      if (got === undefined || !isSameDecision(wanted, got)) throw new Error(tell(seed, { packet, slot, wanted, got }))
      reasons.set(wanted.reason, (reasons.get(wanted.reason) ?? 0) + 1)
      count(expected, slot, packet, wanted)
    }
  }
  compareCounters(one, { before, expected, seed })
  look?.(slots)
  return { packets: 2 * slotsInUse * Math.ceil(packets / (2 * slotsInUse)), reasons }
}

function freshSlot(one: DatapathCase, random: Random, slot: number): Slot {
  return {
    slot,
    token: giveToken(one, slot),
    linkLayer: random.chance(0.8) ? 'ethernet' : 'ip',
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
  return Array.from({ length: count }, (_, index) => {
    const entry = randomEntry(random, { rule: Math.min(index, rules - 1) })
    return random.chance(0.1) ? { action: entry.action, rule: entry.rule } : entry
  }).filter((entry) => entry.rule === rules - 1 || !isCatchAll(entry) || random.chance(0.2))
}

function isCatchAll(entry: Entry): boolean {
  return Object.keys(entry).length === 2
}

function editEntries(random: Random, entries: readonly Entry[]): readonly Entry[] {
  return entries.map((entry) =>
    random.chance(0.25) ? { ...entry, action: random.pick<Entry['action']>(['allow', 'deny']) } : entry,
  )
}

type Sent = { readonly slot: Slot; readonly packet: TestPacket }

/** A few talks per slot, so that answers, errors and later fragments meet what went before. */
function packetsOf(random: Random, slot: Slot, count: number): readonly Sent[] {
  const talks = Array.from({ length: 12 }, () => ({
    talk: randomTalk(random),
    way: random.pick<Direction>([...directions]),
  }))
  return Array.from({ length: count }, () => {
    const { talk, way } = random.pickFrom(talks) ?? { talk: randomTalk(random), way: 'egress' as const }
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

function decideByReference(slot: Slot, packet: TestPacket): Decision {
  const path = pathClasses[packet.mark >> markShift] ?? 'unclassified'
  const { frame, linkLayer, direction } = packet
  return slot.reference.decide({ frame, linkLayer, direction, path, seconds: 0 })
}

function count(expected: Map<string, bigint>, slot: Slot, packet: TestPacket, { reason, rule }: Decision): void {
  const add = (key: string, number: number): void => void expected.set(key, (expected.get(key) ?? 0n) + BigInt(number))
  if (reason !== 'rule') {
    const row = 2 * slot.slot + (packet.direction === 'egress' ? 1 : 0)
    add(`fallbacks ${fallbackReasons.length * row + fallbackReasons.indexOf(reason)}`, 1)
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
