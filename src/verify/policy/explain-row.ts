/** A row of the matrix with the reasons it rests on: ports in stretches that the same rules decide. */
import { printOrigin } from '#base/finding'
import type { Family } from '#base/ip'
import { plainText } from '#base/text'
import type { Direction } from '#compile/policy/policy-rule'
import type { PolicyReason } from '#trace/policy/answer'
import type { ConnectionSet } from '#trace/policy/decide'
import { judgeDirection } from '#trace/policy/judge-direction'
import { type LaneEnds, layLane } from '#trace/policy/lane'
import type { Nearness, Party } from '#trace/policy/party'
import { commonFamilies, isOnHost, nearnessOf } from '#trace/policy/party-facts'
import { cutPorts } from '#trace/policy/port-match'
import type { LanePoint } from '#trace/policy/semantics'
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

/** Families that policies tell apart are told apart. */
function explainEnds(world: PolicyWorld, ends: Ends): readonly string[] {
  const families = commonFamilies(world.cluster, ends.source, ends.target)
  const [first = [], ...others] = families.map((family) => explainFamily(world, ends, family))
  if (families.length === 0) return explainFamily(world, ends, undefined)
  if (others.every((other) => other.join() === first.join())) return first
  return families.flatMap((family, at) => {
    const lines = [first, ...others][at] ?? []
    return [`    over ${familyNames[family]}:${lines.length === 0 ? ' nothing' : ''}`, ...lines]
  })
}

const familyNames: Readonly<Record<Family, string>> = { ipv4: 'IPv4', ipv6: 'IPv6' }

function explainFamily(world: PolicyWorld, ends: Ends, family: Family | undefined): readonly string[] {
  const both = bothEnds(world, ends, family)
  const groups = new Map<string, Map<MatrixProtocol, string[]>>()
  for (const { protocol, from, to, text } of stretchesOf(
    world,
    betweenParties(world, ends.source, ends.target, family),
    both,
  )) {
    const ports = groups.get(text) ?? new Map<MatrixProtocol, string[]>()
    groups.set(text, ports)
    ports.set(protocol, [...(ports.get(protocol) ?? []), from === to ? `${from}` : `${from}-${to}`])
  }
  return [...groups].flatMap(([text, ports]) => [`    ${printGroup(ports)}`, ...text.split('\n')])
}

function bothEnds(world: PolicyWorld, { source, target }: Ends, family: Family | undefined): BothEnds {
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
function stretchesOf(world: PolicyWorld, set: ConnectionSet, both: BothEnds): readonly Stretch[] {
  const stretches: Stretch[] = []
  for (const protocol of matrixProtocols) {
    const cuts = cutsOf(world, both, protocol)
    for (const { from, to } of [set.allowed, set.unknown].flatMap((ranges) => portsOf(ranges, protocol))) {
      const starts = [from, ...cuts.filter((cut) => cut > from && cut <= to)]
      for (const [at, start] of starts.entries()) {
        const end = (starts[at + 1] ?? to + 1) - 1
        const text = reasonsAt(world, both, { protocol, port: start, isStretch: true })
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
      const { decision, because } = judgeDirection(world, direction, { ends: both[direction], at }).judgement
      return because.map((reason, index) => {
        const head = index === 0 ? `${direction} ${decision}:` : ''
        return `      ${head.padEnd(16)} ${plainText(printReason(reason))}`
      })
    })
    .join('\n')
}

function printReason({ sentence, path, origin }: PolicyReason): string {
  const where = [path ?? '', origin === undefined ? '' : printOrigin(origin)].filter((part) => part !== '')
  return where.length === 0 ? sentence : `${sentence} (${where.join(', ')})`
}
