/** The address and port ranges of DNAT, SNAT, REDIRECT and MASQUERADE, as iptables writes them. */
import { compareIp, type Ip, ipFromBigint, ipToBigint, parseIp, printIp } from '#base/ip'

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

/**
 * The port that the kernel takes of `80`, `8000-8010` or `8000-8010/80`: one that is in the range already stays, else the
 * first, or the one as far into the range as the port is beyond its base (nf_nat_l4proto_unique_tuple in nf_nat_core.c),
 * unless another connection holds it. Undefined where a random one is taken.
 */
export function portIn(ports: string | undefined, port: number | undefined, isRandom: boolean): number | undefined {
  const match = /^(\d+)(?:-(\d+)(?:\/(\d+))?)?$/.exec(ports ?? '')
  if (match === null) return undefined
  const first = Number(match[1])
  const last = Number(match[2] ?? match[1])
  if (first === last) return first
  if (isRandom) return undefined
  if (port === undefined) return first
  if (match[3] !== undefined) return first + ((((port - Number(match[3])) & 0xffff) % (last - first + 1)) | 0)
  return port >= first && port <= last ? port : first
}

/** `ports` may be a range. */
export function printTarget(ip: Ip, ports: number | string | undefined): string {
  return ports === undefined ? printIp(ip) : printAtPort(printIp(ip), ports)
}

export function printAtPort(ip: string, ports: number | string): string {
  return ip.includes(':') ? `[${ip}]:${ports}` : `${ip}:${ports}`
}
