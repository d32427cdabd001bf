/** What is known of the node a ruleset stands on. */
import { familyOf, type Ip, printIp } from '#base/ip'
import type { Prefix } from '#base/prefix'
import type { IpSet } from '#compile/iptables/parse-ipset'

/** An address range and the interface it lies behind, with the rule that says so. */
export type Route = { readonly prefix: Prefix; readonly interface: string; readonly because: string }

export type World = {
  /** The node's own addresses in canonical text; absent when they are not known. */
  readonly nodeIps?: ReadonlySet<string>
  /** The address asked for is the node's own, whatever `nodeIps` says. */
  readonly localDestination?: string
  /** The node takes packets for 127.0.0.0/8 off the wire. */
  readonly takesLoopback?: boolean
  readonly sets: ReadonlyMap<string, IpSet>
  readonly routes: readonly Route[]
}

/** Whether an address is one of the node's own; undefined when that cannot be told. */
export function isLocal(world: World, ip: Ip): boolean | undefined {
  if (ip.family === 'ipv4' ? (ip.words[0] ?? 0) >>> 24 === 127 : printIp(ip) === '::1') return true
  const text = printIp(ip)
  if (world.localDestination === text) return true
  if (world.nodeIps === undefined || world.nodeIps.has(text)) return world.nodeIps?.has(text)
  // Addresses of the other family say nothing of this one.
  const isSameFamily = [...world.nodeIps].some((own) => familyOf(own) === ip.family)
  return isSameFamily ? false : undefined
}

export function isMulticast(ip: Ip): boolean {
  const word = ip.words[0] ?? 0
  return ip.family === 'ipv4' ? word >>> 28 === 14 : word >>> 24 === 255
}

export function isBroadcast(ip: Ip): boolean {
  return ip.family === 'ipv4' && ip.words[0] === 0xffffffff
}
