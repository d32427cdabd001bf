/** Sends packets through a node and returns what the kernel did with each. */
import { flushConnections } from './connections'
import type { KernelNode } from './kernel-node'
import { sendFromLocal } from './local-process'
import { sleep } from './run-command'
import { fromLocal, type SentPacket } from './sent-packet'
import type { SeenPacket } from './trace-event'
import type { TraceReader } from './trace-reader'
import type { Walk } from './walk'
import { sendFromWire } from './wire'

export type PacketOutcome = {
  readonly packet: SentPacket
  /** One walk; two when a local packet comes back in on `lo`. */
  readonly walks: readonly [Walk, ...Walk[]]
  /** The error of a local sender's system call. */
  readonly sendError?: string
}

/** What a chunk reports fits the monitor's buffer many times over, even when nft gets no processor for a while. */
const chunkSize = 250

/**
 * In the order given. Local packets of one call differ in their source port or ICMP id. Connections of an earlier call
 * are forgotten first, unless `keepConnections`: otherwise a packet could belong to one, and pass no nat chain.
 */
export function tracePackets(
  path: { readonly node: KernelNode; readonly reader: TraceReader; readonly keepConnections?: boolean },
  packets: readonly SentPacket[],
): PacketOutcome[] {
  if (!path.keepConnections) flushConnections(path.node)
  const outcomes: PacketOutcome[] = []
  for (let at = 0; at < packets.length; at += chunkSize) {
    outcomes.push(...traceChunk(path.node, path.reader, packets.slice(at, at + chunkSize)))
  }
  return outcomes
}

function traceChunk(node: KernelNode, reader: TraceReader, packets: readonly SentPacket[]): PacketOutcome[] {
  reader.forget()
  const errors = sendInOrder(node, packets)
  for (let tries = 0; ; tries++) {
    const walks = reader.read()
    const outcomes = packets.map((packet, index) => outcomeOf(packet, index, walks))
    // A packet may still be on its way while nothing is reported: what looks lost gets another look.
    const isWhole = outcomes.every(
      (outcome) => outcome && (tries > 2 || outcome.walks.at(-1)?.fate.kind !== 'vanished'),
    )
    if (isWhole) return outcomes.flatMap((outcome, index) => (outcome ? [withError(outcome, errors[index])] : []))
    if (tries === 20) {
      const lost = packets.filter((_, index) => outcomes[index] === undefined)
      throw new Error(`the kernel reported no walk of ${lost.length} packets, the first: ${JSON.stringify(lost[0])}`)
    }
    sleep(10)
  }
}

function withError(outcome: PacketOutcome, sendError: string | undefined): PacketOutcome {
  return sendError === undefined ? outcome : { ...outcome, sendError }
}

/** Neighbours in the list of the same kind go out together: a change between the wire and the local process is rare. */
function sendInOrder(node: KernelNode, packets: readonly SentPacket[]): (string | undefined)[] {
  const errors: (string | undefined)[] = []
  while (errors.length < packets.length) {
    const at = errors.length
    const isLocal = packets[at]?.from === fromLocal
    const change = packets.findIndex((packet, index) => index > at && (packet.from === fromLocal) !== isLocal)
    const run = packets.slice(at, change === -1 ? undefined : change)
    if (isLocal) errors.push(...sendFromLocal(node, run))
    else {
      sendFromWire(
        node,
        run.map((packet, index) => ({ packet, id: idOf(at + index) })),
      )
      errors.push(...run.map(() => undefined))
    }
  }
  return errors
}

/** Ids of frames start at 1: Linux sends 0 itself. */
function idOf(index: number): number {
  return index + 1
}

function outcomeOf(packet: SentPacket, index: number, walks: readonly Walk[]): PacketOutcome | undefined {
  const entry = packet.from === fromLocal ? 'local' : 'wire'
  const first = walks.findIndex(
    (walk) =>
      walk.entry === entry &&
      (entry === 'local' ? isSameFlow(walk.packet, packet) : isFrame(walk.packet, packet, idOf(index))),
  )
  const walk = walks[first]
  if (walk === undefined) return undefined
  const back =
    walk.fate.kind === 'left' && walk.fate.outInterface === 'lo' ? returnOf(walk, walks.slice(first)) : undefined
  return { packet, walks: back ? [walk, back] : [walk] }
}

function isFrame(seen: SeenPacket, sent: SentPacket, id: number): boolean {
  return seen.id === id && seen.inInterface === sent.from && seen.source === sent.source
}

function isSameFlow(seen: SeenPacket, sent: SentPacket): boolean {
  const isSameEnds = seen.source === sent.source && seen.destination === sent.destination
  if (!isSameEnds || seen.protocol.replace('icmpv6', 'icmp') !== sent.protocol) return false
  if (sent.protocol === 'icmp') return seen.icmp?.id === (sent.icmp?.id ?? 1)
  return seen.sourcePort === sent.sourcePort && seen.destinationPort === sent.destinationPort
}

/** The same packet where it comes in again on `lo`: it looks as it did when it left. */
function returnOf(walk: Walk, later: readonly Walk[]): Walk | undefined {
  const left = walk.sights.at(-1)?.packet
  return later.find(
    ({ packet }) =>
      packet.inInterface === 'lo' &&
      packet.id === left?.id &&
      packet.source === left.source &&
      packet.destination === left.destination &&
      packet.sourcePort === left.sourcePort,
  )
}
