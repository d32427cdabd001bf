/** Where a snapshot's fields lie in the one value of its map; addresses and ports as bytes, numbers little-endian. */
import { maxEntries, maxRules } from './entry'

export const snapshotFormat = 2

/** 128 bytes: what the program compares first, then the policy's UID as text for whoever reads a snapshot back. */
export const headerLayout = {
  format: 0,
  entryCount: 4,
  flags: 8,
  ruleCount: 12,
  token: 16,
  /** SHA-256 of the UID, its first 8 bytes. */
  uidHash: 24,
  binding: 32,
  generation: 40,
  publication: 44,
  direction: 48,
  /** Always zero, which the verifier does not know: mixed into values that it should not follow. */
  nothing: 56,
  uid: 64,
  uidLength: 64,
  size: 128,
} as const

export const statefulFlag = 1

export const ruleLayout = { nameHash: 0, counterRow: 8, action: 12, size: 16 } as const

/**
 * `forbidden` has the class bits of packets that the entry does not take; a packet's own class bits are one of each kind.
 * ICMP type and code stand in the place of the ports. A range is its lower end and its span. An IPv4 address fills the
 * first four bytes of its sixteen.
 */
export const entryLayout = {
  forbidden: 0,
  action: 4,
  rule: 5,
  given: 6,
  sourcePort: 8,
  sourceSpan: 10,
  destinationPort: 12,
  destinationSpan: 14,
  sourceMask: 16,
  sourceValue: 32,
  destinationMask: 48,
  destinationValue: 64,
  size: 80,
} as const

/** Which fields an entry gives, so that the bytes read back as they were written. */
export const givenBits = {
  family: 1,
  protocol: 2,
  source: 4,
  destination: 8,
  sourcePorts: 16,
  destinationPorts: 32,
  icmpType: 64,
  icmpCode: 128,
  paths: 256,
} as const

/** A packet has one family bit, one protocol bit, one path bit, and the transport bit when its ports cannot be told. */
export const classBits = {
  ipv4: 1 << 0,
  ipv6: 1 << 1,
  tcp: 1 << 2,
  udp: 1 << 3,
  sctp: 1 << 4,
  icmp: 1 << 5,
  icmpv6: 1 << 6,
  noTransport: 1 << 7,
  firstPath: 1 << 8,
} as const

export const actionNumbers = { allow: 0, deny: 1 } as const
export const directionNumbers = { ingress: 0, egress: 1 } as const

/** Eight entries at a time are passed over by what none of them takes; an entry after the last one takes nothing. */
export const groupLength = 8
export const groupLayout = { forbidden: 0, destinationPort: 4, destinationSpan: 6, size: 8 } as const
export const takesNothing = 0xffffffff

/**
 * Most packets need not even that of most groups: a row for each remainder of a destination port has a bit for each group
 * in which an entry takes such ports, and a last one a bit for each group there is.
 */
export const portRemainders = 64
export const remainderRowSize = 4

export const groupsOffset = headerLayout.size
export const remaindersOffset = groupsOffset + (maxEntries / groupLength) * groupLayout.size
/** Rules begin at a multiple of eight bytes. */
export const rulesOffset = remaindersOffset + (portRemainders + 2) * remainderRowSize
export const entriesOffset = rulesOffset + maxRules * ruleLayout.size
export const snapshotSize = entriesOffset + maxEntries * entryLayout.size
