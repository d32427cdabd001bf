/** Constants as `nft list` writes them, by their data type. */
import type { Value } from './expression'
import { printDuration } from './print-duration'
import type { ValueType } from './value-type'

export function printValue(value: Value['value'], type: ValueType | undefined): string {
  if (typeof value === 'string') return printText(value, type)
  if (typeof value === 'boolean') return value ? 'exists' : 'missing'
  return type?.isDuration === true ? printDuration(value * 1000) : printNumber(value, type)
}

/** In a range nft writes the numbers behind names, and a duration in seconds. */
export function printRangeEnd(value: Value['value'], type: ValueType | undefined): string {
  const known = typeof value === 'string' ? type?.symbols?.[value] : undefined
  if (known !== undefined) return printNumber(known, type)
  return typeof value === 'number' && type?.isDuration === true ? `${value}s` : printValue(value, type)
}

function printText(text: string, type: ValueType | undefined): string {
  if (type?.quotes === undefined || (type.quotes === 'names' && /^\d+$/.test(text))) return text
  return `"${text}"`
}

function printNumber(value: number, type: ValueType | undefined): string {
  if (type?.hexDigits === undefined) return String(value)
  return `0x${value.toString(16).padStart(type.hexDigits, '0')}`
}
