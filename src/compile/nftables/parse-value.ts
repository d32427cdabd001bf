/** Constants in one form, whichever form they were listed in: names for numbers that have one, `-n` and JSON alike. */
import { constant, type Expression } from './expression'
import { parseDurationMilliseconds } from './parse-duration'
import { flagTypes, symbolTableOf } from './parse-symbols'

/** Types whose values are texts even where they look like numbers. */
const textTypes = new Set(
  'ifname string ipv4_addr ipv6_addr ether_addr lladdr hour cgroupsv2 iface_index realm'.split(' '),
)

/** A constant of this data type; `''` is a type that is not known. */
export function buildConstant(raw: string | number | boolean, datatype: string): Expression {
  if (typeof raw === 'boolean' || textTypes.has(datatype)) return constant(raw)
  if (datatype === '') return constant(typeof raw === 'number' ? exactNumber(raw) : raw)
  const value = typeof raw === 'string' && isNumeral(raw) ? parseNumeral(raw) : raw
  if (flagTypes.has(datatype)) return buildFlags(value, datatype)
  if (datatype === 'boolean') return constant(value === 1 || value === 'exists')
  if (datatype === 'time' && typeof value === 'string') {
    const milliseconds = parseDurationMilliseconds(value)
    return constant(milliseconds === undefined ? value : milliseconds / 1000)
  }
  if (datatype === 'classid' && typeof value === 'number') {
    return constant(`${(value >>> 16).toString(16)}:${(value & 0xffff).toString(16)}`)
  }
  const name = canonicalName(value, datatype)
  return constant(typeof name === 'number' ? exactNumber(name) : name)
}

/** What a word of a listing stands for: `0x10` a number, `lo` a text. */
export function buildWord(word: string, datatype: string): Expression {
  if (word === 'exists' || word === 'missing') return constant(word === 'exists')
  return buildConstant(isNumeral(word) && !textTypes.has(datatype) ? parseNumeral(word) : word, datatype)
}

export function isNumeral(word: string): boolean {
  const code = word.charCodeAt(0)
  return code >= 48 && code <= 57 && /^(?:0x[0-9a-fA-F]+|\d+)$/.test(word)
}

/** A number, or beyond what a number holds exactly, hexadecimal text. */
export function parseNumeral(word: string): number | string {
  const number = Number(word)
  return Number.isSafeInteger(number) ? number : `0x${BigInt(word).toString(16)}`
}

/** With `-n` nft's JSON has the numbers of some names in the wrong order of bytes; such numbers mean nothing else. */
export function buildJsonConstant(told: string | number | boolean, datatype: string): Expression {
  // nft says so of a value whose type it has lost.
  const raw = typeof told === 'string' && told.endsWith(' [invalid type]') ? parseNumeral(told.slice(0, -15)) : told
  if (typeof raw === 'number' && (datatype === 'ether_type' || datatype === 'arp_op')) {
    const swapped = ((raw & 0xff) << 8) | (raw >> 8)
    if (symbolTableOf(datatype)?.names.has(raw) === false) {
      const name = symbolTableOf(datatype)?.names.get(swapped)
      if (name !== undefined) return constant(name)
    }
  }
  return buildConstant(raw, datatype)
}

/** nft's JSON is signed: values from 2^63 on are negative there. */
function exactNumber(value: number): number | string {
  return value < 0 ? parseNumeral((BigInt(value) + (1n << 64n)).toString()) : value
}

/** Ports are numbers, everything else that has names goes by its name. */
function canonicalName(value: string | number, datatype: string): string | number {
  const table = symbolTableOf(datatype)
  if (table === undefined) return value
  const number = typeof value === 'number' ? value : table.numbers.get(value)
  if (number === undefined) return value
  return datatype === 'inet_service' ? number : (table.names.get(number) ?? number)
}

/** nft lists several flags as a number where it compares with all of them. */
function buildFlags(value: string | number, datatype: string): Expression {
  const isOne = typeof value === 'string' || (value > 0 && (value & (value - 1)) === 0)
  return constant(isOne ? canonicalName(value, datatype) : value)
}

/** `fin | syn`, or 3, as the list `fin,syn`. */
export function listFlags(expression: Expression, datatype: string): Expression {
  if (expression.kind === 'value' && typeof expression.value === 'number') return splitFlags(expression.value, datatype)
  if (expression.kind !== 'binary' || expression.operator !== '|') return expression
  const items = [expression.left, expression.right].flatMap((side) => itemsOf(listFlags(side, datatype)))
  return items.every((item) => item.kind === 'value' && typeof item.value === 'string')
    ? { kind: 'list', items }
    : expression
}

function itemsOf(flags: Expression): readonly Expression[] {
  return flags.kind === 'list' ? flags.items : [flags]
}

function splitFlags(value: number, datatype: string): Expression {
  const names = symbolTableOf(datatype)?.names
  const items: Expression[] = []
  for (let rest = value; rest > 0; rest &= rest - 1) {
    const name = names?.get(rest & -rest)
    if (name === undefined) return constant(value)
    items.push(constant(name))
  }
  const [first] = items
  return first === undefined ? constant(value) : items.length === 1 ? first : { kind: 'list', items }
}
