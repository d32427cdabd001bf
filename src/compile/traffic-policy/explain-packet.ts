/** What a policy does with a packet, by every decider there is, and whether they agree. */
import type { PortRange } from '#base/port-range'
import type { TrafficPolicySpec } from '#model/traffic-policy-schema'
import { type EntryList, evaluateEntries } from './evaluate-entries'
import { evaluatePolicy } from './evaluate-policy'
import { type Decision, isSameDecision, type PolicyPacket } from './policy-packet'

/** A decider may be unable to be asked about a packet. */
export type Decider = { readonly name: string; readonly decide: (packet: PolicyPacket) => Decision | undefined }

/** A field that is left out may be anything: each value that the policy tells apart is tried. */
export type PartialPacket = Omit<PolicyPacket, 'sourcePort' | 'destinationPort' | 'icmpType' | 'icmpCode'> &
  Partial<Pick<PolicyPacket, 'sourcePort' | 'destinationPort' | 'icmpType' | 'icmpCode'>>

export type PacketExplanation =
  | {
      readonly kind: 'agreed'
      /** One, unless what was left out matters. */
      readonly decisions: readonly [Decision, ...Decision[]]
      readonly missing: readonly PacketField[]
      /** The deciders that agree. */
      readonly by: readonly string[]
    }
  | {
      readonly kind: 'disagreed'
      readonly packet: PolicyPacket
      readonly answers: readonly { readonly name: string; readonly decision: Decision }[]
    }
  /** Too many packets to try. */
  | { readonly kind: 'open'; readonly missing: readonly PacketField[] }

export type PacketField = 'sourcePort' | 'destinationPort' | 'icmpType' | 'icmpCode'

export type Deciding = {
  readonly spec: TrafficPolicySpec
  readonly compiled: EntryList
  /** Deciders beside the two that are always asked, such as the kernel. */
  readonly others?: readonly Decider[]
}

export function decidersOf({ spec, compiled, others = [] }: Deciding): readonly Decider[] {
  return [
    { name: 'policy', decide: (packet) => evaluatePolicy(spec, packet) },
    { name: 'compiled entries', decide: (packet) => evaluateEntries(compiled, packet) },
    ...others,
  ]
}

export function explainPacket(packet: PartialPacket, deciding: Deciding): PacketExplanation {
  const tried = missingFields(packet).map((field) => ({ field, values: valuesOf(field, deciding) }))
  const values = tried.map((one) => one.values)
  // What the policy never asks of needs no telling.
  const missing = tried.filter((one) => one.values.length > 1).map(({ field }) => field)
  if (values.reduce((count, list) => count * list.length, 1) > mostTried) return { kind: 'open', missing }
  const deciders = decidersOf(deciding)
  const found: Decision[] = []
  const by = new Set<string>()
  for (const given of combinations(tried)) {
    const whole: PolicyPacket = { ...packet, ...given }
    const answers = deciders.flatMap(({ name, decide }) => {
      const decision = decide(whole)
      return decision === undefined ? [] : [{ name, decision }]
    })
    for (const { name } of answers) by.add(name)
    const [first, ...rest] = answers
    if (first === undefined || rest.some(({ decision }) => !isSameDecision(decision, first.decision))) {
      return { kind: 'disagreed', packet: whole, answers }
    }
    if (!found.some((one) => isSameDecision(one, first.decision))) found.push(first.decision)
  }
  const [first, ...rest] = found
  return first === undefined
    ? { kind: 'open', missing }
    : { kind: 'agreed', decisions: [first, ...rest], missing, by: [...by] }
}

const mostTried = 100_000

export function missingFields(packet: PartialPacket): readonly PacketField[] {
  if (packet.isLaterFragment === true || typeof packet.protocol === 'number') return []
  const isIcmp = packet.protocol === 'icmp' || packet.protocol === 'icmpv6'
  const fields = isIcmp ? (['icmpType', 'icmpCode'] as const) : (['sourcePort', 'destinationPort'] as const)
  return fields.filter((field) => packet[field] === undefined)
}

const most: Readonly<Record<PacketField, number>> = {
  sourcePort: 65535,
  destinationPort: 65535,
  icmpType: 255,
  icmpCode: 255,
}

/** Each value at which some range begins, or has just ended, and the least of all. */
function valuesOf(field: PacketField, { spec, compiled }: Deciding): readonly number[] {
  const ranges = [
    ...spec.rules.flatMap(({ match }) => rangesOf(match ?? {}, field)),
    ...compiled.entries.flatMap(({ [`${field}s` as 'sourcePorts']: range, [field as 'icmpType']: one }) =>
      range !== undefined ? [range] : one !== undefined ? [{ from: one, to: one }] : [],
    ),
  ]
  const edges = new Set([field === 'icmpType' || field === 'icmpCode' ? 0 : 1])
  for (const { from, to } of ranges) {
    edges.add(from)
    if (to < most[field]) edges.add(to + 1)
  }
  return [...edges].sort((a, b) => a - b)
}

function rangesOf(
  match: NonNullable<TrafficPolicySpec['rules'][number]['match']>,
  field: PacketField,
): readonly PortRange[] {
  const { sourcePorts = [], destinationPorts = [], icmp = [] } = match
  if (field === 'sourcePort') return sourcePorts.map(({ from, to }) => ({ from, to: to ?? from }))
  if (field === 'destinationPort') return destinationPorts.map(({ from, to }) => ({ from, to: to ?? from }))
  return icmp.flatMap(({ type, code }) => {
    const value = field === 'icmpType' ? type : code
    return value === undefined ? [] : [{ from: value, to: value }]
  })
}

type Tried = { readonly field: PacketField; readonly values: readonly number[] }
type Given = { readonly [Field in PacketField]?: number }

function combinations(tried: readonly Tried[]): readonly Given[] {
  return tried.reduce<readonly Given[]>(
    (found, { field, values }) => found.flatMap((given) => values.map((value) => ({ ...given, [field]: value }))),
    [{}],
  )
}
