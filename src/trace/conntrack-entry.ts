/** Connections as the kernel tracks them, read from and written as `conntrack -L` prints them (conntrack-tools 1.4, libnetfilter_conntrack snprintf_default.c). */
import { canonicalIp } from '#base/ip'

/** One direction of a connection; ports are absent where the protocol has none. */
export type ConntrackTuple = {
  readonly source: string
  readonly destination: string
  readonly sourcePort?: number
  readonly destinationPort?: number
  readonly icmp?: { readonly type: number; readonly code: number; readonly id: number }
}

export type ConntrackEntry = {
  readonly protocol: string
  /** TCP and SCTP alone have one: `ESTABLISHED`. */
  readonly state?: string
  readonly original: ConntrackTuple
  /** Who answers, and to whom: this shows the translation of both addresses. */
  readonly reply: ConntrackTuple
  readonly isUnreplied: boolean
  readonly line: number
  /** As it was printed. */
  readonly text: string
}

export type ConntrackLines = { readonly entries: readonly ConntrackEntry[]; readonly badLines: readonly number[] }

/** Also of `-o extended`, `-E` and /proc/net/nf_conntrack. Never throws: lines that are no entry are told by number. */
export function parseConntrackLines(text: string): ConntrackLines {
  const entries: ConntrackEntry[] = []
  const badLines: number[] = []
  for (const [at, row] of text.split('\n').entries()) {
    const line = row.trim()
    if (line === '' || isAside(line)) continue
    const entry = parseEntry(line, at + 1)
    if (entry === undefined) badLines.push(at + 1)
    else entries.push(entry)
  }
  return { entries, badLines }
}

/** What is no entry, or the end of one: the summary of the program, a prompt, an event that tells of a removal. */
function isAside(line: string): boolean {
  return line.startsWith('conntrack v') || line.startsWith('#') || line.startsWith('$') || line.includes('[DESTROY]')
}

const protocolNames = new Set(['tcp', 'udp', 'sctp', 'icmp', 'icmpv6', 'dccp', 'udplite', 'gre', 'unknown'])

function parseEntry(line: string, number: number): ConntrackEntry | undefined {
  const words = line.split(/\s+/)
  const start = words.findIndex((word) => word.startsWith('src='))
  const protocol = words.slice(0, Math.max(start, 0)).find((word) => protocolNames.has(word))
  if (protocol === undefined) return undefined
  const second = words.findIndex((word, at) => at > start && word.startsWith('src='))
  const original = parseTuple(words.slice(start, second < 0 ? undefined : second))
  const reply = second < 0 ? undefined : parseTuple(words.slice(second))
  if (original === undefined || reply === undefined) return undefined
  const state = words.slice(0, start).find((word) => /^[A-Z][A-Z0-9_]+$/.test(word))
  const isUnreplied = words.includes('[UNREPLIED]')
  return { protocol, ...(state !== undefined && { state }), original, reply, isUnreplied, line: number, text: line }
}

function parseTuple(words: readonly string[]): ConntrackTuple | undefined {
  const value = (key: string): string | undefined =>
    words.find((word) => word.startsWith(`${key}=`))?.slice(key.length + 1)
  const source = canonicalIp(value('src') ?? '')
  const destination = canonicalIp(value('dst') ?? '')
  if (source === undefined || destination === undefined) return undefined
  const [sourcePort, destinationPort] = [portOf(value('sport')), portOf(value('dport'))]
  const [type, code, id] = [portOf(value('type')), portOf(value('code')), portOf(value('id'))]
  return {
    source,
    destination,
    ...(sourcePort !== undefined && { sourcePort }),
    ...(destinationPort !== undefined && { destinationPort }),
    ...(type !== undefined && code !== undefined && id !== undefined && { icmp: { type, code, id } }),
  }
}

function portOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,5}$/.test(text) ? Number(text) : undefined
}

const protocolNumbers: Readonly<Record<string, number>> = { tcp: 6, udp: 17, sctp: 132, icmp: 1, icmpv6: 58 }

/** Seconds until the kernel forgets it, as the defaults of nf_conntrack_proto_*.c have it. */
export function conntrackTimeout({ protocol, state, isUnreplied }: Omit<ConntrackEntry, 'line' | 'text'>): number {
  const byState: Readonly<Record<string, number>> = {
    SYN_SENT: 120,
    SYN_RECV: 60,
    ESTABLISHED: 432_000,
    COOKIE_WAIT: 3,
    COOKIE_ECHOED: 3,
  }
  if (state !== undefined) return byState[state] ?? 120
  return protocol === 'udp' && !isUnreplied ? 120 : 30
}

export function printConntrackEntry(entry: Omit<ConntrackEntry, 'line' | 'text'>): string {
  const { protocol, state, original, reply, isUnreplied } = entry
  const head = `${protocol.padEnd(8)} ${protocolNumbers[protocol] ?? 0} ${conntrackTimeout(entry)}`
  const words = [
    ...(state === undefined ? [] : [state]),
    printTuple(original),
    ...(isUnreplied ? ['[UNREPLIED]'] : []),
    printTuple(reply),
    'mark=0 use=1',
  ]
  return `${head} ${words.join(' ')}`
}

function printTuple({ source, destination, sourcePort, destinationPort, icmp }: ConntrackTuple): string {
  const ports =
    icmp === undefined
      ? sourcePort === undefined || destinationPort === undefined
        ? ''
        : ` sport=${sourcePort} dport=${destinationPort}`
      : ` type=${icmp.type} code=${icmp.code} id=${icmp.id}`
  return `src=${source} dst=${destination}${ports}`
}
