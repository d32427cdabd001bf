/** Holds what a server answers to the schema of a broker's answers: anything may listen at an address. */
import type { Static, TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { Failure } from '#base/failure'
import { fieldErrors, type SchemaError } from '#wire/field-errors'

/** Reads one JSON text; `url` is the one that was asked. What a later broker tells beside it is let through. */
export function answerReader<Schema extends TSchema>(url: string, schema: Schema): (text: string) => Static<Schema> {
  const validator = Compile(schema)
  return (text) => {
    const value = parseOr(text, (reason) => foreignAnswer(url, reason))
    if (validator.Check(value)) return value as Static<Schema>
    const [error] = fieldErrors(validator.Errors(value) as readonly SchemaError[])
    const what = error === undefined ? '' : `${error.field === '' ? 'it' : error.field} ${error.message}`
    throw foreignAnswer(url, what)
  }
}

function parseOr(text: string, refuse: (reason: string) => Failure): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw refuse(text.trim() === '' ? 'it is empty' : 'it is not JSON')
  }
}

function foreignAnswer(url: string, reason: string): Failure {
  return new Failure(
    'broker.refused',
    `what ${url} answers is not a Portolan broker’s answer: ${reason}; check --broker`,
  )
}
