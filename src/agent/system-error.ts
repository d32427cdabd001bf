/** Refusals of the machine that reach the agent as they are: files, memory or rights that it has not, and no bug. */
import { Failure } from '#base/failure'
import { explainErrno } from '#kernel/errno-sentences'

/** As Node throws them. */
function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'errno' in error && 'syscall' in error
}

/** What is known to happen, as a sentence; undefined for what nobody thought of. */
export function sentenceOfTrouble(error: unknown): string | undefined {
  if (error instanceof Failure) return error.message
  return isSystemError(error) ? `${error.message}; ${explainErrno(error.code ?? '')}` : undefined
}
