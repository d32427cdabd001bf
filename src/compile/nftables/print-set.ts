/** Named sets and maps as `nft list` (1.0.6) writes them. */
import { printDuration } from './print-duration'
import { type ElementTypes, printElement, printLeft } from './print-expression'
import { printTemplate } from './print-state'
import type { DataType, NamedSet } from './ruleset'
import { typesOfData } from './value-type'

/** The lines between the braces, without their indent. */
export function setLines(set: NamedSet): string[] {
  const lines = [typeLine(set)]
  if (set.policy === 'memory') lines.push('policy memory')
  if (set.size !== undefined) lines.push(`size ${set.size}`)
  const flags = flagsOf(set)
  if (flags !== '') lines.push(`flags ${flags}`)
  if (set.statements.length > 0) lines.push(set.statements.map(printTemplate).join(' '))
  if (set.isAutoMerged) lines.push('auto-merge')
  if (set.timeoutMilliseconds !== undefined) lines.push(`timeout ${printDuration(set.timeoutMilliseconds)}`)
  if (set.gcIntervalMilliseconds !== undefined) lines.push(`gc-interval ${printDuration(set.gcIntervalMilliseconds)}`)
  if (set.comment !== undefined) lines.push(`comment "${set.comment}"`)
  if (set.elements.length > 0) lines.push(`elements = { ${printElements(set)} }`)
  return lines
}

export function elementTypes({ key, data }: NamedSet): ElementTypes {
  return { key: typesOfData(key), data: data === undefined ? [] : typesOfData(data) }
}

export function printDataType(type: DataType): string {
  return type.kind === 'type' ? type.names.join(' . ') : printLeft(type.expression)
}

function typeLine({ key, data, isDataInterval }: NamedSet): string {
  const start = `${key.kind} ${printDataType(key)}`
  return data === undefined ? start : `${start} : ${isDataInterval ? 'interval ' : ''}${printDataType(data)}`
}

/** A timeout of the set says already that its elements have one. */
function flagsOf({ flags, timeoutMilliseconds }: NamedSet): string {
  const isTold = flags.some((flag) => flag !== 'timeout' || timeoutMilliseconds === undefined)
  return isTold ? flags.join(',') : ''
}

/** nft fills a line with as many elements as their type is short. */
function printElements(set: NamedSet): string {
  const types = elementTypes(set)
  const perLine = types.key.length === 1 ? (types.key[0]?.perLine ?? 1) : 1
  const parts: string[] = []
  for (const [at, element] of set.elements.entries()) {
    if (at > 0) parts.push(at % perLine === 0 ? ',\n\t\t\t     ' : ', ')
    parts.push(printElement(element, types))
  }
  return parts.join('')
}
