/** MurmurHash3, x64, 128 bits, which Maglev takes its permutations from. Mirrors pkg/murmur3, Cilium 1.18. */

const mask = 0xffffffffffffffffn
const c1 = 0x87c37b91114253d5n
const c2 = 0x4cf5ad432745937fn

/** Both halves; the seed stands in both lanes at the start. */
export function murmur128(bytes: Uint8Array, seed: number): readonly [bigint, bigint] {
  let h1 = BigInt(seed)
  let h2 = BigInt(seed)
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const whole = bytes.length - (bytes.length % 16)
  for (let at = 0; at < whole; at += 16) {
    h1 ^= mixFirst(view.getBigUint64(at, true))
    h1 = (times5(rotate(h1, 27n) + h2) + 0x52dce729n) & mask
    h2 ^= mixSecond(view.getBigUint64(at + 8, true))
    h2 = (times5(rotate(h2, 31n) + h1) + 0x38495ab5n) & mask
  }
  const tail = bytes.subarray(whole)
  if (tail.length > 8) h2 ^= mixSecond(littleEndian(tail.subarray(8)))
  if (tail.length > 0) h1 ^= mixFirst(littleEndian(tail.subarray(0, 8)))
  h1 ^= BigInt(bytes.length)
  h2 ^= BigInt(bytes.length)
  h1 = (h1 + h2) & mask
  h2 = (h2 + h1) & mask
  h1 = finish(h1)
  h2 = finish(h2)
  h1 = (h1 + h2) & mask
  return [h1, (h2 + h1) & mask]
}

function times5(value: bigint): bigint {
  return ((value & mask) * 5n) & mask
}

function mixFirst(word: bigint): bigint {
  return (rotate((word * c1) & mask, 31n) * c2) & mask
}

function mixSecond(word: bigint): bigint {
  return (rotate((word * c2) & mask, 33n) * c1) & mask
}

function rotate(value: bigint, by: bigint): bigint {
  return ((value << by) | (value >> (64n - by))) & mask
}

function finish(value: bigint): bigint {
  let k = value ^ (value >> 33n)
  k = (k * 0xff51afd7ed558ccdn) & mask
  k ^= k >> 33n
  k = (k * 0xc4ceb9fe1a85ec53n) & mask
  return k ^ (k >> 33n)
}

function littleEndian(bytes: Uint8Array): bigint {
  let word = 0n
  for (let at = bytes.length - 1; at >= 0; at--) word = (word << 8n) | BigInt(bytes[at] ?? 0)
  return word
}
