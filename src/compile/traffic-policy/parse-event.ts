/** A denial as the datapath wrote it into the ring buffer. */
import type { Ip } from '#base/ip'
import { type EnforcedMode, eventLayout, modeNumbers } from './datapath-maps'
import type { Direction } from './entry'
import { type Reason, reasonOf } from './reasons'
import { directionNumbers } from './snapshot-layout'

export type Denial = {
  /** Of the kernel's monotonic clock. */
  readonly nanoseconds: bigint
  readonly token: bigint
  readonly slot: number
  readonly direction: Direction
  readonly reason: Reason
  readonly rule?: number
  /** In audit the packet passed. */
  readonly mode: EnforcedMode
  readonly protocol: number
  /** Absent when the packet was not read so far. */
  readonly source?: Ip
  readonly destination?: Ip
  /** Of TCP, UDP and SCTP. */
  readonly sourcePort?: number
  readonly destinationPort?: number
  readonly length: number
}

const noRule = 0xff
const withPorts = [6, 17, 132]

export function parseEvent(record: DataView): Denial | undefined {
  if (record.byteLength < eventLayout.size) return undefined
  const reason = reasonOf(record.getUint8(eventLayout.reason))
  if (reason === undefined) return undefined
  const direction = record.getUint8(eventLayout.direction) === directionNumbers.egress ? 'egress' : 'ingress'
  const rule = record.getUint8(eventLayout.rule)
  const mode = record.getUint8(eventLayout.mode) === modeNumbers.enforce ? 'enforce' : 'audit'
  return {
    nanoseconds: record.getBigUint64(eventLayout.nanoseconds, true),
    token: record.getBigUint64(eventLayout.token, true),
    slot: record.getUint32(eventLayout.slot, true),
    direction,
    reason,
    ...(rule === noRule ? {} : { rule }),
    mode,
    protocol: record.getUint8(eventLayout.protocol),
    ...parseEnds(record, direction),
    length: record.getUint32(eventLayout.length, true),
  }
}

type Ends = Pick<Denial, 'source' | 'destination' | 'sourcePort' | 'destinationPort'>

function parseEnds(record: DataView, direction: Direction): Ends {
  const family = record.getUint8(eventLayout.kind) & 0x0f
  const ip = (at: number): Ip | undefined => {
    if (family === 4) return { family: 'ipv4', words: [record.getUint32(at)] }
    if (family !== 6) return undefined
    return { family: 'ipv6', words: [0, 4, 8, 12].map((word) => record.getUint32(at + word)) }
  }
  const local = { ip: ip(eventLayout.local), port: record.getUint16(eventLayout.localPort, true) }
  const remote = { ip: ip(eventLayout.remote), port: record.getUint16(eventLayout.remotePort, true) }
  const [source, destination] = direction === 'egress' ? [local, remote] : [remote, local]
  return {
    ...(source.ip === undefined ? {} : { source: source.ip }),
    ...(destination.ip === undefined ? {} : { destination: destination.ip }),
    ...(withPorts.includes(record.getUint8(eventLayout.protocol))
      ? { sourcePort: source.port, destinationPort: destination.port }
      : {}),
  }
}
