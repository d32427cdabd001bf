/** A reply on the wire: names shortened, cut at a record when it is too long, as CoreDNS cuts it (request/request.go, Scrub). */
import type DNS from 'dns2'
import { Packet } from 'dns2'
import type { DnsRecord, Reply } from '#compile/dns/record'
import { classIn, rcodes, typeNumbers } from './codes'
import type { Query } from './read-query'

/** The header's flags and the reply's code, which may have upper bits when there is an OPT record. */
export type ReplyHeader = { readonly rcode: number; readonly isAuthoritative?: boolean; readonly isRecursive?: boolean }

/** A reply with records, at most `most` bytes long; answers that do not fit set the flag TC. */
export function writeReply(query: Query, reply: Reply, most: number): Buffer {
  const { answers, authority, additional } = reply
  const header = {
    rcode: rcodes[reply.rcode],
    isAuthoritative: reply.isAuthoritative,
    isRecursive: reply.forwarded !== undefined,
  }
  return writeMessage(query, header, { sections: [answers, authority, additional], most })
}

/** A reply that says no more than its code. */
export function writeRefusal(query: Query, rcode: number): Buffer {
  return writeMessage(query, { rcode }, { sections: [], most: 512 })
}

/** A message that could not be read has only its header to answer to. */
export function writeHeader({ id, rd, opcode }: DNS.Packet.Header, rcode: number): Buffer {
  const isKnown = rcode === rcodes.NOTIMP
  const counts = { qdcount: 0, ancount: 0, nscount: 0, arcount: 0 }
  return new Packet.Header({ id, qr: 1, opcode: isKnown ? opcode : 0, rd, rcode, ...counts }).toBuffer()
}

type Body = { readonly sections: readonly (readonly DnsRecord[])[]; readonly most: number }

const headerSize = 12
const optSize = 11

function writeMessage(query: Query, header: ReplyHeader, { sections, most }: Body): Buffer {
  const writer = startWriter()
  writer.write(0, headerSize * 8)
  Packet.Question.encode(query.question, writer)
  const room = most - (query.edns === undefined ? 0 : optSize)
  const { counts, end } = writeSections(writer, sections, room)
  const isCut = (counts[0] ?? 0) < (sections[0]?.length ?? 0)
  const head = headerOf(query, header, isCut)
  head.qdcount = 1
  head.ancount = counts[0] ?? 0
  head.nscount = counts[1] ?? 0
  head.arcount = (counts[2] ?? 0) + (query.edns === undefined ? 0 : 1)
  const body = bytesOf(writer.buffer.slice(headerSize * 8, end))
  return Buffer.concat([
    head.toBuffer(),
    body,
    query.edns === undefined ? Buffer.alloc(0) : optRecord(query.edns, header),
  ])
}

/** Every record that fits in whole, with how many of each section they are; nothing after the first that does not. */
function writeSections(
  writer: DNS.Packet.Writer,
  sections: Body['sections'],
  room: number,
): { readonly counts: readonly number[]; readonly end: number } {
  const counts = sections.map(() => 0)
  let end = writer.buffer.length
  for (const [index, records] of sections.entries()) {
    for (const record of records) {
      Packet.Resource.encode(resourceOf(record), writer)
      if (writer.buffer.length > room * 8) return { counts, end }
      end = writer.buffer.length
      counts[index] = (counts[index] ?? 0) + 1
    }
  }
  return { counts, end }
}

/** The library shortens names when it finds a table of them; the bytes are taken once, at the end. */
function startWriter(): DNS.Packet.Writer {
  const nothing = Buffer.alloc(0)
  return Object.assign(new Packet.Writer(), { names: new Map<string, number>(), toBuffer: () => nothing })
}

function bytesOf(bits: number[]): Buffer {
  return Object.assign(new Packet.Writer(), { buffer: bits }).toBuffer()
}

function headerOf({ header }: Query, reply: ReplyHeader, isCut: boolean): DNS.Packet.Header {
  return new Packet.Header({
    id: header.id,
    qr: 1,
    opcode: header.opcode,
    aa: reply.isAuthoritative === true ? 1 : 0,
    tc: isCut ? 1 : 0,
    rd: header.rd,
    ra: reply.isRecursive === true ? 1 : 0,
    rcode: reply.rcode & 15,
  })
}

/** The asker's own OPT record comes back, without its options. */
function optRecord(edns: NonNullable<Query['edns']>, { rcode }: ReplyHeader): Buffer {
  const record = Buffer.alloc(optSize)
  record.writeUInt16BE(typeNumbers.OPT ?? 41, 1)
  record.writeUInt16BE(edns.payloadSize, 3)
  record.writeUInt8(rcode >>> 4, 5)
  record.writeUInt16BE(edns.isDnssecWanted ? 0x8000 : 0, 7)
  return record
}

function resourceOf(record: DnsRecord): DNS.Packet.Resource {
  const owned = { name: record.name, ttl: record.ttl, class: classIn, type: typeNumbers[record.type] ?? 0 }
  return new Packet.Resource({ ...owned, ...dataOf(record) })
}

function dataOf(record: DnsRecord): Partial<DNS.Packet.Resource> {
  switch (record.type) {
    case 'A':
    case 'AAAA':
      return { address: record.address }
    case 'CNAME':
    case 'PTR':
      return { domain: record.target }
    case 'NS':
      return { ns: record.target }
    case 'TXT':
      return { data: record.text.match(/[\s\S]{1,255}/g) ?? [''] }
    case 'SRV': {
      const { priority, weight, port, target } = record
      return { priority, weight, port, target }
    }
    case 'SOA': {
      const { nameserver: primary, mailbox: admin, serial, refresh, retry, expire: expiration, minimum } = record
      return { primary, admin, serial, refresh, retry, expiration, minimum }
    }
    default:
      return record satisfies never
  }
}
