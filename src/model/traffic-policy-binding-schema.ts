/** TrafficPolicyBinding as its schema: which policy each direction of an attachment has, and what the nodes made of it. */
import type { ApiKind, ValueOf } from './api-schema'
import { optional } from './api-schema'
import { conditionsSchema, localReference } from './condition-schema'

export const bindingStates = ['Applied', 'Pending', 'Failed'] as const
export const modeWords = ['Off', 'Audit', 'Enforce', 'Unsupported', 'Unknown'] as const

const generation = { kind: 'number', from: 0, to: Number.MAX_SAFE_INTEGER } as const
const time = { kind: 'text', format: 'date-time' } as const

const directionSchema = {
  kind: 'map',
  fields: {
    state: { kind: 'text', words: bindingStates },
    policy: optional({
      kind: 'map',
      description: 'What is installed.',
      fields: {
        name: { kind: 'text', maxLength: 253 },
        uid: { kind: 'text', maxLength: 64 },
        generation,
      },
    }),
    observedGeneration: { ...generation, description: 'The generation of the binding that was acted on.' },
    lastTransitionTime: time,
    message: optional({ kind: 'text', maxLength: 4096 }),
  },
} as const

const nodeSchema = {
  kind: 'map',
  description: 'Written by the node it names, and by no other.',
  fields: {
    node: { kind: 'text', minLength: 1, maxLength: 253 },
    ingress: optional(directionSchema),
    egress: optional(directionSchema),
    mode: optional({ kind: 'text', words: modeWords }),
    heartbeatTime: optional(time),
  },
} as const

const specSchema = {
  kind: 'map',
  fields: {
    vpcAttachmentRef: { ...localReference, description: 'The attachment of this namespace that is bound.' },
    ingressPolicyRef: optional({ ...localReference, description: 'Without it, the built-in policy that denies all.' }),
    egressPolicyRef: optional({ ...localReference, description: 'Without it, the built-in policy that denies all.' }),
  },
} as const

export const trafficPolicyBindingKind = {
  kind: 'TrafficPolicyBinding',
  plural: 'trafficpolicybindings',
  shortNames: ['tpb'],
  description: 'Gives each direction of an attachment a policy.',
  spec: specSchema,
  status: {
    kind: 'map',
    fields: {
      nodes: optional({ kind: 'list', item: nodeSchema, maxItems: 64, merge: { keys: ['node'] } }),
      conditions: optional(conditionsSchema),
    },
  },
  rules: [],
  columns: [
    { name: 'Attachment', path: '.spec.vpcAttachmentRef.name', type: 'string' },
    { name: 'Ingress', path: '.spec.ingressPolicyRef.name', type: 'string' },
    { name: 'Egress', path: '.spec.egressPolicyRef.name', type: 'string' },
    { name: 'Installed', path: '.status.conditions[?(@.type=="Installed")].status', type: 'string', isWide: true },
    {
      name: 'Enforcing',
      path: '.status.conditions[?(@.type=="Enforcing")].status',
      type: 'string',
      description: 'True when the node drops what the policies deny; nothing else means protected.',
    },
    { name: 'Reason', path: '.status.conditions[?(@.type=="Enforcing")].reason', type: 'string' },
    { name: 'Age', path: '.metadata.creationTimestamp', type: 'date' },
  ],
} as const satisfies ApiKind

export type TrafficPolicyBindingSpec = ValueOf<typeof specSchema>
export type TrafficPolicyBindingStatus = ValueOf<typeof trafficPolicyBindingKind.status>
