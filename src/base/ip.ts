/** IP addresses: a strict parser, and the canonical text that Go and the kernel's tools print. */

export type Family = 'ipv4' | 'ipv6'

/** `words` are unsigned 32-bit, most significant first: one for IPv4, four for IPv6. */
export type Ip = { readonly family: Family; readonly words: readonly number[] }

/** Strict: four decimal parts without leading zeros, or RFC 4291 text without a zone. IPv4-mapped IPv6 is refused. */
export function parseIp(text: string): Ip | undefined {
  if (text.includes(':')) return parseIpv6(text)
  const word = parseIpv4Word(text)
  return word === undefined ? undefined : { family: 'ipv4', words: [word] }
}

/** The canonical text of an address, or undefined when it is not one. Fast for text that is canonical already. */
export function canonicalIp(text: string): string | undefined {
  const ip = parseIp(text)
  if (ip === undefined) return undefined
  return ip.family === 'ipv4' ? text : printIp(ip)
}

export function familyOf(canonical: string): Family {
  return canonical.includes(':') ? 'ipv6' : 'ipv4'
}

/** Why `parseIp` refuses a text, as a sentence for a person, with the remedy. */
export function explainBadIp(text: string): string {
  if (/^[0-9.]+$/.test(text)) {
    const parts = text.split('.')
    if (parts.length === 4 && parts.some((part) => /^0\d/.test(part))) {
      const plain = parts.map((part) => part.replace(/^0+(?=\d)/, '')).join('.')
      return `"${text}" has a part with a leading zero, which some programs read as octal; write ${plain} if that is meant`
    }
    return `"${text}" is not an IPv4 address: it takes four numbers from 0 to 255`
  }
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(text)
  if (mapped) return `"${text}" is an IPv4 address written as IPv6; write ${mapped[1]}`
  if (text.includes('%')) return `"${text}" carries a zone; write the address without "%…"`
  if (text.includes('/')) return `"${text}" is a range, where one address is wanted`
  return `"${text}" is not an IP address`
}

export function printIp(ip: Ip): string {
  return ip.family === 'ipv4' ? printIpv4(ip.words[0] ?? 0) : printIpv6(ip.words)
}

export function isSameIp(a: Ip, b: Ip): boolean {
  return a.words.length === b.words.length && a.words.every((word, index) => word === b.words[index])
}

/** Negative, zero or positive: IPv4 before IPv6, then by number. */
export function compareIp(a: Ip, b: Ip): number {
  if (a.words.length !== b.words.length) return a.words.length - b.words.length
  for (let index = 0; index < a.words.length; index++) {
    const difference = (a.words[index] ?? 0) - (b.words[index] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}

export function ipToBigint(ip: Ip): bigint {
  return ip.words.reduce((sum, word) => (sum << 32n) | BigInt(word), 0n)
}

export function ipFromBigint(family: Family, value: bigint): Ip {
  const count = family === 'ipv4' ? 1 : 4
  const words = Array.from({ length: count }, (_, index) =>
    Number((value >> BigInt(32 * (count - 1 - index))) & 0xffffffffn),
  )
  return { family, words }
}

/** `ip:port`, with brackets around an IPv6 address. */
export function printEndpoint(ip: string, port: number): string {
  return ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`
}

/** Reads `ip`, `ip:port`, `[ip]` and `[ip]:port`. */
export function parseEndpoint(text: string): { readonly ip: Ip; readonly port?: number } | undefined {
  const match =
    /^\[([^\]]+)\](?::(\d{1,5}))?$/.exec(text) ?? /^([^:]+)(?::(\d{1,5}))?$/.exec(text) ?? /^(.+)$/.exec(text)
  const ip = match?.[1] === undefined ? undefined : parseIp(match[1])
  if (ip === undefined || match === null) return undefined
  if (match[2] === undefined) return { ip }
  const port = Number(match[2])
  return port <= 65535 ? { ip, port } : undefined
}

function printIpv4(word: number): string {
  return `${word >>> 24}.${(word >>> 16) & 255}.${(word >>> 8) & 255}.${word & 255}`
}

/** RFC 5952: lower case, the longest run of two or more zero groups becomes `::`. */
function printIpv6(words: readonly number[]): string {
  const groups = words.flatMap((word) => [word >>> 16, word & 0xffff])
  const { start, length } = longestZeroRun(groups)
  const hex = groups.map((group) => group.toString(16))
  if (length < 2) return hex.join(':')
  return `${hex.slice(0, start).join(':')}::${hex.slice(start + length).join(':')}`
}

function longestZeroRun(groups: readonly number[]): { start: number; length: number } {
  let best = { start: 0, length: 0 }
  for (let start = 0; start < groups.length; start++) {
    let end = start
    while (groups[end] === 0) end++
    if (end - start > best.length) best = { start, length: end - start }
  }
  return best
}

function parseIpv4Word(text: string): number | undefined {
  let word = 0
  let part = -1
  let parts = 0
  for (let index = 0; index <= text.length; index++) {
    const code = index === text.length ? 46 : text.charCodeAt(index)
    if (code === 46) {
      if (part < 0) return undefined
      word = word * 256 + part
      part = -1
      parts++
    } else if (code >= 48 && code <= 57 && part !== 0) {
      part = Math.max(part, 0) * 10 + code - 48
      if (part > 255) return undefined
    } else return undefined
  }
  return parts === 4 ? word : undefined
}

function parseIpv6(text: string): Ip | undefined {
  const halves = text.split('::')
  if (halves.length > 2) return undefined
  const head = parseGroups(halves[0] ?? '', halves.length === 1)
  const tail = halves.length === 2 ? parseGroups(halves[1] ?? '', true) : []
  if (head === undefined || tail === undefined) return undefined
  const missing = 8 - head.length - tail.length
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined
  const groups = [...head, ...Array<number>(missing).fill(0), ...tail]
  const words = [0, 2, 4, 6].map((index) => (((groups[index] ?? 0) << 16) | (groups[index + 1] ?? 0)) >>> 0)
  const isMapped = words[0] === 0 && words[1] === 0 && words[2] === 0xffff
  return isMapped ? undefined : { family: 'ipv6', words }
}

function parseGroups(text: string, mayEndInIpv4: boolean): number[] | undefined {
  if (text === '') return []
  const groups: number[] = []
  const parts = text.split(':')
  for (const [index, part] of parts.entries()) {
    if (/^[0-9a-f]{1,4}$/i.test(part)) {
      groups.push(Number.parseInt(part, 16))
      continue
    }
    const word = mayEndInIpv4 && index === parts.length - 1 ? parseIpv4Word(part) : undefined
    if (word === undefined) return undefined
    groups.push(word >>> 16, word & 0xffff)
  }
  return groups
}
