/** The body of every refusal: RFC 9457 problem details, with the fields that were wrong. */
import Type, { type Static } from 'typebox'

export const problemMediaType = 'application/problem+json'

const FieldError = Type.Object({
  field: Type.String({ description: 'a path such as pod_ip, body.0.time_stamp or query.limit' }),
  message: Type.String(),
})

export const Problem = Type.Object(
  {
    type: Type.String({ description: 'about:blank, as the title says all there is to the status' }),
    title: Type.String(),
    status: Type.Integer(),
    code: Type.String({ description: 'a stable word for programs' }),
    detail: Type.String({ description: 'the thing, the fact, the next step' }),
    errors: Type.Optional(Type.Array(FieldError)),
  },
  { description: 'Why a request was refused.' },
)

export type Problem = Static<typeof Problem>
export type FieldError = Static<typeof FieldError>

/** Every code with its status and title. */
export const problemCodes = {
  'bad-request': { status: 400, title: 'Bad Request' },
  'not-authenticated': { status: 401, title: 'Unauthorized' },
  'not-allowed': { status: 403, title: 'Forbidden' },
  'not-found': { status: 404, title: 'Not Found' },
  'timed-out': { status: 408, title: 'Request Timeout' },
  conflict: { status: 409, title: 'Conflict' },
  'too-large': { status: 413, title: 'Content Too Large' },
  'not-json': { status: 415, title: 'Unsupported Media Type' },
  'wrong-fields': { status: 422, title: 'Unprocessable Content' },
  'too-many-requests': { status: 429, title: 'Too Many Requests' },
  'header-too-large': { status: 431, title: 'Request Header Fields Too Large' },
  bug: { status: 500, title: 'Internal Server Error' },
  unavailable: { status: 503, title: 'Service Unavailable' },
} as const

export type ProblemCode = keyof typeof problemCodes

export function buildProblem(code: ProblemCode, detail: string, errors: readonly FieldError[] = []): Problem {
  const { status, title } = problemCodes[code]
  return { type: 'about:blank', title, status, code, detail, ...(errors.length > 0 && { errors: [...errors] }) }
}
