/** A node's entry in a binding's status: written when it would say something else, and as a sign of life. */
import type { Direction } from '#compile/traffic-policy/entry'
import type { TrafficPolicyBindingStatus } from '#model/traffic-policy-binding-schema'
import { printTime } from './condition'
import type { NodeMode } from './node-view'
import type { DirectionState } from './plan-direction'

export type StatusEntry = NonNullable<TrafficPolicyBindingStatus['nodes']>[number]
type DirectionEntry = NonNullable<StatusEntry['ingress']>

/** A heartbeat of this age is written anew, so that none grows older than ten minutes. */
export const heartbeatMs = 5 * 60_000

export type EntryFacts = {
  readonly node: string
  readonly mode: NodeMode
  /** Of the binding that was acted on. */
  readonly generation: number
  readonly directions: Readonly<Record<Direction, DirectionState>>
  /** What was written last. */
  readonly before: StatusEntry | undefined
  /** Milliseconds since the epoch. */
  readonly now: number
}

/** Undefined where nothing is to be written. */
export function nextEntry({ node, mode, generation, directions, before, now }: EntryFacts): StatusEntry | undefined {
  const time = printTime(now)
  const directionOf = (direction: Direction): DirectionEntry => {
    const { state, policy, message } = directions[direction]
    const known = before?.[direction]
    return {
      state,
      ...(policy !== undefined && { policy }),
      observedGeneration: generation,
      lastTransitionTime: known?.state === state ? known.lastTransitionTime : time,
      ...(message !== undefined && { message: cut(message) }),
    }
  }
  const entry: StatusEntry = {
    node,
    ingress: directionOf('ingress'),
    egress: directionOf('egress'),
    mode: modeWords[mode],
    heartbeatTime: time,
  }
  const due = heartbeatDue(before)
  // One of the future is of a clock that was set back.
  const isDue = due === undefined || now >= due || now < due - heartbeatMs
  return isDue || !saysTheSame(entry, before) ? entry : undefined
}

/** Milliseconds since the epoch; undefined where it is due already. */
export function heartbeatDue(entry: StatusEntry | undefined): number | undefined {
  const beat = Date.parse(entry?.heartbeatTime ?? '')
  return Number.isNaN(beat) ? undefined : beat + heartbeatMs
}

const modeWords: Readonly<Record<NodeMode, NonNullable<StatusEntry['mode']>>> = {
  off: 'Off',
  audit: 'Audit',
  enforce: 'Enforce',
  unsupported: 'Unsupported',
  unknown: 'Unknown',
}

/** What the schema takes. */
const mostMessage = 4096

function cut(message: string): string {
  return message.length <= mostMessage ? message : `${message.slice(0, mostMessage - 1)}…`
}

/** But for the heartbeat; whoever wrote the fields in another order said the same. */
function saysTheSame(entry: StatusEntry, before: StatusEntry | undefined): boolean {
  if (before === undefined || before.node !== entry.node || before.mode !== entry.mode) return false
  return isSameDirection(entry.ingress, before.ingress) && isSameDirection(entry.egress, before.egress)
}

function isSameDirection(one: DirectionEntry | undefined, other: DirectionEntry | undefined): boolean {
  if (one === undefined || other === undefined) return one === other
  const isSamePolicy =
    one.policy?.name === other.policy?.name &&
    one.policy?.uid === other.policy?.uid &&
    one.policy?.generation === other.policy?.generation
  const fields = ['state', 'observedGeneration', 'lastTransitionTime', 'message'] as const
  return isSamePolicy && fields.every((field) => one[field] === other[field])
}
