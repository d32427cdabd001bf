/** One line of a zone file as a record, for the types that DNS answers here have. */
import { canonicalIp } from '#base/ip'
import { fqdn } from './domain-name'
import type { DnsRecord } from './record'

/** Undefined for other types, and for text that is no record. Without a TTL it is an hour, as CoreDNS's parser has it. */
export function parseRecord(text: string): DnsRecord | undefined {
  const words = text.replaceAll(/[()]/g, ' ').trim().split(/\s+/)
  const [owner, ...rest] = words
  if (owner === undefined) return undefined
  let ttl = 3600
  let at = 0
  for (; at < rest.length; at++) {
    const word = rest[at] ?? ''
    if (/^\d+$/.test(word)) ttl = Number(word)
    else if (word.toUpperCase() !== 'IN') break
  }
  const type = rest[at]?.toUpperCase()
  return recordOf({ name: fqdn(owner), ttl }, type, rest.slice(at + 1))
}

function recordOf(
  owned: { readonly name: string; readonly ttl: number },
  type: string | undefined,
  data: readonly string[],
): DnsRecord | undefined {
  const [first = ''] = data
  if (type === 'A' || type === 'AAAA') {
    const address = canonicalIp(first)
    return address === undefined || address.includes(':') !== (type === 'AAAA')
      ? undefined
      : { ...owned, type, address }
  }
  if (first === '') return undefined
  if (type === 'CNAME' || type === 'PTR' || type === 'NS') return { ...owned, type, target: fqdn(first) }
  if (type === 'TXT') return { ...owned, type, text: data.join(' ').replaceAll(/^"|"$/g, '') }
  if (type === 'SRV') {
    const [priority, weight, port] = data.slice(0, 3).map(Number)
    const target = data[3]
    if (priority === undefined || weight === undefined || port === undefined || target === undefined) return undefined
    return { ...owned, type, priority, weight, port, target: fqdn(target) }
  }
  return type === 'SOA' ? startOf(owned, data) : undefined
}

function startOf(
  owned: { readonly name: string; readonly ttl: number },
  data: readonly string[],
): DnsRecord | undefined {
  const [nameserver, mailbox, ...texts] = data
  const [serial, refresh, retry, expire, minimum] = texts.map(Number)
  if (nameserver === undefined || mailbox === undefined) return undefined
  if (serial === undefined || refresh === undefined || retry === undefined || expire === undefined) return undefined
  if (minimum === undefined || texts.some((text) => !/^\d+$/.test(text))) return undefined
  const names = { nameserver: fqdn(nameserver), mailbox: fqdn(mailbox) }
  return { ...owned, type: 'SOA', ...names, serial, refresh, retry, expire, minimum }
}
