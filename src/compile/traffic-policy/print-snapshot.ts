/** A snapshot as the bytes that the datapath reads. */
import { sha256 } from '@noble/hashes/sha2.js'
import { utf8ToBytes } from '@noble/hashes/utils.js'
import { invariant } from '#base/invariant'
import type { Ip } from '#base/ip'
import { maskWords, type Prefix } from '#base/prefix'
import { type Entry, hasIcmp, hasPorts, maxEntries, maxRules, needsTransport, pathClasses } from './entry'
import type { Snapshot } from './snapshot'
import {
  actionNumbers,
  classBits,
  directionNumbers,
  entriesOffset,
  entryLayout,
  givenBits,
  groupLayout,
  groupLength,
  groupsOffset,
  headerLayout,
  portRemainders,
  remainderRowSize,
  remaindersOffset,
  ruleLayout,
  rulesOffset,
  snapshotFormat,
  snapshotSize,
  statefulFlag,
  takesNothing,
} from './snapshot-layout'

export function printSnapshot(snapshot: Snapshot): Uint8Array {
  invariant(snapshot.entries.length <= maxEntries, `a snapshot holds at most ${maxEntries} entries`)
  invariant(snapshot.rules.length <= maxRules, `a snapshot holds at most ${maxRules} rules`)
  const bytes = new Uint8Array(snapshotSize)
  const view = new DataView(bytes.buffer)
  printHeader(bytes, view, snapshot)
  for (const [index, rule] of snapshot.rules.entries()) {
    const at = rulesOffset + index * ruleLayout.size
    view.setBigUint64(at + ruleLayout.nameHash, rule.nameHash, true)
    view.setUint32(at + ruleLayout.counterRow, rule.counterRow, true)
    view.setUint8(at + ruleLayout.action, actionNumbers[rule.action])
  }
  for (const [index, entry] of snapshot.entries.entries()) {
    invariant(entry.rule < snapshot.rules.length, 'an entry belongs to a rule of its snapshot')
    printEntry(view, entriesOffset + index * entryLayout.size, entry)
  }
  for (let index = snapshot.entries.length; index < maxEntries; index++) {
    view.setUint32(entriesOffset + index * entryLayout.size + entryLayout.forbidden, takesNothing, true)
  }
  for (let index = 0; index < snapshot.entries.length; index += groupLength) printGroup(view, index)
  for (const index of snapshot.entries.keys()) printRemainders(view, index)
  return bytes
}

/** What no entry of the group takes: class bits that all forbid, and destination ports outside of all. */
function printGroup(view: DataView, first: number): void {
  const at = groupsOffset + (first / groupLength) * groupLayout.size
  let forbidden = takesNothing
  let [from, to] = [65535, 0]
  for (let index = first; index < first + groupLength; index++) {
    const entry = entriesOffset + index * entryLayout.size
    const own = view.getUint32(entry + entryLayout.forbidden, true)
    if (own === takesNothing) continue
    forbidden = (forbidden & own) >>> 0
    const port = view.getUint16(entry + entryLayout.destinationPort, true)
    from = Math.min(from, port)
    to = Math.max(to, port + view.getUint16(entry + entryLayout.destinationSpan, true))
  }
  view.setUint32(at + groupLayout.forbidden, forbidden, true)
  view.setUint16(at + groupLayout.destinationPort, from, true)
  view.setUint16(at + groupLayout.destinationSpan, to - from, true)
}

/** In the rows of the remainders that the entry's destination ports have, and in the last one, the bit of its group. */
function printRemainders(view: DataView, index: number): void {
  const entry = entriesOffset + index * entryLayout.size
  const bit = 1 << (index / groupLength)
  const mark = (row: number): void => {
    const at = remaindersOffset + row * remainderRowSize
    view.setUint32(at, view.getUint32(at, true) | bit, true)
  }
  const port = view.getUint16(entry + entryLayout.destinationPort, true)
  const span = view.getUint16(entry + entryLayout.destinationSpan, true)
  for (let step = 0; step <= Math.min(span, portRemainders - 1); step++) mark((port + step) % portRemainders)
  mark(portRemainders)
}

export function uidHash(uid: string): Uint8Array {
  return sha256(utf8ToBytes(uid)).slice(0, 8)
}

