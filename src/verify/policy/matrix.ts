/** The matrix of connections: who may reach whom, over which ports. */
import type { Family } from '#base/ip'
import type { Party } from '#trace/policy/party'

/** Pods of one owner that nothing tells apart, or one pod of an owner whose pods differ. */
export type WorkloadEnd = {
  readonly kind: 'workload'
  /** `shop/web[Deployment]`. */
  readonly name: string
  readonly namespace: string
  readonly members: readonly [Party, ...Party[]]
}

/** Addresses outside, from the first to the last. */
export type OutsideEnd = {
  readonly kind: 'outside'
  /** `0.0.0.0-255.255.255.255[External]`. */
  readonly name: string
  readonly family: Family
  readonly from: bigint
  readonly to: bigint
  /** One of the range; all of it are alike. */
  readonly example: Party
}

/** `partly` are ports that lead to backends of which some can be reached and others cannot. */
export type ServiceEnd = { readonly kind: 'service'; readonly name: string; readonly namespace: string }

/** Pods that do not exist yet, with the labels that a rule asks for, or with none at all. */
export type ImaginedEnd = { readonly kind: 'imagined'; readonly name: string; readonly example: Party }

export type MatrixEnd = WorkloadEnd | OutsideEnd | ServiceEnd | ImaginedEnd

/** A pair without any connection has no row. */
export type MatrixRow = { readonly src: MatrixEnd; readonly dst: MatrixEnd; readonly conn: string }

export type Matrix = {
  readonly rows: readonly MatrixRow[]
  /** Every workload, connected or not, by name. */
  readonly workloads: readonly WorkloadEnd[]
}
