/** The connections that two lanes leave together: ranges of ports by protocol, those allowed and those that are unknown. */
import type { PortRange } from '#base/port-range'
import type { PolicyProtocol } from '#compile/policy/policy-rule'
import type { Decision } from './answer'
import type { PortPieces, PortTable } from './port-pieces'

/** Sorted ranges that neither overlap nor touch, by protocol; protocols without any are left out. */
export type PortRanges = ReadonlyMap<PolicyProtocol, readonly PortRange[]>

/** Of TCP, UDP and SCTP, and of the ports that exist there: 1 to 65535. */
export type ConnectionSet = { readonly allowed: PortRanges; readonly unknown: PortRanges }

const matrixProtocols = ['TCP', 'UDP', 'SCTP'] as const

/** Both must allow; what one denies is denied whatever the other says. */
export function joinTables(ingress: PortTable, egress: PortTable): ConnectionSet {
  const allowed = new Map<PolicyProtocol, PortRange[]>()
  const unknown = new Map<PolicyProtocol, PortRange[]>()
  for (const protocol of matrixProtocols) {
    for (const { decision, range } of joinPieces(ingress.protocols[protocol], egress.protocols[protocol])) {
      if (decision === 'allowed') addRange(allowed, protocol, range)
      if (decision === 'unknown') addRange(unknown, protocol, range)
    }
  }
  return { allowed, unknown }
}

export function joinDecisions(a: Decision, b: Decision): Decision {
  if (a === 'denied' || b === 'denied') return 'denied'
  return a === 'unknown' || b === 'unknown' ? 'unknown' : 'allowed'
}

function* joinPieces(
  a: PortPieces,
  b: PortPieces,
): Generator<{ readonly decision: Decision; readonly range: PortRange }> {
  let from = 1
  for (let [i, j] = [0, 0]; from <= 65535; ) {
    const to = Math.min(a.ends[i] ?? 65535, b.ends[j] ?? 65535)
    if (to >= from) {
      yield { decision: joinDecisions(a.decisions[i] ?? 'unknown', b.decisions[j] ?? 'unknown'), range: { from, to } }
    }
    from = Math.max(from, to + 1)
    if (a.ends[i] === to) i++
    if (b.ends[j] === to) j++
  }
}

function addRange(ranges: Map<PolicyProtocol, PortRange[]>, protocol: PolicyProtocol, range: PortRange): void {
  const list = ranges.get(protocol) ?? []
  const last = list.at(-1)
  if (last !== undefined && last.to + 1 === range.from) list[list.length - 1] = { from: last.from, to: range.to }
  else list.push(range)
  ranges.set(protocol, list)
}
