/** From whatever went wrong to a problem body, its status and its headers. */
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { Failure, type FailureCode } from '#base/failure'
import { listOf } from '#base/text'
import { fieldErrors, type SchemaError } from '#wire/field-errors'
import { buildProblem, type FieldError, type Problem, type ProblemCode, problemMediaType } from '#wire/problem'
import { isJsonObject } from '#wire/schema-parts'

/** Seconds after which a client may try again when the database is away. */
const retryAfterSeconds = 5

export function sendProblem(
  reply: FastifyReply,
  code: ProblemCode,
  detail: string,
  errors: readonly FieldError[] = [],
): FastifyReply {
  return send(reply, buildProblem(code, detail, errors))
}

/** Fields of a body that its schema lets through and that cannot be stored all the same. */
export function refuseFields(reply: FastifyReply, errors: readonly [FieldError, ...FieldError[]]): FastifyReply {
  return sendProblem(reply, 'wrong-fields', sentenceOf(errors[0]), errors)
}

export function hasErrors(errors: readonly FieldError[]): errors is readonly [FieldError, ...FieldError[]] {
  return errors.length > 0
}

function send(reply: FastifyReply, problem: Problem): FastifyReply {
  if (problem.status === 503 && !reply.hasHeader('Retry-After')) reply.header('Retry-After', retryAfterSeconds)
  return reply.code(problem.status).type(problemMediaType).send(JSON.stringify(problem))
}

/** The one place where failures of the broker's requests become answers. */
export function answerError(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const problem = problemOf(error, request)
  if (problem.code === 'bug') request.log.error({ err: error }, 'a request failed in a way that was not foreseen')
  else if (problem.status >= 500) request.log.warn({ reason: reasonOf(error) }, problem.detail)
  return send(reply, problem)
}

function problemOf(error: unknown, request: FastifyRequest): Problem {
  if (error instanceof Failure) return buildProblem(failureProblems[error.code] ?? 'bug', error.message)
  if (isFastifyError(error)) return problemOfFastify(error, request)
  if (isProblem(error)) return error
  return buildProblem('bug', 'this is a bug of the broker; its log says more')
}

const failureProblems: Readonly<Partial<Record<FailureCode, ProblemCode>>> = {
  'usage.bad-argument': 'bad-request',
  'usage.not-found': 'not-found',
  'database-unavailable': 'unavailable',
  'database-refused': 'unavailable',
}

/** The rate limit throws the body that it was given. */
function isProblem(error: unknown): error is Problem {
  return isJsonObject(error) && typeof error.status === 'number' && typeof error.detail === 'string'
}

function isFastifyError(error: unknown): error is FastifyError {
  return error instanceof Error && ('validation' in error || 'code' in error || 'statusCode' in error)
}

const fastifyProblems: Readonly<Record<string, { readonly code: ProblemCode; readonly detail: string }>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: {
    code: 'too-large',
    detail: 'the body is longer than this broker takes; send less at once',
  },
  FST_ERR_CTP_INVALID_MEDIA_TYPE: {
    code: 'not-json',
    detail: 'the body must be JSON; send it with Content-Type: application/json',
  },
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: {
    code: 'bad-request',
    detail: 'the body is not as long as Content-Length says; send it whole',
  },
  FST_ERR_CTP_EMPTY_JSON_BODY: { code: 'bad-request', detail: 'the body is empty; send JSON' },
  FST_ERR_CTP_INVALID_JSON_BODY: { code: 'bad-request', detail: 'the body is not JSON' },
  FST_ERR_MAX_PARAM_LENGTH: { code: 'bad-request', detail: 'a part of the path is longer than any name' },
  FST_ERR_BAD_URL: { code: 'bad-request', detail: 'the path is not a valid URL path; check its % escapes' },
  FST_ERR_HANDLER_TIMEOUT: { code: 'unavailable', detail: 'the answer took too long; ask for less, or later' },
}

function problemOfFastify(error: FastifyError, request: FastifyRequest): Problem {
  if (error.validation !== undefined) {
    const part = error.validationContext === 'querystring' ? 'query' : (error.validationContext ?? '')
    const errors = fieldErrors(error.validation as readonly SchemaError[], part)
    const first = errors[0] === undefined ? 'the request is not as the schema wants it' : sentenceOf(errors[0])
    return buildProblem(part === 'body' ? 'wrong-fields' : 'bad-request', first, errors)
  }
  // What is refused before routing has no route.
  if (request.routeOptions?.config?.takesYaml === true && error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
    return buildProblem('not-json', yamlRefusal(request.headers['content-type']))
  }
  const known = fastifyProblems[error.code]
  if (known !== undefined) return buildProblem(known.code, known.detail)
  if (error instanceof SyntaxError || error.statusCode === 400) {
    return buildProblem('bad-request', `the body is not JSON: ${error.message}`)
  }
  return buildProblem('bug', 'this is a bug of the broker; its log says more')
}

/** By which names people send YAML. */
export const yamlTypes = ['application/yaml', 'application/x-yaml', 'text/yaml', 'text/x-yaml', 'text/plain'] as const

/** curl sends a form where it is told nothing else. */
function yamlRefusal(type: string | undefined): string {
  const is = type === undefined ? 'the body has no Content-Type' : `the body’s Content-Type is ${type}`
  return `${is}; send JSON as application/json, or YAML as ${listOf(yamlTypes).replace(' and ', ' or ')}`
}

function sentenceOf({ field, message }: FieldError): string {
  return `${field} ${message}`
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const cause = error.cause instanceof Error ? error.cause.message : ''
  return error.message.includes(cause) ? error.message : `${error.message}: ${cause}`
}
