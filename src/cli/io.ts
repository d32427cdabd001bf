/** What a command may touch of the world: two streams out, one in, and the kernel where that is meant. */

export type Io = {
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  readonly stdin: AsyncIterable<Uint8Array>
  readonly isTerminal: boolean
  /** Whether a command may ask this machine's kernel without being told to. */
  readonly mayAskKernel?: boolean
}

export function processIo(): Io {
  return {
    out: (text) => {
      process.stdout.write(text)
    },
    err: (text) => {
      process.stderr.write(text)
    },
    stdin: process.stdin,
    isTerminal: process.stdout.isTTY === true,
    mayAskKernel: true,
  }
}

/** A stream that takes no more is told on the other one, where that is possible, and ends the program. */
export function watchStreams(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // A reader that has seen enough (`| head`) closes the pipe: that is no error.
    if (error.code === 'EPIPE') process.exit(0)
    process.stderr.write(`portolan: standard output cannot be written: ${reasonOf(error)}\n`, () => process.exit(2))
  })
  process.stderr.on('error', (error: NodeJS.ErrnoException) => {
    // Nobody listens to the findings: the answer is still wanted.
    if (error.code !== 'EPIPE') process.exit(2)
  })
}

function reasonOf({ code, message }: NodeJS.ErrnoException): string {
  if (code === 'ENOSPC') return 'the device is full (ENOSPC); free some space, or write elsewhere'
  if (code === 'EIO') return 'the device reports an error (EIO); write elsewhere'
  return message
}
