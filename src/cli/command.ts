/** What a command is, and how it reports how it ended. */
import type { Command } from 'commander'
import type { Io } from './io'

/** 0 all well, 1 bad news, 2 usage or unreadable input, 3 the answer is unknown, 4 a bug of Portolan. */
export type ExitCode = 0 | 1 | 2 | 3 | 4

export type CommandContext = {
  readonly io: Io
  readonly end: (code: ExitCode) => void
  /** Runs another command line, on streams of the caller's choice. */
  readonly runOn: (io: Io, argv: readonly string[]) => Promise<ExitCode>
}

/** Adds one command to the program. */
export type AddCommand = (program: Command, context: CommandContext) => void
