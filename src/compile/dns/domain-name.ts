/** Domain names: written with the closing dot, compared without regard to case, and the names that stand for addresses. */
import { canonicalIp, ipFromBigint, parseIp, printIp } from '#base/ip'
import { type Prefix, parsePrefix } from '#base/prefix'

/** The name with its closing dot; the root is `.`. */
export function fqdn(name: string): string {
  return name.endsWith('.') ? name : `${name}.`
}

/** DNS knows only ASCII letters as equal in both cases. */
export function foldName(name: string): string {
  return fqdn(name).replace(/[A-Z]+/g, (letters) => letters.toLowerCase())
}

/** The labels, the root left out. */
export function labelsOf(name: string): readonly string[] {
  const bare = name.endsWith('.') ? name.slice(0, -1) : name
  return bare === '' ? [] : bare.split('.')
}

/** Both names folded: true for the zone itself and for every name below it. */
export function isWithin(name: string, zone: string): boolean {
  return zone === '.' || name === zone || name.endsWith(`.${zone}`)
}

/** The longest of the zones that the folded name is in. */
export function matchZone(name: string, zones: readonly string[]): string | undefined {
  let best: string | undefined
  for (const zone of zones) if (isWithin(name, zone) && zone.length > (best?.length ?? 0)) best = zone
  return best
}

export function isReverseZone(zone: string): boolean {
  return isWithin(zone, ipv4Zone) || isWithin(zone, ipv6Zone)
}

const ipv4Zone = 'in-addr.arpa.'
const ipv6Zone = 'ip6.arpa.'

/** `1.10.96.10.in-addr.arpa.` for a canonical address. */
export function reverseName(address: string): string {
  const ip = parseIp(address)
  if (ip === undefined) return fqdn(address)
  if (ip.family === 'ipv4') return `${address.split('.').reverse().join('.')}.${ipv4Zone}`
  const digits = ip.words.map((word) => word.toString(16).padStart(8, '0')).join('')
  return `${[...digits].reverse().join('.')}.${ipv6Zone}`
}

/** The canonical address that a folded reverse name stands for; undefined for any other name, and for a part of one. */
export function addressOfReverse(name: string): string | undefined {
  if (name.endsWith(`.${ipv4Zone}`)) {
    return canonicalIp(
      name
        .slice(0, -ipv4Zone.length - 1)
        .split('.')
        .reverse()
        .join('.'),
    )
  }
  if (!name.endsWith(`.${ipv6Zone}`)) return undefined
  const digits = name
    .slice(0, -ipv6Zone.length - 1)
    .split('.')
    .reverse()
  if (digits.length !== 32 || digits.some((digit) => !/^[0-9a-f]$/.test(digit))) return undefined
  return printIp(ipFromBigint('ipv6', BigInt(`0x${digits.join('')}`)))
}

/** The zones of a Corefile's origin: a name, or the reverse zones of a range, split at the next octet or nibble. */
export function zonesOfOrigin(origin: string): readonly string[] {
  const prefix = parsePrefix(origin)?.prefix
  if (prefix === undefined) return [foldName(origin)]
  const step = prefix.ip.family === 'ipv4' ? 8 : 4
  const length = Math.min(Math.ceil(prefix.length / step) * step, step === 8 ? 32 : 128)
  return Array.from({ length: 2 ** (length - prefix.length) }, (_, index) => reverseZone(prefix, length, index))
}

function reverseZone({ ip }: Prefix, length: number, index: number): string {
  const bits = ip.family === 'ipv4' ? 32 : 128
  const value = ip.words.reduce((sum, word) => (sum << 32n) | BigInt(word), 0n)
  const address = printIp(ipFromBigint(ip.family, value + (BigInt(index) << BigInt(bits - length))))
  const kept = length / (bits === 32 ? 8 : 4)
  const labels = labelsOf(reverseName(address))
  return `${labels.slice(labels.length - 2 - kept).join('.')}.`
}

/** Why a typed name cannot be asked for, as a sentence; undefined when it can. */
export function explainBadName(name: string): string | undefined {
  if (name === '' || name === '.') return 'a name has at least one label'
  const labels = labelsOf(name)
  if (labels.some((label) => label === '')) return `"${name}" has an empty label: two dots stand side by side`
  const long = labels.find((label) => label.length > 63)
  if (long !== undefined) return `the label "${long.slice(0, 20)}…" has ${long.length} characters, and 63 is the most`
  if (fqdn(name).length > 254) return `the name has ${name.length} characters, and 253 is the most`
  const odd = /[^\x21-\x7e]/.exec(name)?.[0]
  if (odd !== undefined) return `"${name}" holds ${odd === ' ' ? 'a blank' : `"${odd}"`}, which no name on the wire has`
  return undefined
}
