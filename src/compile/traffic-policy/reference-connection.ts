/** What the datapath must remember of connections and decide by them: the reference that its program is tested against. */
import { type Ip, printIp } from '#base/ip'
import { timeoutSeconds } from './connection-timeouts'
import type { Direction, EntryProtocol, PathClass } from './entry'
import { evaluateEntries } from './evaluate-entries'
import type { Decision, PolicyPacket } from './policy-packet'
import { type ParsedInner, type ParsedPacket, type ParsedTransport, parsePacket, type Signal } from './reference-parse'
import type { Snapshot } from './snapshot'

export type ReferencePacket = {
  readonly frame: Uint8Array
  readonly linkLayer: 'ethernet' | 'ip'
  readonly direction: Direction
  readonly path: PathClass
  readonly seconds: number
  readonly isSegmented?: boolean
}

/** What was seen of a connection, by name. */
type Seen = {
  answered: boolean
  established: boolean
  finished: { opener: boolean; other: boolean }
  acknowledged: { opener: boolean; other: boolean }
  reset: boolean
}

type Connection = {
  readonly opener: Direction
  readonly policyUid: string
  readonly binding: number
  version: string
  readonly question: PolicyPacket
  path: PathClass
  readonly protocol: EntryProtocol
  readonly seen: Seen
  until: number
}

type FragmentRow = {
  readonly opener: Direction
  readonly policyUid: string
  readonly binding: number
  readonly version: string
  readonly until: number
}

