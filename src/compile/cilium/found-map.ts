/** Rows of a real node in one form, whichever command printed them: what `cilium-dbg`, `bpftool` and our own maps have in common. */
import type { Origin } from '#base/finding'

export const foundKinds = {
  lxc: 'cilium_lxc',
  ipcache: 'the ipcache',
  policy: 'a policy map',
  services: 'the services',
  backends: 'the backends',
  reverseNat: 'reverse NAT',
  sourceRanges: 'the source ranges',
  egress: 'the egress gateway map',
  tunnels: 'the tunnel map',
  ipMasq: 'the ranges without masquerading',
  identities: 'the list of identities',
  endpoints: 'the list of endpoints',
  nodeIds: 'the node map',
  maglev: 'the Maglev tables',
  affinityMatch: 'the affinity members',
} as const
export type FoundKind = keyof typeof foundKinds

/** `fields` are those that the dump tells; another command may tell more or fewer. */
export type FoundRow = {
  readonly key: string
  readonly fields: Readonly<Record<string, string>>
  readonly origin: Origin
  /** What the node numbered it by: a backend, a Service (its reverse NAT). Told beside the fields, as each node draws its own. */
  readonly number?: number
  /** Of a Maglev table: the backend of each row. */
  readonly table?: readonly number[]
}

export type FoundMap = {
  readonly kind: FoundKind
  /** Of a policy map. */
  readonly endpoint?: number
  /** Families of its rows, where it is one family's map. */
  readonly family?: 'ipv4' | 'ipv6'
  readonly rows: readonly FoundRow[]
  /** The end is missing, so that what is not in it may be in the map. */
  readonly isCut: boolean
  /** Rows that cannot be read: what is not in it may be one of them. */
  readonly unread?: number
  readonly origin: Origin
  /** The release that lays it out so, where it tells. */
  readonly era?: string
}
