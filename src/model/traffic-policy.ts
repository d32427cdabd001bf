/** Traffic policies and what they are bound to, as objects of a cluster; their fields are those of their schemas. */
import { sha256Hex } from '#base/hash'
import type { ApiKind } from './api-schema'
import {
  type EdgeAttachmentSpec,
  type EdgeAttachmentStatus,
  type EdgeServiceSpec,
  type EdgeServiceStatus,
  edgeAttachmentKind,
  edgeServiceKind,
  type VpcAttachmentSpec,
  type VpcAttachmentStatus,
  vpcAttachmentKind,
} from './attachment-schema'
import { keyOf, type Meta } from './meta'
import {
  type TrafficPolicyBindingSpec,
  type TrafficPolicyBindingStatus,
  trafficPolicyBindingKind,
} from './traffic-policy-binding-schema'
import { type TrafficPolicySpec, type TrafficPolicyStatus, trafficPolicyKind } from './traffic-policy-schema'

export const trafficGroup = 'portolan.dev'
/** The group that these kinds first had; objects of it are read as our own. */
export const trafficGroupAlias = 'galactic.datumapis.com'
export const trafficVersion = 'v1alpha1'

export const trafficKinds: readonly ApiKind[] = [
  trafficPolicyKind,
  trafficPolicyBindingKind,
  vpcAttachmentKind,
  edgeServiceKind,
  edgeAttachmentKind,
]

/** What is wrong with an object, where, and what to do. */
export type Problem = { readonly path: string; readonly message: string; readonly hint: string }

/**
 * An object with problems has no spec: the API server would refuse it, so whoever acts on it must say so rather than
 * act on a part.
 */
type Readable<Spec, Status> = {
  readonly meta: Meta
  /** metadata.generation; 1 when the text has none. */
  readonly generation: number
  readonly spec?: Spec
  readonly status?: Status
  /** Why the text’s status is not here: it could not be read. */
  readonly unreadStatus?: readonly Problem[]
  readonly problems: readonly Problem[]
}

export type TrafficPolicy = Readable<TrafficPolicySpec, TrafficPolicyStatus>
export type TrafficPolicyBinding = Readable<TrafficPolicyBindingSpec, TrafficPolicyBindingStatus>
export type VpcAttachment = Readable<VpcAttachmentSpec, VpcAttachmentStatus>
export type EdgeService = Readable<EdgeServiceSpec, EdgeServiceStatus>
export type EdgeAttachment = Readable<EdgeAttachmentSpec, EdgeAttachmentStatus>

/** An object from a file that no API server has seen has no UID; its name then stands for it. */
export function uidOf(meta: Meta): string {
  return meta.uid ?? `name-${sha256Hex(keyOf(meta), 32).toLowerCase()}`
}
