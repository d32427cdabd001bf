/** A small hash for choosing assumed numbers and names: fast, and the same on every machine. */

/** FNV-1a over UTF-16 code units, 32 bits. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  }
  // FNV's last step mixes the high bits badly: texts that differ in their last letter would stay neighbours.
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return (hash ^ (hash >>> 13)) >>> 0
}

/** The letters and digits Kubernetes draws names from: no vowels, so that no words arise. */
const letters = 'bcdfghjklmnpqrstvwxz2456789'

export function printHash(hash: number, length: number): string {
  let text = ''
  for (let rest = hash; text.length < length; rest = Math.floor(rest / letters.length) || hashText(text)) {
    text += letters.charAt(rest % letters.length)
  }
  return text
}
