/** What the OpenAPI document says of a route besides its own schemas: who may call it, how answers are written, every refusal. */
import type { SwaggerTransform } from '@fastify/swagger'
import type { FastifyContextConfig, FastifySchema } from 'fastify'
import { Problem, problemMediaType } from '#wire/problem'
import { isJsonObject } from '#wire/schema-parts'
import { yamlTypes } from './answer-problem'
import { ndjsonMediaType } from './stream-answer'

type Documented = FastifySchema & {
  readonly security?: readonly object[]
  readonly consumes?: readonly string[]
  readonly description?: string
}

export const documentRoute: SwaggerTransform = ({ schema, url, route }) => {
  const own = (schema ?? {}) as Documented
  const config = route.config ?? {}
  const isOpen = config.access === 'open'
  const given = isJsonObject(own.response) ? own.response : {}
  const refusals = Object.fromEntries(refusalsOf(config, own.body !== undefined).map((status) => [status, Problem]))
  const response = Object.fromEntries(
    Object.entries({ ...refusals, ...given }).map(([status, answer]) => [
      status,
      withMediaTypes(Number(status), answer),
    ]),
  )
  const documented: Documented = {
    ...own,
    response,
    security: isOpen ? [] : [{ token: [] }],
    ...(!isOpen && { description: `A token needs the scope ${config.access}.` }),
    ...(config.takesYaml === true && own.body !== undefined && { consumes: ['application/json', ...yamlTypes] }),
  }
  return { schema: documented as FastifySchema, url }
}

/** Those that any route may give: the guard’s, the limits’, the database’s. */
function refusalsOf({ access, rateLimit }: FastifyContextConfig & { readonly rateLimit?: unknown }, hasBody: boolean) {
  return [
    ...(access === 'open' ? [] : [400, 401, 403]),
    ...(hasBody ? [408, 413, 415, 422] : []),
    ...(rateLimit === false ? [] : [429]),
    ...(access === 'open' ? [] : [503]),
  ]
}

const isProblem = (schema: unknown): boolean => schema === Problem

/** A list may be had in lines, too, and a text is no JSON. */
function withMediaTypes(status: number, answer: unknown): unknown {
  if (!isJsonObject(answer) || answer.content !== undefined) return answer
  const { description } = answer
  const written = (types: Readonly<Record<string, unknown>>) => ({
    description: typeof description === 'string' ? description : 'The answer.',
    content: Object.fromEntries(Object.entries(types).map(([type, schema]) => [type, { schema }])),
  })
  if (isProblem(answer)) return written({ [problemMediaType]: answer })
  if (status >= 400 && answer.type === 'string') return written({ 'text/plain': answer })
  const { items, next } = isJsonObject(answer.properties) ? answer.properties : {}
  if (next === undefined || !isJsonObject(items) || items.items === undefined) return answer
  return written({ 'application/json': answer, [ndjsonMediaType]: items.items })
}
