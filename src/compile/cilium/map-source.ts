/** Where a row of a map comes from: the object and its field, and the part of the agent that writes it. */
import type { ObjectRef, Origin } from '#base/finding'
import { type Meta, refOf } from '#model/meta'

export const components = {
  endpoints: 'cilium-agent: endpoint manager',
  ipcache: 'cilium-agent: ipcache',
  nodes: 'cilium-agent: node manager',
  policy: 'cilium-agent: policy repository and endpoint regeneration',
  services: 'cilium-agent: load balancer',
  redirects: 'cilium-agent: local redirect policies',
  egress: 'cilium-agent: egress gateway manager',
  masquerade: 'cilium-agent: ip-masq-agent',
  datapath: 'the datapath itself',
} as const
export type Component = keyof typeof components

export type RowSource = {
  readonly by: Component
  /** Absent for what the agent writes of its own. */
  readonly object?: ObjectRef
  readonly origin?: Origin
  readonly path?: string
  readonly note?: string
}

export type SourceOptions = { readonly path?: string; readonly note?: string }

/** Written out field by field: every row of every map has one. */
export function sourceOf(by: Component, meta: Meta | undefined, { path, note }: SourceOptions = {}): RowSource {
  const source: { -readonly [Key in keyof RowSource]: RowSource[Key] } = { by }
  if (meta !== undefined) {
    source.object = refOf(meta)
    source.origin = meta.origin
  }
  if (path !== undefined) source.path = path
  if (note !== undefined) source.note = note
  return source
}
