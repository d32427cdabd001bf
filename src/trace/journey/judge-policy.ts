/** What NetworkPolicies say at one end of a connection, as a step of its walk. */
import type { Verdict } from '#model/trace'
import type { WalkStep } from '#model/walk'
import type { DirectionAnswer } from '../policy/answer'
import { evaluate } from '../policy/evaluate'
import type { Party } from '../policy/party'
import { judged } from './fate'
import { type Flight, walkPacket } from './flight'
import type { JourneyWorld } from './journey-world'

export type PolicyStep = { readonly step: WalkStep; readonly verdict?: Verdict }

/** `source` and `target` are whom the packet's addresses belong to as this end sees them. */
export type PolicyAsk = {
  readonly direction: 'ingress' | 'egress'
  readonly source: Party
  readonly target: Party
  readonly flight: Flight
  readonly node: string
  readonly device: string
}

export function judgePolicy({ policies }: JourneyWorld, ask: PolicyAsk): PolicyStep {
  const { direction, source, target, flight, node, device } = ask
  const answer = evaluate(policies, {
    source,
    target,
    protocol: flight.protocol,
    port: flight.port,
    family: flight.destination.family,
  })
  const own = answer[direction]
  const [because] = own.because
  const words = { allowed: 'let through', denied: 'dropped', unknown: 'not known' }
  const step: WalkStep = {
    at: { node, device, hook: `policy ${direction}` },
    did: words[own.decision],
    because: because.sentence,
    packet: walkPacket(flight),
    ...(because.object !== undefined && { object: because.object }),
    ...(because.origin !== undefined && { origin: because.origin }),
  }
  return own.decision === 'allowed' ? { step } : { step, verdict: verdictOf(own, ask) }
}

function verdictOf({ decision, because }: DirectionAnswer, { direction, device }: PolicyAsk): Verdict {
  const where = direction === 'egress' ? `on its way out of ${device}` : `on its way into ${device}`
  const [first, ...rest] = because
  const kind = decision === 'unknown' ? 'unknown' : 'denied'
  const head = judged(kind, `path.policy-${decision}`, `a policy stops it ${where}: ${first.sentence}`)
  if (kind === 'unknown') return { kind, because: [first, ...rest] }
  const [reason] = head.because
  return {
    kind,
    because: [{ ...first, ...reason, ...(first.object !== undefined && { object: first.object }) }, ...rest],
  }
}
