/** Packets off the wire that the kernel's routing refuses, whatever the rules say. */
import { type Ip, printIp } from '#base/ip'
import type { Fields } from './path'
import type { Question } from './question'
import { isBroadcast, isLocal, isMulticast, type World } from './world'

/** ip_route_input_slow and fib_validate_source in net/ipv4/route.c; IPv6 takes packets from the node's own addresses. */
export function whyMartian(world: World, { family, source, destination, inInterface }: Fields): string | undefined {
  if (family !== 'ipv4' || inInterface === 'lo') return undefined
  if (isOfZeroNet(destination)) return `a martian: ${printIp(destination)} is no address to send to`
  if (source === undefined) return undefined
  if (isLocal(world, source) === true) {
    return `a martian: ${printIp(source)} is an address of this node, and the packet came in from outside`
  }
  const isNobody = isMulticast(source) || isBroadcast(source) || (isOfZeroNet(source) && !isBroadcast(destination))
  return isNobody ? `a martian: nobody has the address ${printIp(source)}` : undefined
}

function isOfZeroNet({ words }: Ip): boolean {
  return (words[0] ?? 0) >>> 24 === 0
}

/** Off the wire the loopback's range is a martian too, unless the node routes it. */
export function isLoopbackOfWire({ family, destination, inInterface }: Fields): boolean {
  return family === 'ipv4' && inInterface !== 'lo' && (destination.words[0] ?? 0) >>> 24 === 127
}

export const routeLocalnet: Question = {
  key: 'route-localnet',
  subject: { kind: 'fact' },
  yes: 'the node takes 127.0.0.0/8 off the wire (sysctl route_localnet)',
  no: 'the node takes nothing for 127.0.0.0/8 off the wire (sysctl route_localnet)',
  usual: false,
}
