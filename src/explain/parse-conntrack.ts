/** The text of `conntrack -L` (also `-o extended`, `-E` and /proc/net/nf_conntrack) into tracked connections. */
import type { Finding } from '#base/finding'
import { canonicalIp } from '#base/ip'
import { countOf } from '#base/text'
import { findingCodes } from './findings'

/** One direction of a connection; ports are absent where the protocol has none. */
export type ConntrackTuple = {
  readonly source: string
  readonly destination: string
  readonly sourcePort?: number
  readonly destinationPort?: number
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
}

export type ConntrackTable = {
  readonly file: string
  readonly entries: readonly ConntrackEntry[]
  readonly findings: readonly Finding[]
}

/** Never throws: a line that is no entry is told once, with how many there are. */
export function parseConntrack(text: string, file: string): ConntrackTable {
  const entries: ConntrackEntry[] = []
  const bad: number[] = []
  for (const [at, row] of text.split('\n').entries()) {
    const line = row.trim()
    if (line === '' || isAside(line)) continue
    const entry = parseEntry(line, at + 1)
    if (entry === undefined) bad.push(at + 1)
    else entries.push(entry)
  }
  return { file, entries, findings: bad.length === 0 ? [] : [badLines(file, bad)] }
}

/** What is no entry, or the end of one: the summary of the program, a prompt, an event that tells of a removal. */
function isAside(line: string): boolean {
  return line.startsWith('conntrack v') || line.startsWith('#') || line.startsWith('$') || line.includes('[DESTROY]')
}

function badLines(file: string, bad: readonly number[]): Finding {
  const line = bad[0] ?? 1
  return {
    code: 'explain.conntrack-bad-line',
    severity: findingCodes['explain.conntrack-bad-line'].severity,
    message: `${countOf(bad.length, 'line')} that ${bad.length === 1 ? 'is' : 'are'} no tracked connection left out, the first in line ${line}`,
    origin: { file, line },
    hint: 'take the table with conntrack -L, without -o xml',
  }
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
  return { protocol, ...(state !== undefined && { state }), original, reply, isUnreplied, line: number }
}

function parseTuple(words: readonly string[]): ConntrackTuple | undefined {
  const value = (key: string): string | undefined =>
    words.find((word) => word.startsWith(`${key}=`))?.slice(key.length + 1)
  const source = canonicalIp(value('src') ?? '')
  const destination = canonicalIp(value('dst') ?? '')
  if (source === undefined || destination === undefined) return undefined
  const [sourcePort, destinationPort] = [portOf(value('sport')), portOf(value('dport'))]
  return {
    source,
    destination,
    ...(sourcePort !== undefined && { sourcePort }),
    ...(destinationPort !== undefined && { destinationPort }),
  }
}

function portOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,5}$/.test(text) ? Number(text) : undefined
}
