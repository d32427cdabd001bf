/** What is not allowed, remembered by classes of parties, and the verdicts that it comes to between parties with names. */
import type { ObjectRef } from '#base/finding'
import type { Direction } from '#compile/policy/policy-rule'
import type { Nearness } from '#trace/policy/party'
import type { AuditParty } from './audit-parties'

export type PortedProtocol = 'TCP' | 'UDP' | 'SCTP'

export type Pair = {
  readonly source: AuditParty
  readonly target: AuditParty
  readonly protocol: PortedProtocol
  readonly port: number
}

export type Denial = {
  readonly direction: Direction
  /** Whom the policies hold for, and who is at the other end. */
  readonly subject: string
  readonly other: string
  readonly port: number
  readonly protocol: PortedProtocol
  readonly policies: readonly ObjectRef[]
  /** True where a rule denies it, false where no rule allows it. */
  readonly isByRule: boolean
}

export type AuditVerdict =
  | { readonly kind: 'allowed' }
  /** `number`: of this verdict among those of its judge. */
  | { readonly kind: 'denied'; readonly denials: readonly Denial[]; readonly peer: string; readonly number: number }
  | { readonly kind: 'unknown'; readonly reason: string; readonly sentence: string }

/**
 * The verdicts that were made of it, by the names of source, target and peer: joining them would take longer than the rest. Most
 * classes have one name, so that the last verdict is mostly the next one, too.
 */
export type Refusal = {
  readonly verdict: ClassVerdict
  readonly verdicts: Map<string, Map<string, Map<string, NamedVerdict>>>
  last: NamedVerdict | undefined
}

type Denied = Extract<AuditVerdict, { kind: 'denied' }>
type Unknown = Extract<AuditVerdict, { kind: 'unknown' }>

type NamedVerdict = { readonly source: string; readonly target: string; readonly verdict: Denied }

export type ClassDenial = Omit<Denial, 'subject' | 'other' | 'port' | 'protocol'>

/** Of every pair of parties of the same two classes. */
export type ClassVerdict =
  | { readonly kind: 'denied'; readonly denials: readonly ClassDenial[] }
  | Extract<AuditVerdict, { kind: 'unknown' }>

/** By the class of the source, that of the target with their nearness, then by protocol and port. */
export type Refusals = {
  readonly bySource: (Map<number, Map<number, Refusal>> | undefined)[]
  readonly counts: { verdicts: number }
}

export function newRefusals(): Refusals {
  return { bySource: [], counts: { verdicts: 0 } }
}

export function newRefusal(verdict: ClassVerdict): Refusal {
  return { verdict, verdicts: new Map(), last: undefined }
}

const nearnesses: Readonly<Record<Nearness, number>> = {
  apart: 0,
  'same-node': 1,
  'perhaps-same-node': 2,
  'same-pod': 3,
}

/** Keys are small whole numbers, which a map finds several times as fast as large ones. */
export function refusalsBetween(
  { bySource }: Refusals,
  { source, target }: Pair,
  nearness: Nearness,
): Map<number, Refusal> {
  const ofSource = bySource[source.of.id] ?? new Map<number, Map<number, Refusal>>()
  bySource[source.of.id] = ofSource
  const key = (target.of.id * 4 + nearnesses[nearness]) * 2 + Number(target.hasPorts)
  const known = ofSource.get(key)
  if (known !== undefined) return known
  const made = new Map<number, Refusal>()
  ofSource.set(key, made)
  return made
}

type DenialFacts = { readonly pair: Pair; readonly peer: string }

/** One value for all flows between the same two names, so that whoever counts them can know it again. */
export function verdictOf(refusals: Refusals, refusal: Refusal, facts: DenialFacts): Denied | Unknown {
  const { verdict, last } = refusal
  if (verdict.kind === 'unknown') return verdict
  const { source, target } = facts.pair
  if (last?.source === source.name && last.target === target.name && last.verdict.peer === facts.peer) {
    return last.verdict
  }
  const named = namedVerdict(refusals, { refusal, denials: verdict.denials }, facts)
  refusal.last = named
  return named.verdict
}

type Refused = { readonly refusal: Refusal; readonly denials: readonly ClassDenial[] }

function namedVerdict({ counts }: Refusals, { refusal, denials }: Refused, { pair, peer }: DenialFacts): NamedVerdict {
  const { verdicts } = refusal
  const { source, target, protocol, port } = pair
  const ofSource = verdicts.get(source.name) ?? new Map<string, Map<string, NamedVerdict>>()
  const ofTarget = ofSource.get(target.name) ?? new Map<string, NamedVerdict>()
  const known = ofTarget.get(peer)
  if (known !== undefined) return known
  const named = denials.map((one) => ({
    ...one,
    subject: one.direction === 'egress' ? source.name : target.name,
    other: one.direction === 'egress' ? target.name : source.name,
    port,
    protocol,
  }))
  const made: NamedVerdict = {
    source: source.name,
    target: target.name,
    verdict: { kind: 'denied', denials: named, peer, number: counts.verdicts++ },
  }
  verdicts.set(source.name, ofSource.set(target.name, ofTarget.set(peer, made)))
  return made
}
