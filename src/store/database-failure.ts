/** What a database's error means: away for a while, refused for good, or a mistake of ours. */
import { Failure } from '#base/failure'

/** SQLSTATE where the database answered, a system error's name where the connection did not. */
export function errorCode(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : ''
}

const networkCodes = [
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENOENT',
]

/** Shutting down, starting up, crashed, connection lost, too many connections. */
const awayStates = /^(57P0[1-5]|08...|53300|58030)$/

/** Deadlock and serialisation: the same statement may succeed the next time. */
export function isWorthRetrying(error: unknown): boolean {
  return ['40P01', '40001'].includes(errorCode(error))
}

/** A value that the database cannot take: data exceptions, violated constraints, and what no index or stack can hold. */
export function isBadValue(error: unknown): boolean {
  return /^(22|23|54)...$/.test(errorCode(error))
}

/** The failure to throw for an error of a database; anything that is not known stays as it is. */
export function asFailure(error: unknown): unknown {
  if (error instanceof Failure || !(error instanceof Error)) return error
  const code = errorCode(error)
  if (awayStates.test(code) || networkCodes.includes(code) || isLostConnection(error.message)) {
    return new Failure('database-unavailable', `the database cannot be reached: ${error.message}`, error)
  }
  if (isQueueTooLong(error.message)) {
    return new Failure(
      'database-unavailable',
      'the database is too slow for what is asked of it: no connection was free in time',
      error,
    )
  }
  if (code === '57014') {
    return new Failure('database-unavailable', 'the database took longer than the statement timeout allows', error)
  }
  if (/^(28...|3D000|42501)$/.test(code)) {
    return new Failure('database-refused', `the database refused: ${error.message}`, error)
  }
  if (/^53...$/.test(code)) {
    return new Failure('database-unavailable', `the database is out of room: ${error.message}`, error)
  }
  return error
}

/** Sentences of `pg` 8.23 and pg-pool that carry no code. */
function isLostConnection(message: string): boolean {
  return /Connection terminated|Client has encountered a connection error|not queryable|Cannot use a pool after calling end/.test(
    message,
  )
}

/** pg-pool’s sentence when all its connections were in use all the time; an attempt to connect that takes too long has another. */
function isQueueTooLong(message: string): boolean {
  return message === 'timeout exceeded when trying to connect'
}
