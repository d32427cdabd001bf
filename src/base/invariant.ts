/** Statements that only a bug in Portolan can make false. */

export function invariant(condition: unknown, sentence: string): asserts condition {
  if (!condition) throw new Error(`Portolan broke its own rule: ${sentence}. Please report this with the input.`)
}