/** One interface: what is bound to it, and its connections. */
export function createReference() {
  const bound = new Map<Direction, Snapshot>()
  const connections = new Map<string, Connection>()
  const fragments = new Map<string, FragmentRow>()

  function decide(packet: ReferencePacket): Decision {
    const own = bound.get(packet.direction)
    if (own === undefined) return { verdict: 'deny', reason: 'policy_unavailable' }
    const { linkLayer, isSegmented = false } = packet
    const settings = { linkLayer, isIngress: packet.direction === 'ingress', isSegmented }
    const parsed = parsePacket(packet.frame, settings)
    if (parsed.kind === 'link') return { verdict: 'allow', reason: 'link' }
    if (parsed.kind !== 'ip') return { verdict: 'deny', reason: parsed.kind }
    return parsed.transport === undefined
      ? decideLaterFragment(packet, own, parsed)
      : decideWhole(packet, own, { ...parsed, transport: parsed.transport })
  }

  function decideLaterFragment(packet: ReferencePacket, own: Snapshot, parsed: ParsedIp): Decision {
    const row = fragments.get(fragmentKey(packet, parsed))
    const opener = row === undefined ? undefined : bound.get(row.opener)
    const stands =
      row !== undefined &&
      opener !== undefined &&
      packet.seconds <= row.until &&
      isOf(row, opener) &&
      row.version === versionOf(opener)
    if (stands && tracks(packet.direction)) return { verdict: 'allow', reason: 'established' }
    if (own.stateful) return { verdict: 'deny', reason: 'fragment' }
    const question = {
      source: parsed.source,
      destination: parsed.destination,
      protocol: protocolOf(parsed.fragment?.protocol ?? 0, parsed.source),
      path: packet.path,
      isLaterFragment: true,
    }
    return evaluateEntries(own, question)
  }

  function decideWhole(packet: ReferencePacket, own: Snapshot, parsed: WholePacket): Decision {
    const key = connectionKey(packet.direction, parsed)
    const row = key === undefined || !tracks(packet.direction) ? undefined : standing(key, packet, parsed.transport)
    if (row === undefined) return decideFresh(packet, own, { parsed, key })
    const opener = bound.get(row.opener)
    if (opener === undefined) return decideFresh(packet, own, { parsed, key })
    if (row.version !== versionOf(opener)) return reconsider({ packet, parsed, row, opener, key: key ?? '' })
    if (parsed.transport.about !== undefined) return { verdict: 'allow', reason: 'icmp_error' }
    refresh(row, packet, parsed.transport)
    rememberFragments(packet, parsed, { row, snapshot: opener })
    return { verdict: 'allow', reason: 'established' }
  }

  /** The row, while it counts for this packet. */
  function standing(key: string, packet: ReferencePacket, transport: ParsedTransport): Connection | undefined {
    const row = connections.get(key)
    const opener = row === undefined ? undefined : bound.get(row.opener)
    if (row === undefined || opener === undefined || packet.seconds > row.until || !isOf(row, opener)) return undefined
    if (transport.signals.has('opens') && transport.about === undefined) {
      const isOver = row.seen.reset || (row.seen.finished.opener && row.seen.finished.other)
      if (row.opener !== packet.direction || isOver) return undefined
    }
    return row
  }

  function decideFresh(
    packet: ReferencePacket,
    own: Snapshot,
    { parsed, key }: { readonly parsed: WholePacket; readonly key: string | undefined },
  ): Decision {
    const { transport } = parsed
    const question = questionOf(parsed, packet.path)
    const decision = evaluateEntries(own, question)
    if (decision.verdict === 'deny' || !own.stateful || transport.about !== undefined) return decision
    const row: Connection = {
      opener: packet.direction,
      policyUid: own.policyUid,
      binding: own.binding,
      version: versionOf(own),
      question,
      path: packet.path,
      protocol: transport.protocol,
      seen: firstSeen(transport),
      until: 0,
    }
    const opensNone = ['answers', 'resets'] as const
    const opens = !opensNone.some((signal) => transport.signals.has(signal)) && transport.echo?.isAnswer !== true
    if (key !== undefined && opens) {
      refresh(row, packet, transport)
      connections.set(key, row)
    }
    rememberFragments(packet, parsed, { row, snapshot: own })
    return decision
  }

  type Reconsidered = {
    readonly packet: ReferencePacket
    readonly parsed: WholePacket
    readonly row: Connection
    readonly opener: Snapshot
    readonly key: string
  }

  /** Another edition of the policy is asked about the connection's first packet. */
  function reconsider({ packet, parsed, row, opener, key }: Reconsidered): Decision {
    const decision = evaluateEntries(opener, { ...row.question, path: row.path })
    if (decision.verdict === 'deny') {
      connections.delete(key)
      return decision
    }
    if (!opener.stateful) return decision
    row.version = versionOf(opener)
    refresh(row, packet, parsed.transport)
    if (parsed.transport.about === undefined) rememberFragments(packet, parsed, { row, snapshot: opener })
    return decision
  }

  function rememberFragments(
    packet: ReferencePacket,
    parsed: WholePacket,
    { row, snapshot }: { readonly row: Connection; readonly snapshot: Snapshot },
  ): void {
    if (parsed.fragment?.isFirst !== true || !snapshot.stateful) return
    const { opener, policyUid, binding } = row
    fragments.set(fragmentKey(packet, parsed), {
      opener,
      policyUid,
      binding,
      version: versionOf(snapshot),
      until: packet.seconds + timeoutSeconds.fragments,
    })
  }

  /** A direction looks connections up where any of both may have made some. */
  function tracks(direction: Direction): boolean {
    if (bound.get(direction)?.stateful === true) return true
    return bound.get(direction === 'ingress' ? 'egress' : 'ingress')?.stateful === true
  }

  return {
    bind: (direction: Direction, snapshot: Snapshot | undefined): void => {
      if (snapshot === undefined) bound.delete(direction)
      else bound.set(direction, snapshot)
    },
    decide,
    /** The times until which connections are remembered, in no order that means anything. */
    remembered: (): readonly number[] => [...connections.values()].map(({ until }) => until),
  }
}

type ParsedIp = Extract<ParsedPacket, { readonly kind: 'ip' }>
type WholePacket = ParsedIp & { readonly transport: ParsedTransport }

function isOf(row: { readonly policyUid: string; readonly binding: number }, snapshot: Snapshot): boolean {
  return row.policyUid === snapshot.policyUid && row.binding === snapshot.binding && snapshot.stateful
}

function versionOf(snapshot: Snapshot): string {
  return `${snapshot.generation} ${snapshot.publication}`
}

function protocolOf(number: number, source: Ip): EntryProtocol | number {
  const own = source.family === 'ipv4' ? { 1: 'icmp' } : { 58: 'icmpv6' }
  const known: Readonly<Record<number, string>> = { 6: 'tcp', 17: 'udp', 132: 'sctp', ...own }
  return (known[number] as EntryProtocol | undefined) ?? number
}

