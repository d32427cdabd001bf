/** A cluster made ready for many questions about its policies: compiled once, its parties put into classes. */
import type { Family } from '#base/ip'
import type { CompiledPolicy } from '#compile/policy/policy-rule'
import type { Cluster } from '#model/cluster'
import type { Party, PartyClass } from './party'
import type { Semantics } from './semantics'

export type PolicyWorld = {
  readonly cluster: Cluster
  readonly semantics: Semantics
  readonly policies: readonly CompiledPolicy[]
  /** By id; grows as parties are met. */
  readonly classes: PartyClass[]
}

export type PolicyOptions = { readonly semantics: Semantics }

export declare function preparePolicies(cluster: Cluster, options: PolicyOptions): PolicyWorld
export declare function classOf(world: PolicyWorld, party: Party, family?: Family): PartyClass
