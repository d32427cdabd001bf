/** Topology hints: which zones and nodes an endpoint is meant for, by trafficDistribution or topology mode Auto. */
import type { Endpoint, EndpointSlice } from '#model/endpoint-slice'
import type { Service } from '#model/service'
import type { SliceChanges, SliceDraft } from './pack-slices'
import { type Allocation, allocateZones, type Moves, planMoves, type ZoneShares } from './share-zones'

export type HintResult = {
  readonly changes: SliceChanges
  /** Why topology mode Auto gives no hints. */
  readonly why?: string
}

/** The annotation wins over the field, and of the two annotations the older one wins (endpointslice/utils.go, 1.34). */
export function wantsAuto({ meta }: Service): boolean {
  const value =
    meta.annotations['service.kubernetes.io/topology-aware-hints'] ??
    meta.annotations['service.kubernetes.io/topology-mode']
  return value === 'Auto' || value === 'auto'
}

export const knownDistributions: readonly string[] = ['PreferClose', 'PreferSameZone', 'PreferSameNode']

export function assignHints(changes: SliceChanges, service: Service, shares: ZoneShares | undefined): HintResult {
  if (wantsAuto(service)) return assignAuto(changes, shares)
  const distribution = service.trafficDistribution
  if (distribution === undefined || !knownDistributions.includes(distribution)) {
    return { changes: eachSlice(changes, withoutHints) }
  }
  const hasNodeHints = distribution === 'PreferSameNode'
  return { changes: eachSlice(changes, (endpoint) => withOwnHints(endpoint, hasNodeHints)) }
}

/** Applies a change of hints to every endpoint; a slice that stays the same as it was stays untouched. */
function eachSlice(changes: SliceChanges, hint: (endpoint: Endpoint) => Endpoint): SliceChanges {
  const rewrite = (draft: SliceDraft): SliceDraft => ({ ...draft, endpoints: draft.endpoints.map(hint) })
  const toUpdate = changes.toUpdate.map(rewrite)
  const unchanged: EndpointSlice[] = []
  for (const slice of changes.unchanged) {
    const endpoints = slice.endpoints.map(hint)
    if (endpoints.every((endpoint, at) => endpoint === slice.endpoints[at])) unchanged.push(slice)
    else toUpdate.push({ ports: slice.ports, endpoints, existing: slice })
  }
  return { ...changes, toCreate: changes.toCreate.map(rewrite), toUpdate, unchanged }
}

function withoutHints(endpoint: Endpoint): Endpoint {
  if (endpoint.forZones === undefined && endpoint.forNodes === undefined) return endpoint
  const { forZones: _zones, forNodes: _nodes, ...rest } = endpoint
  return rest
}

/** trafficdist.go (1.34): a ready endpoint is for its own zone, and with PreferSameNode also for its own node. */
function withOwnHints(endpoint: Endpoint, hasNodeHints: boolean): Endpoint {
  if (endpoint.conditions.ready !== true) return endpoint
  const { zone } = endpoint
  const nodeName = hasNodeHints ? endpoint.nodeName : undefined
  if (isOnly(endpoint.forZones, zone) && isOnly(endpoint.forNodes, nodeName)) return endpoint
  const bare = withoutHints(endpoint)
  const zoned = zone === undefined ? bare : { ...bare, forZones: [zone] }
  return nodeName === undefined ? zoned : { ...zoned, forNodes: [nodeName] }
}

function isOnly(hints: readonly string[] | undefined, wanted: string | undefined): boolean {
  return wanted === undefined ? (hints ?? []).length === 0 : hints?.length === 1 && hints[0] === wanted
}

