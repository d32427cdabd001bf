/** The order in which `nft list` (1.0.6) shows the elements of a set, whichever order they were added in. */
import { parseIp } from '#base/ip'
import { compareText } from '#base/text'
import type { Element, Expression } from './expression'
import { symbols } from './symbols'

/**
 * Plain keys ascend. Concatenated ones are sorted by their bytes read as one little-endian number, so that the last byte
 * of the last part weighs most: the low byte of a port before its high byte, then the protocol, then the address from
 * its end. (nftables, src/mergesort.c.)
 */
export function sortElements(elements: readonly Element[], types: readonly string[]): readonly Element[] {
  const keyed = elements.map((element) => ({ element, key: sortKey(element.key, types) }))
  keyed.sort((a, b) => compareText(a.key, b.key))
  return keyed.map(({ element }) => element)
}

/** One character a byte, the weightiest first. */
function sortKey(key: Expression, types: readonly string[]): string {
  if (key.kind !== 'concat') return partKey(key, types[0] ?? '')
  let text = ''
  for (const [at, part] of key.parts.entries()) text = reversed(partKey(part, types[at] ?? '')) + text
  return text
}

function reversed(text: string): string {
  let back = ''
  for (let at = text.length - 1; at >= 0; at--) back += text[at]
  return back
}

/** Of a range or a prefix, where it begins. */
function partKey(part: Expression, type: string): string {
  if (part.kind === 'range') return partKey(part.from, type)
  if (part.kind === 'prefix') return partKey(part.address, type)
  if (part.kind !== 'value') return ''
  if (typeof part.value === 'string') return textKey(part.value, type)
  return numberKey(Number(part.value), widths[type] ?? 4)
}

/** Bytes of numbers; those of the host's byte order (`mark`) are left out here, as no set of kube-proxy has them. */
const widths: Readonly<Record<string, number>> = { inet_proto: 1, inet_service: 2, ether_type: 2 }

function textKey(text: string, type: string): string {
  const symbol = symbols[type]?.[text]
  if (symbol !== undefined) return numberKey(symbol, widths[type] ?? 1)
  const ip = parseIp(text)
  return ip === undefined ? text : ip.words.map((word) => numberKey(word, 4)).join('')
}

function numberKey(value: number, width: number): string {
  let key = ''
  for (let rest = value, at = 0; at < width; at++, rest = Math.floor(rest / 256))
    key = String.fromCharCode(rest % 256) + key
  return key
}
