/** The built-in policy of a direction that has no other: one rule that denies, so that a denial by default is counted. */
import { reservedPolicyName, type TrafficPolicySpec } from '#model/traffic-policy-schema'
import type { CompiledPolicy } from './compile-policy'

export const defaultDenyAll = {
  name: reservedPolicyName,
  uid: 'builtin:default-deny-all:v1',
  generation: 1,
  spec: { rules: [{ name: 'deny-all', action: 'Deny' }] } satisfies TrafficPolicySpec,
} as const

export const compiledDefaultDenyAll: CompiledPolicy = {
  uid: defaultDenyAll.uid,
  generation: defaultDenyAll.generation,
  stateful: true,
  rules: [{ name: 'deny-all', action: 'deny' }],
  entries: [{ action: 'deny', rule: 0 }],
}