/** Mirrors topologycache.go AddHints (1.34). */
function assignAuto(changes: SliceChanges, shares: ZoneShares | undefined): HintResult {
  const allocations = allocateZones(shares, countReady(changes))
  if (allocations.kind === 'none') return { changes: eachSlice(changes, withoutHints), why: allocations.why }
  const kept = keepGoodHints(changes, allocations.byZone)
  const drafts = [...kept.changes.toCreate, ...kept.changes.toUpdate]
  const hinted = new Map(kept.hinted)
  for (const { endpoints } of drafts) {
    for (const { conditions, zone } of endpoints) {
      if (conditions.ready !== true) continue
      if (zone === undefined) {
        return { changes: eachSlice(kept.changes, withoutHints), why: 'a ready endpoint has no zone' }
      }
      hinted.set(zone, (hinted.get(zone) ?? 0) + 1)
    }
  }
  const moves = planMoves(allocations.byZone, hinted)
  const rewrite = (draft: SliceDraft): SliceDraft => ({
    ...draft,
    endpoints: draft.endpoints.map((endpoint) => withSharedHint(endpoint, moves)),
  })
  const { toCreate, toUpdate } = kept.changes
  return { changes: { ...kept.changes, toCreate: toCreate.map(rewrite), toUpdate: toUpdate.map(rewrite) } }
}

function countReady({ toCreate, toUpdate, unchanged }: SliceChanges): number {
  let count = 0
  for (const { endpoints } of [...toCreate, ...toUpdate, ...unchanged]) {
    for (const { conditions } of endpoints) if (conditions.ready === true) count++
  }
  return count
}

/** Untouched slices keep their hints as long as these leave room for every zone's minimum. */
function keepGoodHints(
  changes: SliceChanges,
  byZone: ReadonlyMap<string, Allocation>,
): { readonly changes: SliceChanges; readonly hinted: ReadonlyMap<string, number> } {
  const hinted = new Map<string, number>()
  const toUpdate = [...changes.toUpdate]
  const unchanged: EndpointSlice[] = []
  for (const slice of changes.unchanged) {
    const own = hintsOf(slice, byZone)
    const fits =
      own !== undefined && [...own].every(([zone, count]) => isWithin(byZone, zone, count + (hinted.get(zone) ?? 0)))
    if (own === undefined || !fits) {
      toUpdate.push({ ports: slice.ports, endpoints: slice.endpoints, existing: slice })
      continue
    }
    unchanged.push(slice)
    for (const [zone, count] of own) hinted.set(zone, count + (hinted.get(zone) ?? 0))
  }
  return { changes: { ...changes, toUpdate, unchanged }, hinted }
}

function isWithin(byZone: ReadonlyMap<string, Allocation>, zone: string, count: number): boolean {
  return count <= (byZone.get(zone)?.maximum ?? -1)
}

/** Hints of a slice by zone; undefined when a ready endpoint has none, or one for a zone that needs none. */
function hintsOf(slice: EndpointSlice, byZone: ReadonlyMap<string, Allocation>): Map<string, number> | undefined {
  const own = new Map<string, number>()
  for (const { conditions, forZones } of slice.endpoints) {
    if (conditions.ready !== true) continue
    if (forZones === undefined || forZones.length === 0) return undefined
    for (const zone of forZones) {
      if (!byZone.has(zone)) return undefined
      own.set(zone, (own.get(zone) ?? 0) + 1)
    }
  }
  return own
}

/** Its own zone, unless that zone has to give endpoints away (topologycache/utils.go redistributeHints, 1.34). */
function withSharedHint(endpoint: Endpoint, { giving, receiving }: Moves): Endpoint {
  const bare = withoutHints(endpoint)
  const { zone, conditions } = endpoint
  if (conditions.ready !== true || zone === undefined) return bare
  const [target] = receiving.keys()
  if (!giving.has(zone) || target === undefined) return { ...bare, forZones: [zone] }
  countDown(giving, zone)
  countDown(receiving, target)
  return { ...bare, forZones: [target] }
}

function countDown(counts: Map<string, number>, zone: string): void {
  const rest = (counts.get(zone) ?? 0) - 1
  if (rest > 0) counts.set(zone, rest)
  else counts.delete(zone)
}
