/** What a schema says of a wrong value, as one sentence for each field, with the field's path. */
import type { FieldError } from './problem'

/** What TypeBox and Fastify tell of one mistake. */
export type SchemaError = {
  readonly keyword: string
  readonly instancePath: string
  readonly params: object
  readonly message?: string | undefined
}

/** `part` is `body`, `query`, … or empty; the first sentence of each field is kept. */
export function fieldErrors(errors: readonly SchemaError[], part = ''): readonly FieldError[] {
  const byField = new Map<string, string>()
  for (const error of errors) {
    for (const [field, message] of explain(error)) {
      const path = [part, field].filter((piece) => piece !== '').join('.')
      if (!byField.has(path)) byField.set(path, message)
    }
  }
  return [...byField].map(([field, message]) => ({ field, message }))
}

function explain({ keyword, instancePath, params, message }: SchemaError): readonly (readonly [string, string])[] {
  const at = instancePath.split('/').filter(Boolean).map(unescapePointer).join('.')
  const below = (name: string): string => (at === '' ? name : `${at}.${name}`)
  if (keyword === 'required') return namesIn(params, 'requiredProperties').map((name) => [below(name), 'is missing'])
  if (keyword === 'additionalProperties') {
    return namesIn(params, 'additionalProperties').map((name) => [below(name), 'is not known here'])
  }
  // The one pattern there is; its text would say less.
  if (keyword === 'pattern') return [[at, 'must be a whole number']]
  if (keyword === 'boolean') return [[at, 'is not known here']]
  if (keyword === 'enum') return [[at, `must be one of ${choices(namesIn(params, 'allowedValues'))}`]]
  return [[at, message ?? 'is not as the schema wants it']]
}

function choices(words: readonly string[]): string {
  const named = words.filter((word) => word !== '').join(', ')
  return words.includes('') ? `${named}, or be left blank` : named
}

/** JSON pointer escapes, RFC 6901. */
function unescapePointer(piece: string): string {
  return piece.replaceAll('~1', '/').replaceAll('~0', '~')
}

function namesIn(params: object, key: string): readonly string[] {
  const found: unknown = (params as Readonly<Record<string, unknown>>)[key]
  return Array.isArray(found) ? found.map(String) : []
}
