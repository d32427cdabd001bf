/** Runs a command line with its output kept, as one command that shows another's needs it. */
import type { ExitCode } from './command'
import type { Io } from './io'

export type Captured = { readonly out: string; readonly err: string; readonly code: ExitCode }

export async function capture(io: Io, run: (io: Io) => Promise<ExitCode>): Promise<Captured> {
  let out = ''
  let err = ''
  const code = await run({
    ...io,
    isTerminal: false,
    out: (text) => {
      out += text
    },
    err: (text) => {
      err += text
    },
  })
  return { out, err, code }
}
