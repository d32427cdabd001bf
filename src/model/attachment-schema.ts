/** VPCAttachment, EdgeService and EdgeAttachment as their schemas: the interfaces that policies are bound to. */
import type { ApiKind, ValueOf } from './api-schema'
import { optional } from './api-schema'
import { conditionsSchema, localReference, nameOfObject } from './condition-schema'

/** The kernel's rule for interface names (dev_valid_name), 15 characters at most. */
const hostInterface = {
  kind: 'text',
  pattern: '^[^\\s/:]+$',
  noun: 'an interface’s name: no blank, slash or colon',
  minLength: 1,
  maxLength: 15,
} as const

const node = { kind: 'text', minLength: 1, maxLength: 253 } as const
const namespace = { kind: 'text', minLength: 1, maxLength: 63 } as const
const uid = { kind: 'text', minLength: 1, maxLength: 64 } as const
const base62 = { kind: 'text', pattern: '^[0-9A-Za-z]+$', noun: 'base62 digits', minLength: 1, maxLength: 9 } as const

export const vpcAttachmentKind = {
  kind: 'VPCAttachment',
  plural: 'vpcattachments',
  shortNames: ['vpca'],
  description: 'A workload’s interface in a VPC.',
  spec: {
    kind: 'map',
    isOpen: true,
    fields: { vpc: optional({ kind: 'map', isOpen: true, fields: { name: nameOfObject } }) },
  },
  status: {
    kind: 'map',
    isOpen: true,
    fields: {
      node: optional({ ...node, description: 'The node that the interface is on; it selects the agent.' }),
      hostInterface: optional({ ...hostInterface, description: 'The device on the node’s side.' }),
      vpc: optional({ ...base62, description: 'The VPC’s 48-bit number in base62.' }),
      vpcAttachment: optional({ ...base62, maxLength: 3, description: 'The attachment’s 16-bit number in base62.' }),
      conditions: optional(conditionsSchema),
    },
  },
  rules: [],
  columns: [
    { name: 'VPC', path: '.spec.vpc.name', type: 'string' },
    { name: 'Node', path: '.status.node', type: 'string' },
    { name: 'Interface', path: '.status.hostInterface', type: 'string' },
    { name: 'Age', path: '.metadata.creationTimestamp', type: 'date' },
  ],
} as const satisfies ApiKind

const providerReference = {
  kind: 'map',
  fields: { name: nameOfObject, namespace: optional(namespace) },
} as const

export const edgeServiceKind = {
  kind: 'EdgeService',
  plural: 'edgeservices',
  shortNames: ['edgesvc'],
  description: 'What a tenant grants to a provider at the edge of a VPC, and the policies of that link.',
  spec: {
    kind: 'map',
    fields: {
      providerRef: { ...providerReference, description: 'The provider that is granted.' },
      vpcRef: { ...localReference, description: 'The VPC of this namespace.' },
      capabilities: optional({
        kind: 'list',
        item: { kind: 'text', minLength: 1, maxLength: 63 },
        maxItems: 16,
        merge: 'set',
      }),
      trafficPolicy: optional({
        kind: 'map',
        description: 'Policies of this namespace; a direction without one has the built-in policy that denies all.',
        fields: { ingressPolicyRef: optional(localReference), egressPolicyRef: optional(localReference) },
      }),
    },
  },
  status: { kind: 'map', fields: { conditions: optional(conditionsSchema) } },
  rules: [],
  columns: [
    { name: 'Provider', path: '.spec.providerRef.name', type: 'string' },
    { name: 'VPC', path: '.spec.vpcRef.name', type: 'string' },
    { name: 'Policies', path: '.status.conditions[?(@.type=="TrafficPolicyResolved")].reason', type: 'string' },
    { name: 'Age', path: '.metadata.creationTimestamp', type: 'date' },
  ],
} as const satisfies ApiKind

export const edgeAttachmentKind = {
  kind: 'EdgeAttachment',
  plural: 'edgeattachments',
  shortNames: ['edgeatt'],
  description: 'A provider’s link to a VPC; the service’s namespace alone chooses its policies.',
  spec: {
    kind: 'map',
    fields: {
      serviceRef: {
        kind: 'map',
        description: 'The tenant’s EdgeService; with a UID, this one and no successor of its name.',
        fields: { name: nameOfObject, namespace, uid: optional(uid) },
      },
      providerRef: { ...localReference, description: 'The provider of this namespace, which the service must grant.' },
    },
  },
  status: {
    kind: 'map',
    isOpen: true,
    fields: {
      node: optional(node),
      hostInterface: optional(hostInterface),
      serviceUid: optional({ ...uid, description: 'The UID of the service that the attachment was admitted to.' }),
      conditions: optional(conditionsSchema),
    },
  },
  rules: [],
  columns: [
    { name: 'Service', path: '.spec.serviceRef.name', type: 'string' },
    { name: 'Node', path: '.status.node', type: 'string' },
    { name: 'Admitted', path: '.status.conditions[?(@.type=="Admitted")].status', type: 'string' },
    { name: 'Age', path: '.metadata.creationTimestamp', type: 'date' },
  ],
} as const satisfies ApiKind

export type VpcAttachmentSpec = ValueOf<typeof vpcAttachmentKind.spec>
export type VpcAttachmentStatus = ValueOf<typeof vpcAttachmentKind.status>
export type EdgeServiceSpec = ValueOf<typeof edgeServiceKind.spec>
export type EdgeServiceStatus = ValueOf<typeof edgeServiceKind.status>
export type EdgeAttachmentSpec = ValueOf<typeof edgeAttachmentKind.spec>
export type EdgeAttachmentStatus = ValueOf<typeof edgeAttachmentKind.status>
