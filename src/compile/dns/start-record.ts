/** The SOA record that stands in every negative answer. */
import type { StartRecord } from './record'

/** CoreDNS's serial is the time of the last change, which the input does not hold. */
const serial = 1

export function startRecord(zone: string, ttl: number): StartRecord {
  const below = zone === '.' ? '' : zone
  return {
    type: 'SOA',
    name: zone,
    ttl: Math.min(ttl, 300),
    nameserver: `ns.dns.${below}`,
    mailbox: `hostmaster.${below}`,
    serial,
    refresh: 7200,
    retry: 1800,
    expire: 86400,
    minimum: ttl,
  }
}
