/** What nodes remember of connections, from given tables and from the walk itself: conntrack's tuples, both ways. */
import { isSameIp, parseIp, printIp } from '#base/ip'
import type { StateRow } from '#model/walk'
import { type ConntrackEntry, type ConntrackTuple, printConntrackEntry } from '../conntrack-entry'
import { answerOf, type Flight, isError, isIcmp, isSameSource, packetProtocol } from './flight'

export type NodeEntry = {
  readonly node: string
  readonly entry: Omit<ConntrackEntry, 'line' | 'text'> & Partial<Pick<ConntrackEntry, 'text'>>
  readonly isNew: boolean
}

/** A tracked packet goes on as its connection's first one did, or back the way that one came. */
export type Tracked = NodeEntry & {
  readonly isReply: boolean
  readonly translated: Flight
  /** An error about the connection. */
  readonly isRelated?: boolean
}

export type NodeState = ReadonlyMap<string, { readonly held: NodeEntry; readonly isReply: boolean }>

export function nodeState(entries: readonly NodeEntry[]): NodeState {
  const state = new Map<string, { readonly held: NodeEntry; readonly isReply: boolean }>()
  for (const held of entries) {
    const { protocol, original, reply } = held.entry
    const put = (tuple: ConntrackTuple, isReply: boolean): void => {
      const key = `${held.node} ${protocol} ${keyOf(tuple)}`
      if (!state.has(key)) state.set(key, { held, isReply })
    }
    put(original, false)
    put(reply, true)
  }
  return state
}

function keyOf({ source, destination, sourcePort, destinationPort, icmp }: ConntrackTuple): string {
  const ports = icmp === undefined ? `${sourcePort} ${destinationPort}` : `${icmp.id} ${icmp.type}`
  return `${source} ${destination} ${ports}`
}

export function tupleOf(flight: Flight): ConntrackTuple {
  const { sourcePort, port } = flight
  const ends = { source: printIp(flight.source), destination: printIp(flight.destination) }
  if (isIcmp(flight)) return { ...ends, icmp: { type: port, code: 0, id: sourcePort } }
  return { ...ends, sourcePort, destinationPort: port }
}

function flightOf(tuple: ConntrackTuple, like: Flight): Flight | undefined {
  const [source, destination] = [parseIp(tuple.source), parseIp(tuple.destination)]
  if (source === undefined || destination === undefined) return undefined
  const { icmp, sourcePort = like.sourcePort, destinationPort = like.port } = tuple
  const ends = { protocol: like.protocol, source, destination }
  return icmp === undefined
    ? { ...ends, sourcePort, port: destinationPort }
    : { ...ends, sourcePort: icmp.id, port: icmp.type }
}

export function findTracked(state: NodeState, node: string, flight: Flight): Tracked | undefined {
  if (state.size === 0) return undefined
  if (isError(flight)) return findRelated(state, node, flight)
  const found = state.get(`${node} ${packetProtocol(flight)} ${keyOf(tupleOf(flight))}`)
  if (found === undefined) return undefined
  const { held, isReply } = found
  const other = flightOf(isReply ? held.entry.original : held.entry.reply, flight)
  return other === undefined ? undefined : { ...held, isReply, translated: answerOf(other) }
}

/**
 * An error goes the way of what would answer the packet inside, and is translated as that would be; it goes to whoever sent that
 * packet, or is nobody's (nf_conntrack_inet_error, nf_nat_icmp_reply_translation).
 */
function findRelated(state: NodeState, node: string, { about, ...flight }: Flight): Tracked | undefined {
  if (about === undefined || !isSameIp(about.source, flight.destination)) return undefined
  const like = answerOf(about)
  const found = findTracked(state, node, like)
  if (found === undefined) return undefined
  const { translated } = found
  const source = isSameSource(translated, like) ? flight.source : translated.source
  const after = { ...flight, source, destination: translated.destination, about: answerOf(translated) }
  return { ...found, isRelated: true, translated: after }
}

/** After a connection's first packet. */
export function firstEntry(node: string, before: Flight, after: Flight): NodeEntry {
  const protocol = packetProtocol(before)
  const state = { tcp: 'SYN_SENT', sctp: 'COOKIE_WAIT' }[protocol as string]
  const entry = {
    protocol,
    ...(state !== undefined && { state }),
    original: tupleOf(before),
    reply: tupleOf(answerOf(after)),
    isUnreplied: true,
  }
  return { node, entry, isNew: true }
}

/** After its first answer: a TCP connection is not assured until the client has answered in turn. */
export function answeredEntry(held: NodeEntry): NodeEntry {
  const { protocol, state } = held.entry
  const later = state === 'SYN_SENT' ? 'SYN_RECV' : protocol === 'sctp' ? 'COOKIE_ECHOED' : state
  return { ...held, entry: { ...held.entry, ...(later !== undefined && { state: later }), isUnreplied: false } }
}

export function stateRow({ node, entry, isNew }: NodeEntry): StateRow {
  return { node, table: 'conntrack', row: entry.text ?? printConntrackEntry(entry), isNew }
}
