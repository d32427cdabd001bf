/** A failure: the world said no. Thrown in doors only, caught once, in `cli/main.ts`. */

/** Every code with the exit status it ends a command with. */
export const failureCodes = {
  'usage.bad-argument': 2,
  'usage.not-found': 2,
  'input.unreadable': 2,
  'input.not-objects': 2,
  'input.not-a-ruleset': 2,
  'input.too-large': 2,
  'system.command-failed': 2,
  'kernel.unsupported': 2,
  'kernel.not-permitted': 2,
  'kernel.refused': 2,
  'kernel.exhausted': 2,
  'kernel.in-use': 2,
  'database-unavailable': 2,
  'database-refused': 2,
  'data-directory-locked': 2,
  'broker.unreachable': 2,
  'broker.refused': 2,
  'cluster.bad-config': 2,
  'cluster.unreachable': 2,
  'cluster.refused': 2,
  'cluster.unread': 3,
} as const

export type FailureCode = keyof typeof failureCodes

export class Failure extends Error {
  readonly code: FailureCode

  /** `message` names the thing, what happened and what to do next. */
  constructor(code: FailureCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'Failure'
    this.code = code
  }
}
