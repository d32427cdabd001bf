/** Which of a lane's rules hold at one port, and where along the ports that changes. */
import { hasPort } from '#base/port-range'
import type { PolicyProtocol, PortMatch } from '#compile/policy/policy-rule'
import type { NamedPort } from '#model/pod'
import type { Lane, LanePoint, MatchedRule, RuleAtPort } from './semantics'

export function rulesAt(lane: Lane, at: LanePoint): readonly RuleAtPort[] {
  return lane.matched.flatMap((matched) => ruleAt(lane, matched, at) ?? [])
}

function ruleAt(lane: Lane, matched: MatchedRule, at: LanePoint): RuleAtPort | undefined {
  const { ports } = matched.rule
  if (ports === 'any') return { ...matched, ports: [] }
  const held = ports.filter((port) => holdsAt(port, at, lane.portNames))
  return held.length === 0 ? undefined : { ...matched, ports: held }
}

/** A match without protocol is for those that have ports. */
export function holdsAt(match: PortMatch, { protocol, port }: LanePoint, named: readonly NamedPort[]): boolean {
  if (match.protocol === undefined ? !hasPorts(protocol) : match.protocol !== protocol) return false
  if (match.kind === 'range') return hasPort(match.range, port)
  return named.some((one) => one.name === match.name && one.protocol === protocol && one.port === port)
}

export function hasPorts(protocol: PolicyProtocol): boolean {
  return protocol === 'TCP' || protocol === 'UDP' || protocol === 'SCTP'
}

/** The first ports of the pieces in which every port is alike, in order. */
/** `own` are single ports that the semantics treats apart. */
export function cutPorts(lane: Lane, protocol: PolicyProtocol, own: readonly number[] = []): readonly number[] {
  const starts = new Set([0, ...own.flatMap((port) => [port, port + 1])])
  for (const { rule } of lane.matched) {
    if (rule.ports === 'any') continue
    for (const match of rule.ports) addCuts(starts, match, { lane, protocol })
  }
  return [...starts].filter((start) => start <= 65535).sort((a, b) => a - b)
}

type CutContext = { readonly lane: Lane; readonly protocol: PolicyProtocol }

function addCuts(starts: Set<number>, match: PortMatch, { lane, protocol }: CutContext): void {
  if (match.protocol !== undefined && match.protocol !== protocol) return
  if (match.kind === 'range') {
    starts.add(match.range.from).add(match.range.to + 1)
    return
  }
  for (const { name, port } of lane.portNames) if (name === match.name) starts.add(port).add(port + 1)
}
