/** The address and port ranges of DNAT, SNAT, REDIRECT and MASQUERADE, as iptables writes them. */
import { compareIp, type Ip, ipFromBigint, ipToBigint, parseIp, printEndpoint, printIp } from '#base/ip'

/** `from` is absent when only ports are given; `ports` is text such as `80` or `8000-8010`. */
export type NatRange = { readonly from?: Ip; readonly to?: Ip; readonly ports?: string }

/** Reads `1.2.3.4`, `1.2.3.4-1.2.3.9:80-90`, `:80`, `fd00::1`, `[fd00::1]:80`, `[fd00::1-fd00::9]:80`. */
export function parseNatRange(text: string): NatRange | undefined {
  const bracketed = /^\[([^\]]+)\](?:-\[([^\]]+)\])?(?::([\d/-]+))?$/.exec(text)
  if (bracketed) {
    const both = bracketed[2] === undefined ? (bracketed[1] ?? '') : `${bracketed[1]}-${bracketed[2]}`
    return rangeOf(both, bracketed[3])
  }
  if ((text.match(/:/g)?.length ?? 0) > 1) return rangeOf(text, undefined)
  const colon = text.indexOf(':')
  return colon < 0 ? rangeOf(text, undefined) : rangeOf(text.slice(0, colon), text.slice(colon + 1))
}

function rangeOf(addresses: string, ports: string | undefined): NatRange | undefined {
  if (ports !== undefined && !/^\d{1,5}(-\d{1,5}(\/\d{1,5})?)?$/.test(ports)) return undefined
  const portPart = ports === undefined ? {} : { ports }
  if (addresses === '') return ports === undefined ? undefined : portPart
  const [first = '', last = first] = addresses.split('-')
  const from = parseIp(first)
  const to = parseIp(last)
  if (from === undefined || to === undefined || from.family !== to.family || compareIp(from, to) > 0) return undefined
  return { from, to, ...portPart }
}

/** The most addresses of one range that become targets of their own. */
const mostAddresses = 256

/** Every address of the range, or undefined when there are too many to list. */
export function addressesOf(range: NatRange): readonly Ip[] | undefined {
  const { from, to } = range
  if (from === undefined || to === undefined) return []
  const first = ipToBigint(from)
  const count = ipToBigint(to) - first + 1n
  if (count > BigInt(mostAddresses)) return undefined
  return Array.from({ length: Number(count) }, (_, index) => ipFromBigint(from.family, first + BigInt(index)))
}

/** The one port of `ports`, undefined for a range of them. */
export function singlePort(ports: string | undefined): number | undefined {
  return ports !== undefined && /^\d+$/.test(ports) ? Number(ports) : undefined
}

export function printTarget(ip: Ip, port: number | undefined): string {
  return port === undefined ? printIp(ip) : printEndpoint(printIp(ip), port)
}
