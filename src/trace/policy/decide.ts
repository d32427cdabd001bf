/** The fast path: decisions between classes without reasons, one port or all of them. */
import type { PortRange } from '#base/port-range'
import type { PolicyProtocol } from '#compile/policy/policy-rule'
import type { Decision } from './answer'
import type { ClassConnection, Nearness } from './party'
import type { PolicyWorld } from './world'

/** Sorted ranges that neither overlap nor touch, by protocol; protocols without any are left out. */
export type PortRanges = ReadonlyMap<PolicyProtocol, readonly PortRange[]>

export type ConnectionSet = { readonly allowed: PortRanges; readonly unknown: PortRanges }

export declare function decide(world: PolicyWorld, connection: ClassConnection): Decision

/** Both directions together, over every port of TCP, UDP and SCTP; the same value for the same connections. */
export declare function portsBetween(
  world: PolicyWorld,
  source: number,
  target: number,
  nearness?: Nearness,
): ConnectionSet
