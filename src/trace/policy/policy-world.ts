/** A cluster made ready for many questions about its policies, and what it remembers of the answers. */
import type { Family } from '#base/ip'
import type { CompiledPolicy, Direction, PeerMatch, PolicyRule } from '#compile/policy/policy-rule'
import type { Cluster } from '#model/cluster'
import type { AddressAtoms } from './address-atoms'
import type { ConnectionSet } from './connection-set'
import type { Party, PartyClass } from './party'
import type { PortTable } from './port-pieces'
import type { Semantics } from './semantics'

/** A rule of a policy with the numbers of its peers; absent for any peer. */
export type NumberedRule = {
  readonly policy: CompiledPolicy
  readonly rule: PolicyRule
  readonly id: number
  /** It names ports, whose numbers are the target's. */
  readonly usesNames: boolean
  readonly peers: 'any' | readonly PeerMatch[]
  readonly numbers: readonly (number | undefined)[]
}

/** The policies that hold for a class in one direction, and all their rules; equal numbers mean equal policies. */
export type SubjectPolicies = {
  readonly policies: readonly CompiledPolicy[]
  readonly rules: readonly NumberedRule[]
  readonly number: number
}

/** What is worked out once and kept; answers never depend on what is kept already. */
export type WorldMemory = {
  readonly classIds: Map<string, number>
  /** Of pods and nodes, by family. */
  readonly partyIds: Readonly<Record<Family | 'any', WeakMap<object, number>>>
  readonly addressIds: Map<string, number>
  readonly labelTexts: WeakMap<object, string>
  /** Who holds an address; built when it is first asked for. */
  readonly holders: Map<string, Party>
  /** By class. */
  readonly subjects: Readonly<Record<Direction, SubjectPolicies[]>>
  /** Numbers of sets of policies, by the places of these among all. */
  readonly policySets: Map<string, number>
  /** By class and peer: 0 unknown yet, 1 no, 2 yes, 3 maybe. */
  readonly peerMatches: Uint8Array[]
  /** By subject and peer, of classes that are apart. */
  readonly tables: Readonly<Record<Direction, (PortTable | undefined)[][]>>
  readonly nearTables: Map<string, PortTable>
  readonly tablesByText: Map<string, PortTable>
  readonly tablesByContent: Map<string, PortTable>
  /** Steps of signatures: from a state, by a symbol, to the next state. */
  readonly states: Map<number, number>
  /** By the two tables. */
  readonly sets: Map<number, ConnectionSet>
}

export type PolicyWorld = {
  readonly cluster: Cluster
  readonly semantics: Semantics
  readonly policies: readonly CompiledPolicy[]
  /** By id; grows as parties are met. */
  readonly classes: PartyClass[]
  readonly atoms: Readonly<Record<Family, AddressAtoms>>
  /** Numbers of peers: those that match alike share one. */
  readonly peerIds: ReadonlyMap<PeerMatch, number>
  readonly peerCount: number
  readonly ruleIds: ReadonlyMap<PolicyRule, number>
  readonly memory: WorldMemory
}
