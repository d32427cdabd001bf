/** Which row of a Maglev table a packet's tuple is: Jenkins' hash of source, ports and protocol. Mirrors bpf/lib/hash.h and include/bpf/jhash.h, Cilium 1.16 to 1.19. */
import type { Ip } from '#base/ip'

export type Tuple = {
  readonly source: Ip
  /** 0 where a client is to stay with its backend. */
  readonly sourcePort: number
  readonly port: number
  readonly protocol: number
}

/** The destination's address is left out, so that several addresses of a Service choose alike. `seed` has twelve bytes. */
export function hashTuple({ source, sourcePort, port, protocol }: Tuple, seed: Uint8Array): number {
  // Ports and addresses are in network order in memory, and read as words of the machine, which is little-endian.
  const ports = ((swap16(port) << 16) | swap16(sourcePort)) >>> 0
  const words = source.words.map(swap32)
  if (source.family === 'ipv4') {
    const initial = (bigEndian(seed, 4) + 0xdeadbeef + (3 << 2)) >>> 0
    return final(add(words[0] ?? 0, initial), add(ports, initial), add(protocol, initial))
  }
  const [p1 = 0, p2 = 0, p3 = 0, p4 = 0] = words
  const [a, b, c] = mix(p1, p2, p3)
  const [d, e, f] = mix(add(a, p4), add(b, ports), add(c, protocol))
  return final(add(d, bigEndian(seed, 8)), e, f)
}

function swap16(value: number): number {
  return ((value & 0xff) << 8) | (value >>> 8)
}

function swap32(value: number): number {
  return (((value & 0xff) << 24) | ((value & 0xff00) << 8) | ((value >>> 8) & 0xff00) | ((value >>> 24) & 0xff)) >>> 0
}

function bigEndian(bytes: Uint8Array, at: number): number {
  return (
    (((bytes[at] ?? 0) << 24) | ((bytes[at + 1] ?? 0) << 16) | ((bytes[at + 2] ?? 0) << 8) | (bytes[at + 3] ?? 0)) >>> 0
  )
}

function add(a: number, b: number): number {
  return (a + b) >>> 0
}

function rotate(word: number, by: number): number {
  return ((word << by) | (word >>> (32 - by))) >>> 0
}

type Three = readonly [number, number, number]

function mix(x: number, y: number, z: number): Three {
  let [a, b, c] = [x, y, z]
  a = ((a - c) ^ rotate(c, 4)) >>> 0
  c = add(c, b)
  b = ((b - a) ^ rotate(a, 6)) >>> 0
  a = add(a, c)
  c = ((c - b) ^ rotate(b, 8)) >>> 0
  b = add(b, a)
  a = ((a - c) ^ rotate(c, 16)) >>> 0
  c = add(c, b)
  b = ((b - a) ^ rotate(a, 19)) >>> 0
  a = add(a, c)
  c = ((c - b) ^ rotate(b, 4)) >>> 0
  b = add(b, a)
  return [a, b, c]
}

function final(x: number, y: number, z: number): number {
  let [a, b, c] = [x, y, z]
  c = ((c ^ b) - rotate(b, 14)) >>> 0
  a = ((a ^ c) - rotate(c, 11)) >>> 0
  b = ((b ^ a) - rotate(a, 25)) >>> 0
  c = ((c ^ b) - rotate(b, 16)) >>> 0
  a = ((a ^ c) - rotate(c, 4)) >>> 0
  b = ((b ^ a) - rotate(a, 14)) >>> 0
  return ((c ^ b) - rotate(b, 24)) >>> 0
}
