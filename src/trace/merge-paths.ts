/** Rejoins the parts of a path that left a rule with the same packet: what some of them met becomes conditional hops. */
import type { HopEvent, Log, Path } from './path'
import type { Answered } from './question'

export function isSamePacket(a: Path, b: Path): boolean {
  if (a.fields === b.fields) return a.markCause === b.markCause
  if (a.markCause !== b.markCause) return false
  const keys = Object.keys(a.fields) as (keyof Path['fields'])[]
  return keys.every((key) => a.fields[key] === b.fields[key])
}

/** Only for parts that are all of `before`, each with its packet unchanged. */
export function mergeParts(before: Path, parts: readonly Path[]): Path {
  let log = before.log
  for (const part of parts) {
    const when = newAnswers(before, part)
    for (const hop of hopsSince(before.log, part.log)) {
      log = { hop: hop.when === undefined && when.length > 0 ? { ...hop, when } : hop, earlier: log }
    }
  }
  return { ...before, log }
}

function newAnswers(before: Path, part: Path): readonly Answered[] {
  const added: Answered[] = []
  for (let entry = part.answers; entry !== undefined && entry !== before.answers; entry = entry.earlier)
    added.unshift(entry)
  return added
}

function hopsSince(since: Log | undefined, log: Log | undefined): readonly HopEvent[] {
  const hops: HopEvent[] = []
  for (let entry = log; entry !== undefined && entry !== since; entry = entry.earlier) hops.unshift(entry.hop)
  return hops
}
