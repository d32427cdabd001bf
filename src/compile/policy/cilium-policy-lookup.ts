/**
 * What the datapath finds in a policy map for a packet, by version. Mirrors bpf/lib/policy.h: up to 1.16 six steps, 1.17
 * and 1.18 two lookups settled by deny, redirect and length, from 1.19 on by precedence.
 */
import { type CiliumVersion, isAtLeast } from '#model/cilium-version'
import { coversPort, type PolicyEntry, type PolicyKey, precedenceOf, proxyPortPriority } from './cilium-policy-entry'
import type { PolicyMap } from './cilium-policy-map'

/** The entry that decides, and the one that it was preferred to. */
export type PolicyLookup = {
  readonly chosen: PolicyEntry
  readonly other?: PolicyEntry
  /** The type of authentication that is asked for; 0 for none. */
  readonly authType: number
}

/** `packet` is a key of full length. Undefined: nothing matches, and the packet is dropped. */
export function lookUpPolicy(map: PolicyMap, packet: PolicyKey): PolicyLookup | undefined {
  const own = packet.identity === 0 ? undefined : longestMatch(map.byIdentity.get(packet.identity), packet)
  const open = longestMatch(map.byIdentity.get(0), packet)
  if (own === undefined || open === undefined) {
    const chosen = own ?? open
    return chosen === undefined ? undefined : { chosen, authType: chosen.auth.type }
  }
  const chosen = choose(own, open, map.version)
  const other = chosen === own ? open : own
  return { chosen, other, authType: authTypeOf(chosen, other, map.version) }
}

/** A packet that says its protocol and port in full. */
export function packetKey(packet: Omit<PolicyKey, 'length'>): PolicyKey {
  return { ...packet, length: 24 }
}

function longestMatch(entries: readonly PolicyEntry[] | undefined, packet: PolicyKey): PolicyEntry | undefined {
  let longest: PolicyEntry | undefined
  for (const entry of entries ?? []) {
    const { key } = entry
    if (key.direction !== packet.direction || !coversPort(key, packet)) continue
    if (longest === undefined || key.length > longest.key.length) longest = entry
  }
  return longest
}

function choose(own: PolicyEntry, open: PolicyEntry, version: CiliumVersion): PolicyEntry {
  if (isAtLeast(version, '1.19')) return chooseByPrecedence(own, open)
  if (isAtLeast(version, '1.17')) return chooseByDeny(own, open)
  return step(own) <= step(open) ? own : open
}

/** Port, then protocol, then neither; in each the identity first. A range counts as a port. */
function step({ key }: PolicyEntry): number {
  if (key.length > 8) return 0
  return key.length === 8 ? 1 : 2
}

function chooseByDeny(own: PolicyEntry, open: PolicyEntry): PolicyEntry {
  if (own.isDeny) return own
  if (open.isDeny) return open
  const difference = proxyPortPriority(open) - proxyPortPriority(own)
  if (difference !== 0) return difference > 0 ? open : own
  return open.key.length > own.key.length ? open : own
}

function chooseByPrecedence(own: PolicyEntry, open: PolicyEntry): PolicyEntry {
  const difference = precedenceOf(open) - precedenceOf(own)
  if (difference !== 0) return difference > 0 ? open : own
  return open.key.length > own.key.length ? open : own
}

/** From 1.17 on an entry that says nothing itself takes the stronger demand of the other one. */
function authTypeOf(chosen: PolicyEntry, other: PolicyEntry, version: CiliumVersion): number {
  if (chosen.isDeny || chosen.auth.isExplicit || other.isDeny || !isAtLeast(version, '1.17')) return chosen.auth.type
  return Math.max(chosen.auth.type, other.auth.type)
}
