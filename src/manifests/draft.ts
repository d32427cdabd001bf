/** A cluster while it is being read: open maps, and what the texts left for later steps to fill in. */
import type { Finding, Origin } from '#base/finding'
import { printOrigin } from '#base/finding'
import { type OpenObjects, openObjects } from '#model/cluster'
import { keyOf, type Meta, refOf } from '#model/meta'
import type { ClusterNode } from '#model/node'
import type { Pod } from '#model/pod'
import type { Service } from '#model/service'
import { workloadKey } from '#model/workload'
import { manifestFinding } from './findings'
import type { Fields } from './kinds/fields'
import type { NodeRules } from './kinds/node'
import type { ServiceText } from './kinds/service'
import type { Workload } from './kinds/workload'
import type { Writable } from './kinds/writable'

/**
 * A pod whose place or addresses are still to be chosen. `isNew` when its text had no status at all: it will run, and be
 * ready if `isReady`. `placement` is its spec, unread, for what the scheduler asks of it.
 */
export type OpenPod = {
  readonly pod: Writable<Pod>
  readonly placement: Fields
  readonly isNew: boolean
  readonly isReady: boolean
}

export type Draft = Omit<OpenObjects, 'services' | 'pods' | 'nodes'> & {
  readonly findings: Finding[]
  readonly services: Map<string, Writable<Service>>
  readonly pods: Map<string, Writable<Pod>>
  readonly nodes: Map<string, Writable<ClusterNode>>
  /** By `Kind namespace/name`. */
  readonly workloads: Map<string, Workload>
  readonly openServices: Map<string, ServiceText>
  readonly openPods: Map<string, OpenPod>
  /** Nodes whose text had no status. */
  readonly openNodes: Set<string>
  readonly nodeRules: Map<string, NodeRules>
}

export function newDraft(): Draft {
  return {
    ...openObjects(),
    findings: [],
    workloads: new Map(),
    openServices: new Map(),
    openPods: new Map(),
    openNodes: new Set(),
    nodeRules: new Map(),
  }
}

/** Maps and sets keep the order of what was added, so that the newest are at the end. */
export function markDraft(draft: Draft): () => void {
  const parts = Object.values(draft)
  const sizes = parts.map((part) => (Array.isArray(part) ? part.length : part.size))
  return () => {
    for (const [index, part] of parts.entries()) {
      const size = sizes[index] ?? 0
      if (Array.isArray(part)) part.length = size
      else for (const key of [...part.keys()].slice(size)) part.delete(key)
    }
  }
}

/** Puts an object into its map; of two with one name the later stays, and a finding says so. Returns the key. */
export function keep<T extends { readonly meta: Meta }>(draft: Draft, map: Map<string, T>, object: T): string {
  return keepAs(draft, map, keyOf(object.meta), object)
}

/** For a map that several kinds share, which their key tells apart. */
export function keepAs<T extends { readonly meta: Meta }>(
  draft: Draft,
  map: Map<string, T>,
  key: string,
  object: T,
): string {
  const earlier = map.get(key)
  if (earlier !== undefined) reportDuplicate(draft, earlier.meta, object.meta.origin)
  map.set(key, object)
  return key
}

export function keepWorkload(draft: Draft, workload: Workload): void {
  keepAs(draft, draft.workloads, workloadKey(workload.kind, workload.meta), workload)
}

/** A later step's note on an object, which must be marked as assumed wherever it is shown. */
export function assume(object: { meta: Meta }, ...paths: readonly string[]): void {
  const { assumed } = object.meta
  if (assumed[0] === '*') return
  const added = paths.filter((path) => !assumed.includes(path))
  if (added.length > 0) object.meta = { ...object.meta, assumed: [...assumed, ...added] }
}

function reportDuplicate(draft: Draft, earlier: Meta, origin: Origin): void {
  draft.findings.push(
    manifestFinding('manifest.duplicate-object', {
      message: `the object was read before, from ${printOrigin(earlier.origin)}; this later one is used`,
      object: refOf(earlier),
      origin,
      hint: 'delete one of the two',
    }),
  )
}
