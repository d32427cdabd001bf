/** Single values of nftables: addresses, numbers and texts, and the patterns that rules and sets hold for them. */
import { compareIp, type Ip, isSameIp, parseIp, printIp } from '#base/ip'
import { containsIp, type Prefix, prefixOf, printPrefix } from '#base/prefix'
import type { Expression, Value } from '#compile/nftables/expression'
import { symbols } from '#compile/nftables/symbols'

export type Scalar = Ip | number | string

/** How constants are read where they stand: `type` is nft's own word for it (`inet_service`, `ct_state`). */
export type ScalarKind =
  | { readonly kind: 'address' }
  | { readonly kind: 'number'; readonly type: string }
  | { readonly kind: 'text' }
  | { readonly kind: 'interface' }

export type Pattern =
  | { readonly kind: 'one'; readonly value: Scalar }
  | { readonly kind: 'prefix'; readonly prefix: Prefix }
  | { readonly kind: 'range'; readonly from: Scalar; readonly to: Scalar }
  | { readonly kind: 'any' }

export function isIp(value: Scalar): value is Ip {
  return typeof value === 'object'
}

/** Undefined when the constant is none of its kind. */
export function parseScalar(value: Value['value'], kind: ScalarKind): Scalar | undefined {
  if (kind.kind === 'address') return typeof value === 'string' ? parseIp(value) : undefined
  if (kind.kind === 'text' || kind.kind === 'interface') return String(value)
  if (typeof value === 'number') return value
  if (typeof value === 'boolean') return Number(value)
  if (/^(0x[0-9a-f]+|\d+)$/i.test(value)) return Number(value)
  return symbols[kind.type]?.[value] ?? services[value]
}

/** Ports that `nft` names when it is asked to. */
const services: Readonly<Record<string, number>> = {
  ftp: 21,
  ssh: 22,
  telnet: 23,
  smtp: 25,
  domain: 53,
  bootps: 67,
  bootpc: 68,
  http: 80,
  kerberos: 88,
  pop3: 110,
  ntp: 123,
  imap2: 143,
  snmp: 161,
  bgp: 179,
  ldap: 389,
  https: 443,
  submission: 587,
  ldaps: 636,
  imaps: 993,
  pop3s: 995,
  mysql: 3306,
  postgresql: 5432,
  x11: 6000,
}

export function parsePattern(expression: Expression, kind: ScalarKind): Pattern | undefined {
  if (expression.kind === 'wildcard') return { kind: 'any' }
  if (expression.kind === 'value') {
    const value = parseScalar(expression.value, kind)
    return value === undefined ? undefined : { kind: 'one', value }
  }
  if (expression.kind === 'prefix') {
    const address = expression.address.kind === 'value' ? parseScalar(expression.address.value, kind) : undefined
    if (address === undefined || !isIp(address)) return undefined
    return { kind: 'prefix', prefix: prefixOf(address, expression.length) }
  }
  if (expression.kind === 'range') {
    const from = expression.from.kind === 'value' ? parseScalar(expression.from.value, kind) : undefined
    const to = expression.to.kind === 'value' ? parseScalar(expression.to.value, kind) : undefined
    return from === undefined || to === undefined ? undefined : { kind: 'range', from, to }
  }
  return undefined
}

export function fits(value: Scalar, pattern: Pattern): boolean {
  switch (pattern.kind) {
    case 'any':
      return true
    case 'one':
      return isSame(value, pattern.value)
    case 'prefix':
      return isIp(value) && containsIp(pattern.prefix, value)
    case 'range':
      return compare(value, pattern.from) >= 0 && compare(value, pattern.to) <= 0
    default:
      return pattern satisfies never
  }
}

/** An interface name of a rule may end in `*`. */
export function isSame(value: Scalar, wanted: Scalar): boolean {
  if (isIp(value) || isIp(wanted)) return isIp(value) && isIp(wanted) && isSameIp(value, wanted)
  if (typeof value === 'string' && typeof wanted === 'string' && wanted.endsWith('*'))
    return value.startsWith(wanted.slice(0, -1))
  return value === wanted
}

/** NaN, which no comparison holds for, when the two are of different kinds. */
export function compare(a: Scalar, b: Scalar): number {
  if (isIp(a) && isIp(b)) return a.family === b.family ? compareIp(a, b) : Number.NaN
  if (typeof a === 'number' && typeof b === 'number') return a - b
  if (typeof a === 'string' && typeof b === 'string') return a < b ? -1 : a > b ? 1 : 0
  return Number.NaN
}

export function printScalar(value: Scalar): string {
  return isIp(value) ? printIp(value) : String(value)
}

export function printPattern(pattern: Pattern): string {
  switch (pattern.kind) {
    case 'any':
      return '*'
    case 'one':
      return printScalar(pattern.value)
    case 'prefix':
      return printPrefix(pattern.prefix)
    case 'range':
      return `${printScalar(pattern.from)}-${printScalar(pattern.to)}`
    default:
      return pattern satisfies never
  }
}
