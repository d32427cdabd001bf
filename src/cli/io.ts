/** What a command may touch of the world: two streams out, one in. */

export type Io = {
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  readonly stdin: AsyncIterable<Uint8Array>
  readonly isTerminal: boolean
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
  }
}