export function ruleNameHash(name: string): bigint {
  return new DataView(sha256(utf8ToBytes(name)).buffer).getBigUint64(0, true)
}

/** The class bits of packets that an entry does not take. */
export function forbiddenClasses(entry: Entry): number {
  let forbidden = 0
  const family = entry.family ?? entry.source?.ip.family ?? entry.destination?.ip.family
  if (family === 'ipv4') forbidden |= classBits.ipv6
  if (family === 'ipv6') forbidden |= classBits.ipv4
  for (const protocol of ['tcp', 'udp', 'sctp', 'icmp', 'icmpv6'] as const) {
    const isIcmp = protocol === 'icmp' || protocol === 'icmpv6'
    const isOther = entry.protocol !== undefined && entry.protocol !== protocol
    if (isOther || (isIcmp ? hasPorts(entry) : hasIcmp(entry))) forbidden |= classBits[protocol]
  }
  // What cannot be told of a later fragment is a miss for an allow and a match for a deny.
  if (needsTransport(entry) && entry.action === 'allow') forbidden |= classBits.noTransport
  for (const [index, path] of pathClasses.entries()) {
    if (entry.paths !== undefined && !entry.paths.includes(path)) forbidden |= classBits.firstPath << index
  }
  return forbidden
}

function printHeader(bytes: Uint8Array, view: DataView, snapshot: Snapshot): void {
  const uid = utf8ToBytes(snapshot.policyUid)
  invariant(uid.length <= headerLayout.uidLength, `a policy's UID has at most ${headerLayout.uidLength} bytes`)
  view.setUint32(headerLayout.format, snapshotFormat, true)
  view.setUint32(headerLayout.entryCount, snapshot.entries.length, true)
  view.setUint32(headerLayout.flags, snapshot.stateful ? statefulFlag : 0, true)
  view.setUint32(headerLayout.ruleCount, snapshot.rules.length, true)
  view.setBigUint64(headerLayout.token, snapshot.token, true)
  bytes.set(uidHash(snapshot.policyUid), headerLayout.uidHash)
  view.setUint32(headerLayout.binding, snapshot.binding, true)
  view.setUint32(headerLayout.generation, snapshot.generation, true)
  view.setUint32(headerLayout.publication, snapshot.publication, true)
  view.setUint32(headerLayout.direction, directionNumbers[snapshot.direction], true)
  bytes.set(uid, headerLayout.uid)
}

function printEntry(view: DataView, at: number, entry: Entry): void {
  const { icmpType, icmpCode } = entry
  view.setUint32(at + entryLayout.forbidden, forbiddenClasses(entry), true)
  view.setUint8(at + entryLayout.action, actionNumbers[entry.action])
  view.setUint8(at + entryLayout.rule, entry.rule)
  view.setUint16(at + entryLayout.given, given(entry), true)
  const source = hasIcmp(entry) ? one(icmpType) : entry.sourcePorts
  const destination = hasIcmp(entry) ? one(icmpCode) : entry.destinationPorts
  printRange(view, at + entryLayout.sourcePort, source)
  printRange(view, at + entryLayout.destinationPort, destination)
  printMatch(view, at + entryLayout.sourceMask, entry.source)
  printMatch(view, at + entryLayout.destinationMask, entry.destination)
}

function one(value: number | undefined): { readonly from: number; readonly to: number } | undefined {
  return value === undefined ? undefined : { from: value, to: value }
}

function printRange(view: DataView, at: number, range = { from: 0, to: 65535 }): void {
  view.setUint16(at, range.from, true)
  view.setUint16(at + 2, range.to - range.from, true)
}

/** Mask, then value. */
function printMatch(view: DataView, at: number, prefix: Prefix | undefined): void {
  if (prefix === undefined) return
  printWords(view, at, maskWords(prefix.ip.family, prefix.length))
  printWords(view, at + 16, (prefix.ip satisfies Ip).words)
}

function printWords(view: DataView, at: number, words: readonly number[]): void {
  for (const [index, word] of words.entries()) view.setUint32(at + 4 * index, word)
}

function given(entry: Entry): number {
  const bits = Object.entries(givenBits) as readonly (readonly [keyof typeof givenBits, number])[]
  return bits.reduce((sum, [field, bit]) => (entry[field] === undefined ? sum : sum | bit), 0)
}
