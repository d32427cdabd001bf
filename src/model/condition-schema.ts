/** Parts that the schemas of several kinds share: conditions as Kubernetes has them, and references by name. */
import { optional } from './api-schema'

export const nameOfObject = { kind: 'text', minLength: 1, maxLength: 253 } as const

/** To an object of the same namespace: a reference never reaches into another. */
export const localReference = { kind: 'map', fields: { name: nameOfObject } } as const

/** Kinds whose conditions the controller writes. */
export const judgedKinds = ['TrafficPolicy', 'TrafficPolicyBinding', 'EdgeService'] as const
export type JudgedKind = (typeof judgedKinds)[number]

export const conditionsSchema = {
  kind: 'list',
  item: {
    kind: 'map',
    fields: {
      type: { kind: 'text', minLength: 1, maxLength: 316 },
      status: { kind: 'text', words: ['True', 'False', 'Unknown'] },
      observedGeneration: optional({ kind: 'number', from: 0, to: Number.MAX_SAFE_INTEGER }),
      lastTransitionTime: { kind: 'text', format: 'date-time' },
      reason: { kind: 'text', minLength: 1, maxLength: 1024 },
      message: { kind: 'text', maxLength: 32768 },
    },
  },
  maxItems: 16,
  merge: { keys: ['type'] },
} as const
