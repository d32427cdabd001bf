/** Topology mode Auto: how many endpoints each zone should have by its share of the cluster's CPU. */
import { compareText } from '#base/text'
import { type ClusterNode, zoneLabel } from '#model/node'

/** Parts of all allocatable CPU by zone, in zone order; they add up to 1. */
export type ZoneShares = ReadonlyMap<string, number>

export type Allocation = { readonly minimum: number; readonly maximum: number; readonly desired: number }

export type Allocations =
  | { readonly kind: 'allocated'; readonly byZone: ReadonlyMap<string, Allocation> }
  | { readonly kind: 'none'; readonly why: string }

/** topologycache.go (1.34): no endpoint may get more than this much above an even load. */
const overload = 0.2

const excludedLabels = ['node-role.kubernetes.io/control-plane', 'node-role.kubernetes.io/master']

/**
 * Mirrors topologycache.go SetNodes (1.34): control-plane nodes and nodes that are not ready do not count, and one
 * node without a zone or without CPU spoils it for all.
 */
export function zoneShares(nodes: Iterable<ClusterNode>): ZoneShares | undefined {
  const cpuByZone = new Map<string, number>()
  let total = 0
  for (const { meta, isReady, allocatableMilliCpu: cpu = 0 } of nodes) {
    if (!isReady || excludedLabels.some((label) => Object.hasOwn(meta.labels, label))) continue
    const zone = meta.labels[zoneLabel]
    if (zone === undefined || zone === '' || cpu === 0) return undefined
    total += cpu
    cpuByZone.set(zone, (cpuByZone.get(zone) ?? 0) + cpu)
  }
  if (total === 0 || cpuByZone.size < 2) return undefined
  const sorted = [...cpuByZone].sort(([a], [b]) => compareText(a, b))
  return new Map(sorted.map(([zone, cpu]) => [zone, cpu / total]))
}

/** Mirrors topologycache.go getAllocations (1.34). */
export function allocateZones(shares: ZoneShares | undefined, endpoints: number): Allocations {
  if (shares === undefined) {
    return { kind: 'none', why: 'a node has no zone or no allocatable CPU, or all ready nodes are in one zone' }
  }
  const counts = `${endpoints} ready endpoints, ${shares.size} zones`
  if (shares.size > endpoints) return { kind: 'none', why: `there are too few ready endpoints (${counts})` }
  const minimums = new Map<string, number>()
  let spare = endpoints
  for (const [zone, share] of shares) {
    const minimum = Math.ceil(share * endpoints * (1 / (1 + overload)))
    minimums.set(zone, minimum)
    spare -= minimum
  }
  if (spare < 0) return { kind: 'none', why: `some zone would be overloaded by more than 20 % (${counts})` }
  const byZone = new Map<string, Allocation>()
  for (const [zone, share] of shares) {
    const minimum = minimums.get(zone) ?? 0
    byZone.set(zone, { minimum, maximum: minimum + spare, desired: Math.max(share * endpoints, minimum) })
  }
  return { kind: 'allocated', byZone }
}

/** How many endpoints each zone gives away and how many each takes, so that hints come near to the shares. */
export type Moves = { readonly giving: Map<string, number>; readonly receiving: Map<string, number> }

/** Mirrors topologycache/utils.go getGivingAndReceivingZones (1.34); among equals the first zone by name wins. */
export function planMoves(byZone: ReadonlyMap<string, Allocation>, hinted: ReadonlyMap<string, number>): Moves {
  const surplus = new Map<string, number>()
  const need = new Map<string, number>()
  for (const [zone, { desired }] of byZone) {
    const has = hinted.get(zone) ?? 0
    if (has > desired) surplus.set(zone, has - desired)
    else if (has < desired) need.set(zone, desired - has)
  }
  const moves: Moves = { giving: new Map(), receiving: new Map() }
  while (true) {
    const from = most(surplus)
    const to = most(need)
    if (from === undefined || to === undefined) return moves
    if ((from.amount < 1 && to.amount < 1) || from.amount < 0.5 || to.amount < 0.5) return moves
    moves.giving.set(from.zone, (moves.giving.get(from.zone) ?? 0) + 1)
    moves.receiving.set(to.zone, (moves.receiving.get(to.zone) ?? 0) + 1)
    surplus.set(from.zone, from.amount - 1)
    need.set(to.zone, to.amount - 1)
  }
}

function most(amounts: ReadonlyMap<string, number>): { readonly zone: string; readonly amount: number } | undefined {
  let best: { readonly zone: string; readonly amount: number } | undefined
  for (const [zone, amount] of amounts) if (amount > (best?.amount ?? 0)) best = { zone, amount }
  return best
}
