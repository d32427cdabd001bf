/** One packet's way through a node's hooks, rule by rule, put together from trace events. */
import type { RuleBook } from './rule-book'
import type { SeenPacket, StepVerdict, TraceEvent } from './trace-event'

type Hook = 'prerouting' | 'input' | 'forward' | 'output' | 'postrouting'

/** `packet` is the packet as its table saw it, before the table's rules. */
type StepPlace = {
  readonly family: string
  readonly table: string
  readonly chain: string
  readonly verdict: StepVerdict
  readonly packet: SeenPacket
}

/** Only rules that matched are steps. `rule` is the text as saved, `index` its place in the chain from 0. */
export type RuleStep = StepPlace & { readonly kind: 'rule'; readonly rule: string; readonly index: number }
type EndStep = StepPlace & { readonly kind: 'policy' | 'return' }
export type Step = RuleStep | EndStep

/** The packet at the very end of a hook, after every table's rules and translations there. */
export type Sight = { readonly hook: Hook; readonly packet: SeenPacket; readonly mark: number }

export type Fate =
  | { readonly kind: 'left'; readonly outInterface: string; readonly packet: SeenPacket; readonly mark: number }
  | { readonly kind: 'delivered'; readonly packet: SeenPacket; readonly mark: number }
  | { readonly kind: 'dropped' | 'rejected'; readonly at: Step }
  /** No rule ended it: routing found no way, its TTL ran out, or a queue or proxy took it. */
  | { readonly kind: 'vanished' }

export type Walk = {
  /** As it entered: from the wire before PREROUTING, from a local process before OUTPUT. */
  readonly packet: SeenPacket
  readonly mark: number
  readonly entry: 'wire' | 'local'
  readonly steps: readonly Step[]
  readonly sights: readonly Sight[]
  readonly fate: Fate
}

/** The table whose chains watch; its rules are no part of a walk. */
export const watchTable = 'portolan-trace'

type OpenWalk = {
  readonly packet: SeenPacket
  readonly entry: 'wire' | 'local'
  mark: number
  current: SeenPacket
  readonly steps: Step[]
  readonly sights: Sight[]
}

/** In the order in which the packets entered. */
export function buildWalks(events: readonly TraceEvent[], book: RuleBook): Walk[] {
  const open = new Map<string, OpenWalk>()
  const all: OpenWalk[] = []
  for (const event of events) {
    if (isEntry(event)) {
      // The kernel makes its id from the packet's address in memory: a later packet may get the same.
      const entry = event.chain === 'first-output' ? 'local' : 'wire'
      const walk = { packet: event.packet, entry, mark: 0, current: event.packet, steps: [], sights: [] } as const
      const begun: OpenWalk = { ...walk, steps: [], sights: [] }
      open.set(event.walk, begun)
      all.push(begun)
    }
    const walk = open.get(event.walk)
    if (walk) takeEvent(walk, event, book)
  }
  return all.map(({ packet, mark, entry, steps, sights }) => ({
    ...{ packet, mark, entry, steps, sights },
    fate: fateOf(steps, sights),
  }))
}

function isEntry(event: TraceEvent): event is TraceEvent & { readonly kind: 'packet' } {
  return event.kind === 'packet' && event.table === watchTable && event.chain.startsWith('first-')
}

function takeEvent(walk: OpenWalk, event: TraceEvent, book: RuleBook): void {
  if (event.kind === 'packet') {
    walk.current = event.packet
    return
  }
  if (event.table === watchTable) {
    if (event.kind !== 'policy') return
    const hook = /^last-(prerouting|input|forward|output|postrouting)$/.exec(event.chain)?.[1]
    if (hook === undefined) walk.mark = event.mark
    else walk.sights.push({ hook: hook as Hook, packet: walk.current, mark: event.mark })
    return
  }
  const { family, table, chain, verdict } = event
  const place = { family, table, chain, verdict, packet: walk.current }
  if (event.kind !== 'rule') {
    walk.steps.push({ ...place, kind: event.kind })
    return
  }
  const booked = book.find(event)
  if (booked === undefined)
    throw new Error(`a packet met rule ${event.handle} of ${table} ${chain}, which is not there`)
  walk.steps.push({ ...place, kind: 'rule', rule: booked.text, index: booked.index })
}

function fateOf(steps: readonly Step[], sights: readonly Sight[]): Fate {
  const last = steps.at(-1)
  if (last?.verdict.kind === 'drop') {
    const rejects = last.kind === 'rule' && /-j REJECT\b|\breject\b/.test(last.rule)
    return { kind: rejects ? 'rejected' : 'dropped', at: last }
  }
  const sight = sights.at(-1)
  if (sight?.hook === 'input') return { kind: 'delivered', packet: sight.packet, mark: sight.mark }
  if (sight?.hook !== 'postrouting') return { kind: 'vanished' }
  const { packet, mark } = sight
  return { kind: 'left', outInterface: packet.outInterface ?? '', packet, mark }
}
