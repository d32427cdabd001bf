/** Where the three cluster-wide kinds differ: their actions, their limits, and the words for pods and ports. */
import type { TierAction, TierPolicyKind } from '#model/tier-policy'

export type TierGrammar = {
  readonly actions: ReadonlyMap<string, TierAction>
  readonly mostRules: number
  readonly mostPeers: number
  readonly mostPorts: number
  /** The field of a rule that limits it to ports; the older one is still read. */
  readonly portFields: readonly ['ports'] | readonly ['protocols', 'ports']
  /** Pods are selected without a namespaceSelector as well. */
  readonly hasOptionalNamespaces: boolean
}

const v1alpha1: TierGrammar = {
  actions: new Map([
    ['Allow', 'allow'],
    ['Deny', 'deny'],
    ['Pass', 'pass'],
  ]),
  mostRules: 100,
  mostPeers: 100,
  mostPorts: 100,
  portFields: ['ports'],
  hasOptionalNamespaces: false,
}

export const tierGrammars: Readonly<Record<TierPolicyKind, TierGrammar>> = {
  AdminNetworkPolicy: v1alpha1,
  BaselineAdminNetworkPolicy: {
    ...v1alpha1,
    actions: new Map([
      ['Allow', 'allow'],
      ['Deny', 'deny'],
    ]),
  },
  ClusterNetworkPolicy: {
    actions: new Map([
      ['Accept', 'allow'],
      ['Deny', 'deny'],
      ['Pass', 'pass'],
    ]),
    mostRules: 25,
    mostPeers: 25,
    mostPorts: 25,
    portFields: ['protocols', 'ports'],
    hasOptionalNamespaces: true,
  },
}