function questionOf({ source, destination, transport }: WholePacket, path: PathClass): PolicyPacket {
  const { protocol, sourcePort, destinationPort, icmpType, icmpCode } = transport
  return {
    source,
    destination,
    protocol,
    path,
    ...(sourcePort === undefined ? {} : { sourcePort }),
    ...(destinationPort === undefined ? {} : { destinationPort }),
    ...(icmpType === undefined ? {} : { icmpType }),
    ...(icmpCode === undefined ? {} : { icmpCode }),
  }
}

function fragmentKey({ direction }: ReferencePacket, { source, destination, fragment }: ParsedIp): string {
  return `${direction} ${printIp(source)} ${printIp(destination)} ${fragment?.protocol} ${fragment?.id}`
}

/** Both ends with their ports, the one behind the interface first; undefined for what belongs to no connection. */
function connectionKey(direction: Direction, { source, destination, transport }: WholePacket): string | undefined {
  const { about } = transport
  if (about !== undefined) return innerKey(direction === 'ingress' ? 'egress' : 'ingress', about)
  const numbers = { tcp: 6, udp: 17, sctp: 132, icmp: 1, icmpv6: 58 } as const
  return innerKey(direction, { ...transport, source, destination, protocol: numbers[transport.protocol] })
}

function innerKey(direction: Direction, packet: ParsedInner): string | undefined {
  const { source, destination, protocol, sourcePort, destinationPort, echo } = packet
  const isLocal = direction === 'egress'
  const ends = isLocal ? [source, destination] : [destination, source]
  const text = `${protocol} ${ends.map(printIp).join(' ')}`
  if (echo !== undefined) return `${text} echo ${echo.id} ${echo.asks} ${isLocal !== echo.isAnswer}`
  if (sourcePort === undefined) return undefined
  return `${text} ${isLocal ? `${sourcePort} ${destinationPort}` : `${destinationPort} ${sourcePort}`}`
}

/** A TCP connection that is met without its SYN is taken for established. */
function firstSeen({ protocol, signals }: ParsedTransport): Seen {
  const isMiddle = protocol === 'tcp' && !signals.has('opens')
  return {
    answered: isMiddle,
    established: isMiddle,
    finished: { opener: false, other: false },
    acknowledged: { opener: false, other: false },
    reset: false,
  }
}

function refresh(row: Connection, packet: ReferencePacket, { signals, about }: ParsedTransport): void {
  if (about === undefined || row.protocol !== 'tcp')
    learn(row, packet.direction === row.opener ? 'opener' : 'other', signals)
  row.until = packet.seconds + timeoutOf(row)
}

function learn({ seen, protocol }: Connection, side: 'opener' | 'other', signals: ReadonlySet<Signal>): void {
  const isTcp = protocol === 'tcp'
  if (side === 'other' && (!isTcp || signals.has('answers'))) seen.answered = true
  if (side === 'opener' && signals.has('acknowledges') && seen.answered) seen.established = true
  const peer = side === 'opener' ? 'other' : 'opener'
  if (signals.has('acknowledges') && seen.finished[peer]) seen.acknowledged[peer] = true
  if (signals.has('finishes')) seen.finished[side] = true
  if (signals.has('resets')) seen.reset = true
}

function timeoutOf({ protocol, seen }: Connection): number {
  if (protocol === 'icmp' || protocol === 'icmpv6') return timeoutSeconds.icmp
  if (protocol === 'udp') return seen.answered ? timeoutSeconds.udp.answered : timeoutSeconds.udp.unanswered
  if (protocol === 'sctp') {
    if (seen.reset) return timeoutSeconds.sctp.closed
    return seen.answered ? timeoutSeconds.sctp.answered : timeoutSeconds.sctp.unanswered
  }
  return tcpTimeout(seen)
}

function tcpTimeout({ answered, established, finished, acknowledged, reset }: Seen): number {
  const times = timeoutSeconds.tcp
  if (reset) return times.closed
  if (finished.opener && finished.other) {
    return acknowledged.opener && acknowledged.other ? times.timeWait : times.lastAck
  }
  if (finished.opener || finished.other) {
    return acknowledged.opener || acknowledged.other ? times.closeWait : times.finWait
  }
  if (established) return times.established
  return answered ? times.synReceived : times.synSent
}
