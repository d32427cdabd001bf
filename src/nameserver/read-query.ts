/** One DNS message from outside, judged as CoreDNS's library judges it before any plugin sees it (miekg/dns, acceptfunc.go). */
import type DNS from 'dns2'
import { Packet } from 'dns2'
import { rcodes } from './codes'

type Header = DNS.Packet.Header

export type Query = {
  readonly header: Header
  readonly question: DNS.Packet.Question
  /** The OPT record of EDNS, when there is one. */
  readonly edns?: { readonly version: number; readonly payloadSize: number; readonly isDnssecWanted: boolean }
}

export type Judged =
  | { readonly kind: 'query'; readonly query: Query }
  /** No reply: it is no message, or a reply itself, or nobody could read the answer. */
  | { readonly kind: 'drop' }
  | { readonly kind: 'refuse'; readonly header: Header; readonly rcode: number }

const headerSize = 12
const opcodes = { query: 0, notify: 4 }

export function readQuery(message: Buffer): Judged {
  if (message.length < headerSize) return { kind: 'drop' }
  const reader = new Packet.Reader(message)
  const header = Packet.Header.parse(reader)
  if (header.qr === 1) return { kind: 'drop' }
  if (header.opcode !== opcodes.query && header.opcode !== opcodes.notify) {
    return { kind: 'refuse', header, rcode: rcodes.NOTIMP }
  }
  const { qdcount, ancount, nscount, arcount } = header
  const malformed: Judged = { kind: 'refuse', header, rcode: rcodes.FORMERR }
  if (qdcount !== 1 || ancount > 1 || nscount > 1 || arcount > 2) return malformed
  try {
    const question = Packet.Question.decode(reader)
    if (isPast(reader, message)) return malformed
    if (hasDotInLabel(message, headerSize)) return { kind: 'drop' }
    const records = Array.from({ length: ancount + nscount + arcount }, () => {
      const record = Packet.Resource.decode(reader)
      return isPast(reader, message) ? undefined : record
    })
    if (records.includes(undefined)) return malformed
    const edns = records.slice(ancount + nscount).find((record) => record?.type === Packet.TYPE.EDNS)
    return { kind: 'query', query: { header, question, ...(edns !== undefined && { edns: ednsOf(edns) }) } }
  } catch {
    return malformed
  }
}

/** The reader takes bits beyond the end for zeros. */
function isPast(reader: DNS.Packet.Reader, message: Buffer): boolean {
  return reader.offset > message.length * 8
}

/** A dot inside a label would be read as the border of two; no name of a cluster has one. */
function hasDotInLabel(message: Buffer, start: number): boolean {
  for (let at = start; at < message.length; ) {
    const length = message[at] ?? 0
    if (length === 0 || length > 63) return false
    if (message.subarray(at + 1, at + 1 + length).includes(0x2e)) return true
    at += length + 1
  }
  return false
}

function ednsOf({ class: payloadSize, ttl }: DNS.Packet.Resource): NonNullable<Query['edns']> {
  return { version: (ttl >>> 16) & 0xff, payloadSize, isDnssecWanted: (ttl & 0x8000) !== 0 }
}
