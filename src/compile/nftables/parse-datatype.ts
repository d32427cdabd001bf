/** Which data type a value has that is compared with an expression, or written into one; `''` is not known. */
import type { Expression } from './expression'
import type { DataType, NamedSet } from './ruleset'
import { typesOf, typesOfData } from './value-type'

type Sets = ReadonlyMap<string, NamedSet>

/** One type a part of a concatenation. */
export function datatypesOf(expression: Expression, sets: Sets): readonly string[] {
  switch (expression.kind) {
    case 'concat':
      return expression.parts.flatMap((part) => datatypesOf(part, sets))
    case 'binary':
      return datatypesOf(expression.left, sets)
    case 'map':
      return expression.data.kind === 'reference' ? valueTypesOf(sets.get(expression.data.set)?.data) : ['']
    case 'exthdr':
    case 'tcp-option':
    case 'ip-option':
    case 'sctp-chunk':
      return expression.field === undefined ? ['boolean'] : typesOf(expression).map(({ name }) => name)
    case 'dccp-option':
      return ['boolean']
    case 'value':
    case 'wildcard':
    case 'list':
    case 'prefix':
    case 'range':
    case 'set':
    case 'reference':
    case 'other':
      return ['']
    default:
      return typesOf(expression).map(({ name }) => name)
  }
}

/** The types of a set's keys or of a map's values. */
export function valueTypesOf(type: DataType | undefined): readonly string[] {
  return type === undefined ? [''] : typesOfData(type).map(({ name }) => name)
}
