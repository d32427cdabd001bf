/** What `-m recent` remembers, foretold from the packets sent before: which of a packet's paths are possible now. */
import type { Outcome } from '#trace/walk-hooks'
import type { PacketOutcome } from './trace-packets'

export type RecentLists = {
  /** Whether each answer that a path assumes about a list may be true for this source. */
  readonly allows: (outcome: Outcome, source: string) => boolean
  /** Takes over what the packets of one call did: their order among themselves is the kernel's. */
  readonly learn: (outcomes: readonly PacketOutcome[]) => void
  /** What a call's packets may do to each other makes both answers possible. */
  readonly expect: (outcomes: readonly PacketOutcome[]) => void
}

export function createRecentLists(): RecentLists {
  const known = new Set<string>()
  const possible = new Set<string>()
  return {
    allows: ({ path }, source) => {
      for (let entry = path.answers; entry !== undefined; entry = entry.earlier) {
        const list = /^recent:(.+):\d*:.*$/.exec(entry.question.key)?.[1]
        if (list === undefined) continue
        const key = `${list} ${source}`
        if (entry.answer ? !possible.has(key) : known.has(key)) return false
      }
      return true
    },
    expect: (outcomes) => {
      for (const key of outcomes.flatMap(listedBy)) possible.add(key)
    },
    learn: (outcomes) => {
      for (const key of outcomes.flatMap(listedBy)) known.add(key)
    },
  }
}

function listedBy({ packet, walks }: PacketOutcome): readonly string[] {
  return walks.flatMap(({ steps }) =>
    steps.flatMap((step) => {
      const list = step.kind === 'rule' ? /-m recent --set --name (\S+)/.exec(step.rule)?.[1] : undefined
      return list === undefined ? [] : [`${list} ${packet.source}`]
    }),
  )
}
