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
  const isConcat = types.length > 1
  const keyed = elements.map((element) => {
    const bytes = keyBytes(element.key, types)
    return { element, key: String.fromCharCode(...(isConcat ? bytes.reverse() : bytes)) }
  })
  keyed.sort((a, b) => compareText(a.key, b.key))
  return keyed.map(({ element }) => element)
}

function keyBytes(key: Expression, types: readonly string[]): number[] {
  if (key.kind === 'concat') return key.parts.flatMap((part, at) => partBytes(part, types[at] ?? ''))
  return partBytes(key, types[0] ?? '')
}

/** Of a range or a prefix, where it begins. */
function partBytes(part: Expression, type: string): number[] {
  if (part.kind === 'range') return partBytes(part.from, type)
  if (part.kind === 'prefix') return partBytes(part.address, type)
  if (part.kind !== 'value') return []
  if (typeof part.value === 'string') return textBytes(part.value, type)
  return numberBytes(Number(part.value), widths[type] ?? 4)
}

/** Bytes of numbers; those of the host's byte order (`mark`) are left out here, as no set of kube-proxy has them. */
const widths: Readonly<Record<string, number>> = { inet_proto: 1, inet_service: 2, ether_type: 2 }

function textBytes(text: string, type: string): number[] {
  const symbol = symbols[type]?.[text]
  if (symbol !== undefined) return numberBytes(symbol, widths[type] ?? 1)
  const ip = parseIp(text)
  if (ip !== undefined) return ip.words.flatMap((word) => numberBytes(word, 4))
  return Array.from(text, (character) => character.charCodeAt(0))
}

function numberBytes(value: number, width: number): number[] {
  return Array.from({ length: width }, (_, at) => Math.floor(value / 256 ** (width - 1 - at)) % 256)
}
