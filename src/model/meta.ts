/** What every object carries: its name, where it was read, and what was assumed about it. */
import type { ObjectRef, Origin } from '#base/finding'

export type Labels = Readonly<Record<string, string>>

export type OwnerReference = {
  readonly kind: string
  readonly name: string
  readonly uid?: string
  readonly controller?: boolean
}

/**
 * `assumed` lists field paths (`spec.clusterIP`, `status.podIPs`, or `*` for an object that was implied whole) that the
 * input did not hold and Portolan filled in; API defaults are not assumptions.
 */
export type Meta = {
  readonly kind: string
  readonly name: string
  /** Empty for cluster-scoped kinds. */
  readonly namespace: string
  readonly uid?: string
  readonly labels: Labels
  readonly annotations: Labels
  readonly deletionTimestamp?: string
  readonly creationTimestamp?: string
  readonly generateName?: string
  readonly ownerReferences: readonly OwnerReference[]
  readonly origin: Origin
  readonly assumed: readonly string[]
}

export function refOf(meta: Meta): ObjectRef {
  return meta.namespace === ''
    ? { kind: meta.kind, name: meta.name }
    : { kind: meta.kind, namespace: meta.namespace, name: meta.name }
}

/** The key objects of one kind are indexed by: `namespace/name`, or `name` for cluster-scoped kinds. */
export function keyOf(meta: { readonly namespace: string; readonly name: string }): string {
  return meta.namespace === '' ? meta.name : `${meta.namespace}/${meta.name}`
}

/** True when every label of the selector is on the object; an empty selector selects everything. */
export function selects(selector: Labels, labels: Labels): boolean {
  for (const key in selector) if (labels[key] !== selector[key]) return false
  return true
}
