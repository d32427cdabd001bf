/** The numbers of DNS: replies, types and classes. */
import type { Rcode } from '#compile/dns/record'

export const rcodes: Readonly<Record<Rcode, number>> = {
  NOERROR: 0,
  FORMERR: 1,
  SERVFAIL: 2,
  NXDOMAIN: 3,
  NOTIMP: 4,
  REFUSED: 5,
}

/** BADVERS: its upper bits stand in the OPT record. */
export const badVersion = 16

export const classIn = 1

export const typeNumbers: Readonly<Record<string, number>> = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  OPT: 41,
  SVCB: 64,
  HTTPS: 65,
  IXFR: 251,
  AXFR: 252,
  ANY: 255,
}

const typeNames = new Map(Object.entries(typeNumbers).map(([name, number]) => [number, name]))

export function typeName(number: number): string {
  return typeNames.get(number) ?? `TYPE${number}`
}
