/** The bytes of a snapshot, read back; undefined when they are not what `printSnapshot` writes. */
import type { Ip } from '#base/ip'
import type { PortRange } from '#base/port-range'
import { lengthOfMask, type Prefix } from '#base/prefix'
import type { Action, Direction, Entry, EntryProtocol, PathClass } from './entry'
import { maxEntries, maxRules, pathClasses } from './entry'
import { printSnapshot } from './print-snapshot'
import type { Snapshot, SnapshotRule } from './snapshot'
import {
  actionNumbers,
  classBits,
  directionNumbers,
  entriesOffset,
  entryLayout,
  givenBits,
  headerLayout,
  ruleLayout,
  rulesOffset,
  snapshotFormat,
  snapshotSize,
  statefulFlag,
} from './snapshot-layout'

export function parseSnapshot(bytes: Uint8Array): Snapshot | undefined {
  if (bytes.length !== snapshotSize) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const entryCount = view.getUint32(headerLayout.entryCount, true)
  const ruleCount = view.getUint32(headerLayout.ruleCount, true)
  if (view.getUint32(headerLayout.format, true) !== snapshotFormat) return undefined
  if (entryCount > maxEntries || ruleCount > maxRules) return undefined
  const snapshot: Snapshot = {
    token: view.getBigUint64(headerLayout.token, true),
    direction: directionOf(view.getUint32(headerLayout.direction, true)),
    policyUid: parseUid(bytes),
    generation: view.getUint32(headerLayout.generation, true),
    binding: view.getUint32(headerLayout.binding, true),
    publication: view.getUint32(headerLayout.publication, true),
    stateful: (view.getUint32(headerLayout.flags, true) & statefulFlag) !== 0,
    rules: Array.from({ length: ruleCount }, (_, index) => parseRule(view, rulesOffset + index * ruleLayout.size)),
    entries: Array.from({ length: entryCount }, (_, index) =>
      parseEntry(view, entriesOffset + index * entryLayout.size),
    ),
  }
  return isPrintOf(snapshot, bytes) ? snapshot : undefined
}

/** What was read must print to the same bytes: anything else was written by another hand or was corrupted. */
function isPrintOf(snapshot: Snapshot, bytes: Uint8Array): boolean {
  if (snapshot.entries.some((entry) => entry.rule >= snapshot.rules.length)) return false
  const printed = printSnapshot(snapshot)
  for (let index = 0; index < printed.length; index++) if (printed[index] !== bytes[index]) return false
  return true
}

function directionOf(number: number): Direction {
  return number === directionNumbers.egress ? 'egress' : 'ingress'
}

function actionOf(number: number): Action {
  return number === actionNumbers.allow ? 'allow' : 'deny'
}

/** UIDs are ASCII; another byte fails the comparison with the printed text. */
function parseUid(bytes: Uint8Array): string {
  const text = bytes.subarray(headerLayout.uid, headerLayout.uid + headerLayout.uidLength)
  const end = text.indexOf(0)
  return String.fromCharCode(...(end < 0 ? text : text.subarray(0, end)))
}

function parseRule(view: DataView, at: number): SnapshotRule {
  return {
    nameHash: view.getBigUint64(at + ruleLayout.nameHash, true),
    action: actionOf(view.getUint8(at + ruleLayout.action)),
    counterRow: view.getUint32(at + ruleLayout.counterRow, true),
  }
}

function parseEntry(view: DataView, at: number): Entry {
  const forbidden = view.getUint32(at + entryLayout.forbidden, true)
  const given = view.getUint16(at + entryLayout.given, true)
  const gives = (field: keyof typeof givenBits): boolean => (given & givenBits[field]) !== 0
  const source = parseRange(view, at + entryLayout.sourcePort)
  const destination = parseRange(view, at + entryLayout.destinationPort)
  const family = (forbidden & classBits.ipv4) === 0 ? 'ipv4' : 'ipv6'
  return {
    ...(gives('family') ? { family } : {}),
    ...(gives('protocol') ? { protocol: parseProtocol(forbidden) } : {}),
    ...(gives('source') ? { source: parseMatch(view, at + entryLayout.sourceMask, family) } : {}),
    ...(gives('destination') ? { destination: parseMatch(view, at + entryLayout.destinationMask, family) } : {}),
    ...(gives('sourcePorts') ? { sourcePorts: source } : {}),
    ...(gives('destinationPorts') ? { destinationPorts: destination } : {}),
    ...(gives('icmpType') ? { icmpType: source.from } : {}),
    ...(gives('icmpCode') ? { icmpCode: destination.from } : {}),
    ...(gives('paths') ? { paths: parsePaths(forbidden) } : {}),
    action: actionOf(view.getUint8(at + entryLayout.action)),
    rule: view.getUint8(at + entryLayout.rule),
  }
}

function parseProtocol(forbidden: number): EntryProtocol {
  const protocols = ['tcp', 'udp', 'sctp', 'icmp', 'icmpv6'] as const
  return protocols.find((protocol) => (forbidden & classBits[protocol]) === 0) ?? 'tcp'
}

function parsePaths(forbidden: number): readonly PathClass[] {
  return pathClasses.filter((_, index) => (forbidden & (classBits.firstPath << index)) === 0)
}

function parseRange(view: DataView, at: number): PortRange {
  const from = view.getUint16(at, true)
  return { from, to: from + view.getUint16(at + 2, true) }
}

function parseMatch(view: DataView, at: number, family: Ip['family']): Prefix {
  const mask = { family, words: parseWords(view, at, family) }
  return { ip: { family, words: parseWords(view, at + 16, family) }, length: lengthOfMask(mask) ?? 0 }
}

function parseWords(view: DataView, at: number, family: Ip['family']): readonly number[] {
  return Array.from({ length: family === 'ipv4' ? 1 : 4 }, (_, index) => view.getUint32(at + 4 * index))
}
