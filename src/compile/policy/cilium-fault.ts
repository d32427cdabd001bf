/** A fault for which the agent refuses a policy: where it is, why, and what to write instead. */
import type { CiliumSection } from '#model/cilium-policy'
import type { CiliumSettings } from './cilium-options'

export type AgentFault = { readonly path: string; readonly why: string; readonly hint?: string }

/** Where an element stands. */
export type Place = { readonly section: CiliumSection; readonly isHost: boolean; readonly settings: CiliumSettings }

export function firstFault<T>(items: readonly T[], check: (item: T) => AgentFault | undefined): AgentFault | undefined {
  for (const item of items) {
    const fault = check(item)
    if (fault !== undefined) return fault
  }
  return undefined
}
