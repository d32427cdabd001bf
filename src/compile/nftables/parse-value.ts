/** Constants in one form, whichever form they were listed in: names for numbers that have one, `-n` and JSON alike. */
import { constant, type Expression } from './expression'
import { parseDurationMilliseconds } from './parse-duration'
import { flagTables, type SymbolTable, symbolTables } from './parse-symbols'

/** Types whose values are texts even where they look like numbers. */
const textTypes = new Set(['ifname', 'string', 'ipv4_addr', 'ipv6_addr', 'ether_addr', 'lladdr', 'hour', 'cgroupsv2'])

/** A constant of this data type; `''` is a type that is not known. Several flags become a list. */
export function buildConstant(raw: string | number | boolean, datatype: string): Expression {
  if (typeof raw === 'boolean' || textTypes.has(datatype)) return constant(raw)
  if (datatype === '') return constant(typeof raw === 'number' ? exactNumber(raw) : raw)
  const value = typeof raw === 'string' && isNumeral(raw) ? parseNumeral(raw) : raw
  const flags = flagTables.get(datatype)
  if (flags !== undefined) return buildFlags(value, flags)
  const symbols = symbolTables.get(datatype)
  if (symbols !== undefined) return constant(canonicalName(value, symbols, datatype))
  if (datatype === 'boolean') return constant(value === 1 || value === 'exists')
  if (datatype === 'duration' && typeof value === 'string') {
    const milliseconds = parseDurationMilliseconds(value)
    return constant(milliseconds === undefined ? value : milliseconds / 1000)
  }
  if (datatype === 'classid' && typeof value === 'number') {
    return constant(`${(value >>> 16).toString(16)}:${(value & 0xffff).toString(16)}`)
  }
  return constant(typeof value === 'number' ? exactNumber(value) : value)
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

/** nft's JSON is signed: values from 2^63 on are negative there. */
function exactNumber(value: number): number | string {
  return value < 0 ? parseNumeral((BigInt(value) + (1n << 64n)).toString()) : value
}

/** Ports are numbers, everything else that has names goes by its name. */
function canonicalName(value: string | number, symbols: SymbolTable, datatype: string): string | number {
  const number = typeof value === 'number' ? value : symbols.numbers.get(value)
  if (number === undefined) return value
  return datatype === 'inet_service' ? number : (symbols.names.get(number) ?? number)
}

function buildFlags(value: string | number, flags: SymbolTable): Expression {
  if (typeof value === 'string') {
    const number = flags.numbers.get(value)
    return constant(number === undefined ? value : (flags.names.get(number) ?? value))
  }
  const names: string[] = []
  for (let rest = value; rest > 0; rest &= rest - 1) {
    const name = flags.names.get(rest & -rest)
    if (name === undefined) return constant(value)
    names.push(name)
  }
  const [first] = names
  if (first === undefined) return constant(value)
  return names.length === 1 ? constant(first) : { kind: 'list', items: names.map(constant) }
}

/** `syn | ack` says the same as `syn,ack`; other than flags is not joined. */
export function joinFlags(left: Expression, right: Expression): Expression | undefined {
  const items = [...flagItems(left), ...flagItems(right)]
  if (items.some((item) => item.kind !== 'value' || typeof item.value !== 'string')) return undefined
  return { kind: 'list', items }
}

function flagItems(expression: Expression): readonly Expression[] {
  return expression.kind === 'list' ? expression.items : [expression]
}
