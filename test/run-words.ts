/** A command line run in this process, its output kept. */
import { type Captured, capture } from '#cli/capture'
import type { Io } from '#cli/io'
import { runPortolan } from '#cli/run-portolan'

/** Nobody reads what is said, and nothing is typed. */
export const quietIo: Io = {
  out: () => {},
  err: () => {},
  stdin: (async function* () {})(),
  isTerminal: false,
}

/** `own` stands in for parts of the world of the command: its input, a terminal. */
export function runWords(words: readonly string[], own: Partial<Omit<Io, 'out' | 'err'>> = {}): Promise<Captured> {
  return capture({ ...quietIo, ...own }, (io) => runPortolan(words, { ...io, ...own }))
}
