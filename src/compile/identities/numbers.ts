/** Numbers of security identities: the reserved ones with their labels, and the scopes. Mirrors pkg/identity, Cilium 1.18. */
import { type LabelSet, labelSet, reservedLabel } from './label'

export const identityNumbers = {
  unknown: 0,
  host: 1,
  world: 2,
  unmanaged: 3,
  health: 4,
  init: 5,
  'remote-node': 6,
  'kube-apiserver': 7,
  ingress: 8,
  'world-ipv4': 9,
  'world-ipv6': 10,
} as const

export type ReservedName = keyof typeof identityNumbers

export const reservedNames = Object.keys(identityNumbers) as readonly ReservedName[]

/** The first number that a pod can have, and the last in a cluster whose id is 0. */
export const firstClusterNumber = 256
export const lastClusterNumber = 65535
/** Where a cluster's own numbers begin: a mesh parts them by 16 bits, and by 15 where it may have 511 clusters. */
export function firstNumberOf(clusterId: number, mostClusters: 255 | 511): number {
  return clusterId === 0 ? firstClusterNumber : clusterId * (mostClusters === 511 ? 2 ** 15 : 2 ** 16)
}

/** Numbers of prefixes and names belong to one node, and so do those of nodes told apart by labels. */
export const firstLocalNumber = 0x01000001
export const firstRemoteNodeNumber = 0x02000001

/** A remote API server carries the labels of a remote node as well. */
export function reservedLabels(name: ReservedName): LabelSet {
  if (name === 'kube-apiserver') return labelSet([reservedLabel('kube-apiserver'), reservedLabel('remote-node')])
  return labelSet([reservedLabel(name)])
}

export function scopeOf(number: number): 'reserved' | 'cluster' | 'local' | 'remote-node' {
  if (number >= 0x02000000) return 'remote-node'
  if (number >= 0x01000000) return 'local'
  return number < firstClusterNumber ? 'reserved' : 'cluster'
}

/** As the datapath asks: world and prefixes are outside. */
export function isInCluster(number: number): boolean {
  return number !== 2 && number !== 9 && number !== 10 && scopeOf(number) !== 'local'
}
