/** Where a random rule stands: what iptables takes there depends on the table and on the hooks that lead to it. */
import type { Family } from '#base/ip'
import type { Hook } from '#trace/view'

export type RuleProtocol = 'tcp' | 'udp' | 'sctp' | 'icmp' | undefined

export type RulePlace = {
  readonly family: Family
  readonly table: string
  /** All hooks from which a packet may come here. */
  readonly hooks: readonly Hook[]
  /** The rule's own chain is one of the kernel's. */
  readonly isBuiltin: boolean
  readonly protocol: RuleProtocol
}

export function isOnlyAt(place: RulePlace, ...hooks: readonly Hook[]): boolean {
  return place.hooks.every((hook) => hooks.includes(hook))
}

export function hasPorts(protocol: RuleProtocol): boolean {
  return protocol === 'tcp' || protocol === 'udp' || protocol === 'sctp'
}
