/** The CEL of the API server for our rules: a CEL engine, with the functions about networks that Kubernetes adds to it. */
import { isIPv4, isIPv6 } from 'node:net'
import { Environment } from '@marcbachmann/cel-js'

class Cidr {
  readonly family: 4 | 6
  readonly number: bigint
  readonly length: number

  constructor(family: 4 | 6, number: bigint, length: number) {
    this.family = family
    this.number = number
    this.length = length
  }
}

class Address {
  readonly version: 4 | 6

  constructor(version: 4 | 6) {
    this.version = version
  }
}

/** As Go's netip reads a prefix, less what Kubernetes refuses beside that: zones and IPv4-mapped IPv6. */
function cidrOf(text: string): Cidr | undefined {
  const [, address = '', digits = ''] = /^([^/]+)\/(0|[1-9]\d{0,2})$/.exec(text) ?? []
  const length = Number(digits)
  if (isIPv4(address)) return length > 32 ? undefined : new Cidr(4, ipv4Number(address), length)
  if (!isIPv6(address) || address.includes('%') || length > 128) return undefined
  const number = ipv6Number(address)
  return number >> 32n === 0xffffn ? undefined : new Cidr(6, number, length)
}

function ipv4Number(text: string): bigint {
  return text.split('.').reduce((sum, part) => sum * 256n + BigInt(part), 0n)
}

function ipv6Number(text: string): bigint {
  // The URL parser writes every address in one way, without dots.
  const [head = '', tail] = new URL(`http://[${text}]`).hostname.slice(1, -1).split('::')
  const groupsOf = (part: string): string[] => (part === '' ? [] : part.split(':'))
  const [before, after] = [groupsOf(head), groupsOf(tail ?? '')]
  const zeros = Array<string>(8 - before.length - after.length).fill('0')
  return [...before, ...zeros, ...after].reduce((sum, group) => (sum << 16n) | BigInt(`0x${group}`), 0n)
}

function masked({ family, number, length }: Cidr): Cidr {
  const host = BigInt((family === 4 ? 32 : 128) - length)
  return new Cidr(family, (number >> host) << host, length)
}

function needed(text: string): Cidr {
  const cidr = cidrOf(text)
  if (cidr === undefined) throw new Error(`${text} is no CIDR`)
  return cidr
}

const environment = new Environment({ unlistedVariablesAreDyn: true })
  .registerType('Cidr', Cidr)
  .registerType('Address', Address)
  .registerFunction('isCIDR(string): bool', (text: string) => cidrOf(text) !== undefined)
  .registerFunction('cidr(string): Cidr', needed)
  .registerFunction('Cidr.masked(): Cidr', masked)
  .registerFunction('Cidr.ip(): Address', ({ family }: Cidr) => new Address(family))
  .registerFunction('Address.family(): int', ({ version }: Address) => BigInt(version))
  .registerOperator(
    'Cidr == Cidr',
    (one: Cidr, other: Cidr) => one.number === other.number && one.length === other.length,
  )

/** Whether the rule holds of the value; throws where the API server would answer with an error. */
export function holdsByCel(rule: string, self: unknown): boolean {
  return environment.evaluate(rule, { self }) === true
}
