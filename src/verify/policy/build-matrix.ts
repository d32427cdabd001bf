/** Builds the matrix of a cluster: every ordered pair of workloads, and each of them with the addresses outside. */
import { type Family, ipFromBigint, printIp } from '#base/ip'
import { compareText } from '#base/text'
import type { EndpointSlice } from '#model/endpoint-slice'
import type { Party } from '#trace/policy/party'
import { familiesOf, isOnHost } from '#trace/policy/party-facts'
import { classOf, type PolicyWorld } from '#trace/policy/world'
import { exposureRows } from './exposure'
import type { Matrix, MatrixRow, OutsideEnd, WorkloadEnd } from './matrix'
import { type Lanes, lanesOf, mayHaveFamily } from './matrix-lanes'
import { type OutsideRange, type OutsideRanges, outsideRanges } from './outside-ranges'
import { serviceRows } from './service-rows'
import { workloadEnds } from './workload-ends'

export type MatrixOptions = {
  /** Addresses outside of IPv6 too. */
  readonly ipv6?: boolean
  /** The slices that tell Services' backends; without them no Service is a row. */
  readonly slices?: readonly EndpointSlice[]
  /** Pods that do not exist yet. */
  readonly exposure?: boolean
}

/** Rows are sorted by source, then by target; ranges of addresses stand in their own order. */
export function buildMatrix(world: PolicyWorld, options: MatrixOptions = {}): Matrix {
  const lanes = lanesOf(world)
  const families: readonly Family[] = options.ipv6 === true ? ['ipv4', 'ipv6'] : ['ipv4']
  const ranges = outsideRanges(world)
  const workloads = workloadEnds(world.cluster, lanes, () =>
    families.flatMap((family) =>
      ranges.all(family).map(({ example }) => lanes.classOf({ kind: 'address', ip: example })),
    ),
  )
  const rows = [
    ...pairRows(lanes, workloads),
    ...families.flatMap((family) => workloads.flatMap((workload) => outsideRows(lanes, workload, { family, ranges }))),
    ...(options.slices === undefined ? [] : serviceRows(lanes, workloads, options.slices)),
  ]
  const exposed = options.exposure === true ? exposureRows(lanes, workloads) : []
  return { rows: [...rows.sort(compareRows), ...exposed], workloads }
}

function pairRows(lanes: Lanes, workloads: readonly WorkloadEnd[]): readonly MatrixRow[] {
  const { cluster } = lanes.world
  const ends = workloads.map((end) => ({
    end,
    id: lanes.classOf(end.members[0]),
    families: familiesOf(cluster, end.members[0]).join(),
    isOnHost: end.members.some(isOnHost),
  }))
  const rows: MatrixRow[] = []
  for (const source of ends) {
    for (const target of ends) {
      if (source === target) continue
      const isPlain = source.families === target.families && !source.families.includes(',')
      const conn =
        source.isOnHost || target.isOnHost
          ? lanes.textOnHost(source.end.members, target.end.members)
          : isPlain
            ? lanes.text(source.id, target.id)
            : lanes.textOf(source.end.members[0], target.end.members[0])
      if (conn !== '') rows.push({ src: source.end, dst: target.end, conn })
    }
  }
  return rows
}

type Outside = { readonly family: Family; readonly ranges: OutsideRanges }

function outsideRows(lanes: Lanes, workload: WorkloadEnd, { family, ranges }: Outside): readonly MatrixRow[] {
  const member = workload.members.find((party) => mayHaveFamily(lanes.world, party, family))
  if (member === undefined) return []
  const own = classOf(lanes.world, member, family)
  const cut = ranges.seenBy(own, family)
  const classes = cut.map(({ example }) => lanes.classOf({ kind: 'address', ip: example }))
  const ingress = joinRanges(cut, (at) => lanes.text(classes[at] ?? 0, own.id))
  const egress = joinRanges(cut, (at) => lanes.text(own.id, classes[at] ?? 0))
  return [
    ...ingress.map(({ end, conn }) => ({ src: end, dst: workload, conn })),
    ...egress.map(({ end, conn }) => ({ src: workload, dst: end, conn })),
  ]
}

type Joined = { readonly end: OutsideEnd; readonly conn: string }

/** Neighbours with the same connection are one range. */
function joinRanges(ranges: readonly OutsideRange[], textOf: (at: number) => string): readonly Joined[] {
  const joined: Joined[] = []
  let start = 0
  for (let at = 1; at <= ranges.length; at++) {
    const conn = textOf(start)
    if (at < ranges.length && textOf(at) === conn) continue
    const [first, last] = [ranges[start], ranges[at - 1]]
    if (conn !== '' && first !== undefined && last !== undefined) joined.push({ end: endOf(first, last), conn })
    start = at
  }
  return joined
}

function endOf({ family, from, example }: OutsideRange, { to }: OutsideRange): OutsideEnd {
  const party: Party = { kind: 'address', ip: example }
  return { kind: 'outside', name: rangeName(family, from, to), family, from, to, example: party }
}

export function rangeName(family: Family, from: bigint, to: bigint): string {
  return `${printIp(ipFromBigint(family, from))}-${printIp(ipFromBigint(family, to))}[External]`
}

/** Addresses first, in their own order, as a text would put 9.0.0.0 behind 10.0.0.0. */
export function compareRows(a: MatrixRow, b: MatrixRow): number {
  return compareEnds(a.src, b.src) || compareEnds(a.dst, b.dst)
}

function compareEnds(a: MatrixRow['src'], b: MatrixRow['src']): number {
  if (a === b) return 0
  if (a.kind !== 'outside' || b.kind !== 'outside') {
    const rank = Number(a.kind !== 'outside') - Number(b.kind !== 'outside')
    return rank || compareText(a.name, b.name)
  }
  if (a.family !== b.family) return a.family === 'ipv4' ? -1 : 1
  return a.from < b.from ? -1 : a.from > b.from ? 1 : 0
}
