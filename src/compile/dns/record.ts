/** DNS records, questions and replies as values; text is the form of zone files and dig. */

type Owned = { readonly name: string; readonly ttl: number }

export type AddressRecord = Owned & { readonly type: 'A' | 'AAAA'; readonly address: string }
export type PointerRecord = Owned & { readonly type: 'CNAME' | 'PTR' | 'NS'; readonly target: string }
export type ServiceRecord = Owned & {
  readonly type: 'SRV'
  readonly priority: number
  readonly weight: number
  readonly port: number
  readonly target: string
}
export type TextRecord = Owned & { readonly type: 'TXT'; readonly text: string }
export type StartRecord = Owned & {
  readonly type: 'SOA'
  readonly nameserver: string
  readonly mailbox: string
  readonly serial: number
  readonly refresh: number
  readonly retry: number
  readonly expire: number
  readonly minimum: number
}

export type DnsRecord = AddressRecord | PointerRecord | ServiceRecord | TextRecord | StartRecord

export type Rcode = 'NOERROR' | 'FORMERR' | 'SERVFAIL' | 'NXDOMAIN' | 'NOTIMP' | 'REFUSED'

/** Who asks: the pod's namespace, and its address when it has one. */
export type Client = { readonly namespace?: string; readonly address?: string }

/** `name` has its closing dot and the asked case; `type` is `A`, `SRV`, `TYPE65` …; `depth` counts lookups within lookups. */
export type Question = {
  readonly name: string
  readonly type: string
  readonly client?: Client
  readonly depth?: number
}

/** Where a question left the cluster: nobody in it can tell what comes back. */
export type Forwarded = { readonly name: string; readonly to: readonly string[] }

export type Reply = {
  readonly rcode: Rcode
  readonly answers: readonly DnsRecord[]
  readonly authority: readonly DnsRecord[]
  readonly additional: readonly DnsRecord[]
  readonly isAuthoritative: boolean
  /** The plugin that decided. */
  readonly by: string
  readonly because: string
  readonly forwarded?: Forwarded
  /** What Portolan does not know but would have to, such as plugins that may answer first. */
  readonly unsure?: readonly string[]
}

/** A reply without records. */
export function emptyReply(rcode: Rcode, by: string, because: string): Reply {
  return { rcode, answers: [], authority: [], additional: [], isAuthoritative: false, by, because }
}

/** A reply that another plugin's would have to be known for. */
export function withDoubt(reply: Reply, doubt: string): Reply {
  return { ...reply, unsure: [doubt, ...(reply.unsure ?? []).filter((other) => other !== doubt)] }
}

/** The record's data as dig prints it: `10.96.0.20`, `0 100 80 web.shop.svc.cluster.local.`. */
export function printRecordData(record: DnsRecord): string {
  switch (record.type) {
    case 'A':
    case 'AAAA':
      return record.address
    case 'CNAME':
    case 'PTR':
    case 'NS':
      return record.target
    case 'SRV':
      return `${record.priority} ${record.weight} ${record.port} ${record.target}`
    case 'TXT':
      return `"${record.text.replaceAll(/(["\\])/g, '\\$1')}"`
    case 'SOA': {
      const { nameserver, mailbox, serial, refresh, retry, expire, minimum } = record
      return `${nameserver} ${mailbox} ${serial} ${refresh} ${retry} ${expire} ${minimum}`
    }
    default:
      return record satisfies never
  }
}

/** One line of a zone file. */
export function printRecord(record: DnsRecord): string {
  return `${record.name} ${record.ttl} IN ${record.type} ${printRecordData(record)}`
}
