/** Spreads the endpoints of one group over slices with as few writes as the controller makes. */
import type { Endpoint, EndpointPort, EndpointSlice } from '#model/endpoint-slice'
import { identityOf, isSameEndpoint } from './build-endpoint'

/** A slice to be written: a new one, or `existing` with other endpoints. */
export type SliceDraft = {
  readonly ports: readonly EndpointPort[]
  readonly endpoints: readonly Endpoint[]
  readonly existing?: EndpointSlice
}

export type SliceChanges = {
  readonly toCreate: readonly SliceDraft[]
  readonly toUpdate: readonly SliceDraft[]
  readonly toDelete: readonly EndpointSlice[]
  readonly unchanged: readonly EndpointSlice[]
}

export type Group = { readonly ports: readonly EndpointPort[]; readonly endpoints: readonly Endpoint[] }

export type PackOptions = {
  readonly existing: readonly EndpointSlice[]
  readonly most: number
  readonly hasRightLabels: (slice: EndpointSlice) => boolean
}

type OpenDraft = { readonly ports: readonly EndpointPort[]; endpoints: Endpoint[]; existing?: EndpointSlice }

type Packing = {
  /** Endpoints that have no slice yet, by identity. */
  readonly left: Map<string, Endpoint>
  readonly toUpdate: OpenDraft[]
  readonly toDelete: EndpointSlice[]
  unchanged: EndpointSlice[]
}

/** Mirrors endpointslice/reconciler.go reconcileByPortMapping (1.34), with names and order instead of chance. */
export function packGroup(group: Group, options: PackOptions): SliceChanges {
  if (options.existing.length === 0) {
    return { toCreate: newDrafts(group, group.endpoints, options.most), toUpdate: [], toDelete: [], unchanged: [] }
  }
  const packing: Packing = {
    left: new Map(group.endpoints.map((endpoint) => [identityOf(endpoint), endpoint])),
    toUpdate: [],
    toDelete: [],
    unchanged: [],
  }
  for (const slice of options.existing) keepWanted(packing, slice, options.hasRightLabels(slice))
  fillRewritten(packing, options.most)
  const toCreate = placeRest(packing, group, options.most)
  return { toCreate, toUpdate: packing.toUpdate, toDelete: packing.toDelete, unchanged: packing.unchanged }
}

/** Step 1: a slice keeps what is still wanted, and is written again only if something in it changed. */
function keepWanted(packing: Packing, slice: EndpointSlice, hasRightLabels: boolean): void {
  const kept: Endpoint[] = []
  let isChanged = false
  for (const endpoint of slice.endpoints) {
    const identity = identityOf(endpoint)
    const wanted = packing.left.get(identity)
    if (wanted === undefined) continue
    kept.push(wanted)
    isChanged ||= !isSameEndpoint(wanted, endpoint)
    packing.left.delete(identity)
  }
  const { ports } = slice
  if (isChanged || kept.length !== slice.endpoints.length) {
    if (kept.length === 0) packing.toDelete.push(slice)
    else packing.toUpdate.push({ ports, endpoints: kept, existing: slice })
  } else if (!hasRightLabels) {
    packing.toUpdate.push({ ports, endpoints: [...slice.endpoints], existing: slice })
  } else packing.unchanged.push(slice)
}

/** Step 2: slices that are written anyway take new endpoints, the fullest first. */
function fillRewritten({ left, toUpdate }: Packing, most: number): void {
  for (const draft of toUpdate.toSorted((a, b) => b.endpoints.length - a.endpoints.length)) {
    if (left.size === 0) return
    draft.endpoints.push(...take(left, most - draft.endpoints.length))
  }
}

/** Step 3: a rest that is not a whole slice goes into one untouched slice if one can take all of it. */
function placeRest(packing: Packing, group: Group, most: number): SliceDraft[] {
  const created: SliceDraft[] = []
  while (packing.left.size > 0) {
    const target = packing.left.size < most ? sliceToFill(packing.unchanged, packing.left.size, most) : undefined
    if (target === undefined) {
      created.push({ ports: group.ports, endpoints: take(packing.left, most) })
      continue
    }
    packing.unchanged = packing.unchanged.filter((slice) => slice !== target)
    const endpoints = [...target.endpoints, ...take(packing.left, most)]
    packing.toUpdate.push({ ports: target.ports, endpoints, existing: target })
  }
  return created
}

/** The slice that is closest to full once it has taken the rest. */
function sliceToFill(slices: readonly EndpointSlice[], rest: number, most: number): EndpointSlice | undefined {
  let best: EndpointSlice | undefined
  let bestRoom = most
  for (const slice of slices) {
    const room = most - rest - slice.endpoints.length
    if (room < 0 || room >= bestRoom) continue
    best = slice
    bestRoom = room
  }
  return best
}

function take(left: Map<string, Endpoint>, count: number): Endpoint[] {
  const taken: Endpoint[] = []
  for (const [identity, endpoint] of left) {
    if (taken.length >= count) break
    taken.push(endpoint)
    left.delete(identity)
  }
  return taken
}

function newDrafts(group: Group, endpoints: readonly Endpoint[], most: number): SliceDraft[] {
  const drafts: SliceDraft[] = []
  for (let from = 0; from < endpoints.length; from += most) {
    drafts.push({ ports: group.ports, endpoints: endpoints.slice(from, from + most) })
  }
  return drafts
}
