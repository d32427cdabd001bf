/** Addresses that no node carries a packet to: what a sender's own kernel keeps. Mirrors the local table of net/ipv4/fib_frontend.c and ip_route_output_key of net/ipv4/route.c, Linux 6. */
import { type Ip, isSameIp } from '#base/ip'

/** 127.0.0.0/8 and ::1, and the addresses that connect takes for them: 0.0.0.0 and ::. */
export function isLoopbackOrUnspecified({ family, words }: Ip): boolean {
  const [first = 0] = words
  if (family === 'ipv4') return first >>> 24 === 127 || first === 0
  return words.slice(0, 3).every((word) => word === 0) && (words[3] ?? 0) <= 1
}

/** Whether a sender with these addresses is the receiver, too: the packet goes by its loopback interface and never leaves it. */
export function staysWithSender(destination: Ip, own: readonly Ip[]): boolean {
  return isLoopbackOrUnspecified(destination) || own.some((ip) => isSameIp(ip, destination))
}
