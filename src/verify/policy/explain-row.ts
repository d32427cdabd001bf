/** A row of the matrix with the reasons it rests on: ports in stretches that the same rules decide. */
import { printOrigin } from '#base/finding'
import { plainText } from '#base/text'
import type { Direction } from '#compile/policy/policy-rule'
import type { PolicyReason } from '#trace/policy/answer'
import { judgeDirection } from '#trace/policy/judge-direction'
import { type LaneEnds, layLane } from '#trace/policy/lane'
import type { Nearness, Party } from '#trace/policy/party'
import { commonFamily, isOnHost, nearnessOf } from '#trace/policy/party-facts'
import { cutPorts } from '#trace/policy/port-match'
import { reportRule } from '#trace/policy/report-rule'
import type { LanePoint, RuleAtPort } from '#trace/policy/semantics'
import { classOf, type PolicyWorld } from '#trace/policy/world'
import { allConnections, type MatrixProtocol, matrixProtocols, portsOf } from './connection-text'
import type { MatrixEnd, MatrixRow, ServiceEnd, WorkloadEnd } from './matrix'
import { betweenParties } from './matrix-lanes'

/** Indented lines. A Service's row rests on those of its backends. */
export function explainRow(world: PolicyWorld, { src, dst }: MatrixRow): readonly string[] {
  if (src.kind === 'service' || dst.kind === 'service') return ['    by its backends: see policy eval --to NS/svc/NAME']
  const [sources, targets] = [partiesOf(src), partiesOf(dst)]
  // Only on the hosts' network does it matter where a member runs.
  const isHosted = [...sources, ...targets].some(isOnHost)
  if (!isHosted) return explainEnds(world, { source: sources[0], target: targets[0] })
  const byNearness = new Map<Nearness, Ends>()
  for (const source of sources) {
    for (const target of targets) {
      const nearness = nearnessOf(source, target)
      if (!byNearness.has(nearness)) byNearness.set(nearness, { source, target })
    }
  }
  return [...byNearness.values()].flatMap((ends) => explainEnds(world, ends))
}

function partiesOf(end: Exclude<MatrixEnd, ServiceEnd>): WorkloadEnd['members'] {
  return end.kind === 'workload' ? end.members : [end.example]
}

type Ends = { readonly source: Party; readonly target: Party }
type BothEnds = Readonly<Record<Direction, LaneEnds>>

function explainEnds(world: PolicyWorld, ends: Ends): readonly string[] {
  const both = bothEnds(world, ends)
  const groups = new Map<string, Map<MatrixProtocol, string[]>>()
  for (const { protocol, from, to, text } of stretchesOf(world, ends, both)) {
    const ports = groups.get(text) ?? new Map<MatrixProtocol, string[]>()
    groups.set(text, ports)
    ports.set(protocol, [...(ports.get(protocol) ?? []), from === to ? `${from}` : `${from}-${to}`])
  }
  return [...groups].flatMap(([text, ports]) => [`    ${printGroup(ports)}`, ...text.split('\n')])
}

function bothEnds(world: PolicyWorld, { source, target }: Ends): BothEnds {
  const family = commonFamily(world.cluster, source, target)
  const nearness = nearnessOf(source, target)
  const from = { ...classOf(world, source, family), party: source }
  const to = { ...classOf(world, target, family), party: target }
  return { egress: { subject: from, peer: to, nearness }, ingress: { subject: to, peer: from, nearness } }
}

function printGroup(ports: ReadonlyMap<MatrixProtocol, readonly string[]>): string {
  const isWhole = matrixProtocols.every((protocol) => ports.get(protocol)?.join() === '1-65535')
  if (isWhole) return allConnections
  return [...ports].map(([protocol, texts]) => `${protocol} ${texts.join(',')}`).join('; ')
}

type Stretch = { readonly protocol: MatrixProtocol; readonly from: number; readonly to: number; readonly text: string }

/** Ranges of the row, cut where a rule begins or ends, and joined again where that makes no difference. */
function stretchesOf(world: PolicyWorld, { source, target }: Ends, both: BothEnds): readonly Stretch[] {
  const set = betweenParties(world, source, target)
  const stretches: Stretch[] = []
  for (const protocol of matrixProtocols) {
    const cuts = cutsOf(world, both, protocol)
    for (const { from, to } of [set.allowed, set.unknown].flatMap((ranges) => portsOf(ranges, protocol))) {
      const starts = [from, ...cuts.filter((cut) => cut > from && cut <= to)]
      for (const [at, start] of starts.entries()) {
        const end = (starts[at + 1] ?? to + 1) - 1
        const text = reasonsAt(world, both, { protocol, port: start })
        const last = stretches.at(-1)
        const isMore = last?.protocol === protocol && last.text === text && last.to + 1 === start
        if (isMore) stretches[stretches.length - 1] = { ...last, to: end }
        else stretches.push({ protocol, from: start, to: end, text })
      }
    }
  }
  return stretches
}

function cutsOf(world: PolicyWorld, both: BothEnds, protocol: MatrixProtocol): readonly number[] {
  const cuts = (['egress', 'ingress'] as const).flatMap((direction) =>
    cutPorts(layLane(world, direction, both[direction]), protocol, world.semantics.ownPorts?.(protocol)),
  )
  return [...new Set(cuts)].sort((a, b) => a - b)
}

function reasonsAt(world: PolicyWorld, both: BothEnds, at: LanePoint): string {
  return (['egress', 'ingress'] as const)
    .flatMap((direction) => {
      const { rules, judgement } = judgeDirection(world, direction, { ends: both[direction], at })
      return judgement.because.map((reason, index) => {
        const head = index === 0 ? `${direction} ${judgement.decision}:` : ''
        return `      ${head.padEnd(16)} ${plainText(printReason(reason, rules, direction))}`
      })
    })
    .join('\n')
}

/** A rule is told whole, as one port of a stretch says nothing of the others. */
function printReason(reason: PolicyReason, rules: readonly RuleAtPort[], direction: Direction): string {
  const { path, origin } = reason
  const rule = rules.find((one) => one.rule.path === path && isSameObject(one, reason))
  const sentence = rule?.isCertain === true ? reportRule(rule, true, direction).sentence : reason.sentence
  const where = [path ?? '', origin === undefined ? '' : printOrigin(origin)].filter((part) => part !== '')
  return where.length === 0 ? sentence : `${sentence} (${where.join(', ')})`
}

function isSameObject({ policy: { source } }: RuleAtPort, { object }: PolicyReason): boolean {
  const { kind, namespace, name } = source.object
  return object?.kind === kind && object.namespace === namespace && object.name === name
}
