/** Counts what happened to packets, so that a run shows, and can be held to, what it has tried. */
import type { PacketOutcome } from './trace-packets'

export type Tally = Map<string, number>

export function tallyPackets(tally: Tally, outcomes: readonly PacketOutcome[]): void {
  for (const outcome of outcomes) {
    for (const kind of kindsOf(outcome)) tally.set(kind, (tally.get(kind) ?? 0) + 1)
  }
}

function kindsOf({ packet, walks }: PacketOutcome): readonly string[] {
  const { fate } = walks.at(-1) ?? walks[0]
  const steps = walks.flatMap((walk) => walk.steps)
  const isRemembered = steps.some((step) => step.kind === 'rule' && /-m recent --rcheck/.test(step.rule))
  const end = 'packet' in fate ? fate.packet : undefined
  return [
    'packets',
    fate.kind,
    ...(end !== undefined && end.destination !== packet.destination ? ['destination translated'] : []),
    ...(end !== undefined && end.source !== packet.source ? ['source translated'] : []),
    ...(walks.length > 1 ? ['came back on lo'] : []),
    ...(walks[0].entry === 'local' ? ['from a process'] : []),
    ...(isRemembered ? ['client remembered'] : []),
  ]
}

export function printTally(tally: Tally): string {
  return [...tally].map(([kind, count]) => `${count} ${kind}`).join(', ')
}
