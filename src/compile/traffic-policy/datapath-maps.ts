/** The tables that the datapath's programs share with the agent: names, shapes, and where a row's fields lie. */
import { invariant } from '#base/invariant'
import type { MapShape } from '#compile/bpf/map-shape'
import type { Direction } from './entry'
import { type FallbackReason, fallbackReasons } from './reasons'
import { directionNumbers, snapshotSize } from './snapshot-layout'

/** Pins of another version lie in a folder of their own: a layout never changes under a running program. */
export const datapathVersion = 2

export type DatapathSizes = {
  /** Interfaces; slot 0 is never given away. */
  readonly slots: number
  readonly counterRows: number
  /** Of each family. */
  readonly connections: number
  readonly prefixes: number
  /** Bytes, a power of two and whole pages. */
  readonly events: number
}

/** 100 interfaces with 64 rules both ways use 12,800 counter rows, and as many again while all are republished. */
export const usualSizes: DatapathSizes = {
  slots: 1024,
  counterRows: 32_768,
  connections: 131_072,
  prefixes: 16_384,
  events: 1 << 20,
}

export const modeNumbers = { off: 0, audit: 1, enforce: 2 } as const
export type EnforcedMode = keyof typeof modeNumbers

/**
 * One row. A packet's path class is `(mark & markMask) >> markShift` where that is a class, and the mask is not zero.
 * `isChosen` is 1 once somebody set the mode: a table that was just made is off as well.
 */
export const configLayout = { mode: 0, markMask: 4, markShift: 8, isChosen: 12, size: 16 } as const

/** Rows of eight bytes: the last publication's number, and of what code the programs in the array are. */
export const numberRows = { publication: 0, fingerprint: 1 } as const

/** A row a slot; the token is zero while the slot is free. */
export const interfaceLayout = {
  token: 0,
  index: 8,
  vpc: 12,
  /** The inode of its network namespace. */
  namespace: 16,
  name: 24,
  nameLength: 16,
  /** 1 for the workload's own end. */
  isWorkload: 40,
  size: 48,
} as const

export const counterLayout = { hits: 0, bytes: 8, size: 16 } as const

/** Matched by prefix after the first 64 bits, which are the VPC and the family (4 or 6). */
export const prefixKeyLayout = { length: 0, vpc: 4, family: 8, address: 12, size: 28 } as const

/**
 * `local` is the end behind the interface, whichever way the packet goes. Numbers are little-endian. A look-up costs by
 * the length of its key, so that IPv4 has a table of its own; the first eight bytes are the same in both.
 */
export const connectionKeyLayout = {
  localPort: 0,
  remotePort: 2,
  slot: 4,
  protocol: 6,
  kind: 7,
  local: 8,
  remote: 24,
  size: 40,
} as const
export const ipv4KeyLayout = { ...connectionKeyLayout, remote: 12, size: 16 } as const

/** What the key of a connection has for its interface. */
export const maxSlots = 1 << 16

/** In `kind` beside the family's number: a row for the later fragments of one datagram going one way. */
export const fragmentKind = { ingress: 0x10, egress: 0x30 } as const
export const familyBits = 0x0f
/** In an echo's `remotePort` beside the request's type: the request came from the local end. */
export const localAsks = 0x100

export const connectionLayout = {
  token: 0,
  uidHash: 8,
  binding: 16,
  /** Both as one number: generation, then publication. */
  version: 24,
  /** In the kernel's ticks. */
  deadline: 32,
  opener: 40,
  path: 41,
  rule: 42,
  /** Of an echo's first request. */
  icmpCode: 43,
  seen: 44,
  size: 48,
} as const

/** A denied packet. */
export const eventLayout = {
  nanoseconds: 0,
  token: 8,
  slot: 16,
  direction: 20,
  reason: 21,
  rule: 22,
  mode: 23,
  kind: 24,
  protocol: 25,
  local: 28,
  remote: 44,
  localPort: 60,
  remotePort: 62,
  length: 64,
  size: 72,
} as const

/** More in one tick of one CPU are not written, only counted as lost. */
export const eventsPerTick = 64
export const eventBudgetLayout = { tick: 0, count: 8, lost: 16, size: 24 } as const

/** Of the array that the interfaces' own little programs jump through. */
export const programNumbers = { ethernet: { ingress: 0, egress: 1 }, ip: { ingress: 2, egress: 3 } } as const

export function snapshotShape(): MapShape {
  return { name: 'tp_snapshot', type: 'array', keySize: 4, valueSize: snapshotSize, maxEntries: 1 }
}

export function datapathMaps(sizes: DatapathSizes) {
  invariant(sizes.slots <= maxSlots, `a connection's key tells ${maxSlots} slots apart`)
  const row = (name: string, type: MapShape['type'], keySize: number, valueSize: number, maxEntries: number) =>
    ({ name, type, keySize, valueSize, maxEntries }) satisfies MapShape
  return {
    config: row('tp_config', 'array', 4, configLayout.size, 1),
    numbers: row('tp_numbers', 'array', 4, 8, 2),
    interfaces: row('tp_interfaces', 'array', 4, interfaceLayout.size, sizes.slots),
    bound: row('tp_bound', 'arrayOfMaps', 4, 4, 2 * sizes.slots),
    programs: row('tp_programs', 'programArray', 4, 4, 4),
    counters: row('tp_counters', 'perCpuArray', 4, counterLayout.size, sizes.counterRows),
    fallbacks: row('tp_fallbacks', 'perCpuArray', 4, 8, sizes.slots * 2 * fallbackReasons.length),
    connections4: row('tp_connections4', 'lruHash', ipv4KeyLayout.size, connectionLayout.size, sizes.connections),
    connections6: row('tp_connections6', 'lruHash', connectionKeyLayout.size, connectionLayout.size, sizes.connections),
    prefixes: row('tp_prefixes', 'prefixTrie', prefixKeyLayout.size, 4, sizes.prefixes),
    events: row('tp_events', 'ringBuffer', 0, 0, sizes.events),
    eventBudget: row('tp_event_budget', 'perCpuArray', 4, eventBudgetLayout.size, 1),
  } satisfies Record<string, MapShape>
}
export type DatapathMap = keyof ReturnType<typeof datapathMaps>

export function boundRow(slot: number, direction: Direction): number {
  return 2 * slot + directionNumbers[direction]
}

export function fallbackRow(slot: number, direction: Direction, reason: FallbackReason): number {
  return fallbackReasons.length * boundRow(slot, direction) + fallbackReasons.indexOf(reason)
}
