/** All that may become of a packet as one answer: how each part of the connections fares, and one of each kind in full. */
import type { Reason, Verdict, VerdictKind } from '#model/trace'
import type { Leg, WalkStep } from '#model/walk'
import { roundShare } from '../flatten-hops'
import type { Fate } from './fate'

export type Joined = {
  readonly leg: Leg
  /** The one whose answer and state are told: the first that is let through. */
  readonly followed: Fate | undefined
}

/** The worst of its parts is a connection's verdict. */
const worst: readonly VerdictKind[] = ['unknown', 'dropped', 'denied', 'rejected', 'allowed']

/** `backend` is the one to follow where there is a choice. */
export function joinFates(fates: readonly Fate[], backend: string | undefined): Joined {
  const groups = groupBy(fates, ({ verdict }) => `${verdict.kind} ${verdict.because[0].code}`)
  const chosen = groups
    .map((group) => ({ fate: group.find((one) => isFor(one, backend)) ?? group[0], share: sumOf(group) }))
    .flatMap(({ fate, share }) => (fate === undefined ? [] : [{ fate, share }]))
  const wanted = chosen.find(({ fate }) => isFor(fate, backend))?.fate
  const followed = wanted ?? chosen.find(({ fate }) => fate.verdict.kind === 'allowed')?.fate ?? chosen[0]?.fate
  const told = backend !== undefined && wanted !== undefined ? [wanted] : chosen.map(({ fate }) => fate)
  return {
    leg: { steps: joinSteps(told), verdict: joinVerdicts(chosen), targets: targetsOf(fates) },
    followed,
  }
}

function isFor({ target, steps }: Fate, backend: string | undefined): boolean {
  return backend !== undefined && (target ?? steps.at(-1)?.packet.destination) === backend
}

function groupBy(fates: readonly Fate[], keyOf: (fate: Fate) => string): readonly (readonly Fate[])[] {
  const groups = new Map<string, Fate[]>()
  for (const fate of fates) {
    const group = groups.get(keyOf(fate))
    if (group === undefined) groups.set(keyOf(fate), [fate])
    else group.push(fate)
  }
  return [...groups.values()]
}

function sumOf(fates: readonly Fate[]): number {
  return fates.reduce((sum, { share }) => sum + share, 0)
}

/** What they share is told once. */
function joinSteps(fates: readonly Fate[]): readonly WalkStep[] {
  return [...new Set(fates.flatMap(({ steps }) => steps))]
}

type Part = { readonly fate: Fate; readonly share: number }

function joinVerdicts(parts: readonly Part[]): Verdict {
  const total = parts.reduce((sum, { share }) => sum + share, 0)
  const sorted = [...parts].sort((a, b) => worst.indexOf(a.fate.verdict.kind) - worst.indexOf(b.fate.verdict.kind))
  const [first] = sorted
  if (first === undefined)
    return { kind: 'unknown', because: [{ code: 'path.no-way', sentence: 'no packet takes this way' }] }
  if (sorted.length === 1) return first.fate.verdict
  const reasons = sorted.flatMap(({ fate, share }): readonly Reason[] =>
    fate.verdict.because.map((reason, at) =>
      at > 0
        ? reason
        : { ...reason, sentence: `${roundShare((share / total) * 100)} % of connections: ${reason.sentence}` },
    ),
  )
  const [reason, ...rest] = reasons
  return { kind: first.fate.verdict.kind, because: [reason ?? first.fate.verdict.because[0], ...rest] }
}

function targetsOf(fates: readonly Fate[]): Leg['targets'] {
  const shares = new Map<string, number>()
  for (const { target, share, verdict } of fates)
    if (target !== undefined && verdict.kind === 'allowed') shares.set(target, (shares.get(target) ?? 0) + share)
  return [...shares].map(([address, share]) => ({ address, share: roundShare(share) }))
}
