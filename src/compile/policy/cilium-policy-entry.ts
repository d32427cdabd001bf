/**
 * Entries of Cilium's policy map: keys with their bytes, and values with what each version makes of them. Mirrors
 * pkg/policy/types and pkg/maps/policymap, Cilium 1.16 to 1.19.
 */
import type { CiliumVersion } from '#model/cilium-version'
import { isAtLeast } from '#model/cilium-version'
import type { Direction, PolicyProtocol, PolicyRule, PolicySource } from './policy-rule'

/**
 * `identity` 0 is any peer, `protocol` 0 any protocol. `length` is how many bits of protocol and port count: 0 none, 8 the
 * protocol, 24 the whole port. Of ICMP the port is the type.
 */
export type PolicyKey = {
  readonly direction: Direction
  readonly identity: number
  readonly protocol: number
  readonly port: number
  readonly length: number
}

/** The stronger priority is the smaller one: 1 to 100 of a listener, then each parser's own. */
export type ProxyRedirect = { readonly parser: string; readonly listener?: string; readonly priority: number }

/** Type 0 is none, 1 mutual authentication, 2 the one that always fails. */
export type AuthRequirement = { readonly type: number; readonly isExplicit: boolean }

export type EntryOrigin = { readonly source: PolicySource; readonly rule: PolicyRule }

export type PolicyEntry = {
  readonly key: PolicyKey
  readonly isDeny: boolean
  readonly redirect?: ProxyRedirect
  readonly auth: AuthRequirement
  /** 0 is the best; Cilium 1.19 writes it into the precedence, and no kind it reads can set another. */
  readonly priority: number
  /** The rules it stems from; none for what Cilium adds of its own, which `note` explains. */
  readonly origins: readonly EntryOrigin[]
  readonly note?: string
}

export const noAuth: AuthRequirement = { type: 0, isExplicit: false }

export const protocolNumbers: Readonly<Record<PolicyProtocol, number>> = {
  TCP: 6,
  UDP: 17,
  SCTP: 132,
  ICMP: 1,
  ICMPv6: 58,
  VRRP: 112,
  IGMP: 2,
}

/** Priorities of redirects that no listener sets. */
export const parserPriorities: Readonly<Record<string, number>> = {
  http: 101,
  kafka: 106,
  l7proto: 111,
  tls: 116,
  dns: 121,
  crd: 126,
}

/** The bits of identity and direction, which always count. */
const fixedBits = 40

export function prefixLength({ length }: PolicyKey): number {
  return fixedBits + length
}

/** The 12 bytes of the key: prefix length, identity, direction, protocol, and the port in network order. */
export function policyKeyBytes(key: PolicyKey): Uint8Array {
  const bytes = new Uint8Array(12)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, prefixLength(key), true)
  view.setUint32(4, key.identity, true)
  view.setUint8(8, key.direction === 'egress' ? 1 : 0)
  view.setUint8(9, key.protocol)
  view.setUint16(10, key.port, false)
  return bytes
}

export function printPolicyKey({ direction, identity, protocol, port, length }: PolicyKey): string {
  return `${direction} ${identity} ${protocol}/${port}/${length}`
}

/** 1.17 and 1.18 hold it inverted: 0 none, 1 a redirect without priority, larger ones are stronger. */
export function proxyPortPriority({ redirect }: PolicyEntry): number {
  return redirect === undefined ? 0 : Math.max(1, 128 - redirect.priority)
}

/** From 1.19 on, in its newest layout: the policy's priority first, then deny, redirects by strength, and plain allows. */
export function precedenceOf(entry: PolicyEntry): number {
  return (0xffffff - entry.priority) * 256 + lowByte(entry)
}

function lowByte({ isDeny, redirect }: PolicyEntry): number {
  if (isDeny) return 255
  if (redirect === undefined) return 1
  return redirect.priority >= 1 && redirect.priority <= 253 ? 255 - redirect.priority : 2
}

/** The protocol and port of one contain those of the other, or are the same. */
export function coversPort(outer: PolicyKey, inner: PolicyKey): boolean {
  if (outer.length > inner.length) return false
  if (outer.length === 0) return true
  if (outer.protocol !== inner.protocol) return false
  const shift = 24 - outer.length
  return shift >= 16 || outer.port >>> shift === inner.port >>> shift
}

export function coversKey(outer: PolicyKey, inner: PolicyKey): boolean {
  if (outer.direction !== inner.direction) return false
  return (outer.identity === 0 || outer.identity === inner.identity) && coversPort(outer, inner)
}

/** How an entry stands against those it covers: one that covers a weaker one keeps it out of the map. */
export function coveringStrength(entry: PolicyEntry, version: CiliumVersion): number {
  if (isAtLeast(version, '1.19')) return precedenceOf(entry)
  if (entry.isDeny) return Number.POSITIVE_INFINITY
  return isAtLeast(version, '1.18') ? proxyPortPriority(entry) : 0
}
