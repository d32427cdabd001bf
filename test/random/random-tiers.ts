/** Random cluster-wide policies over the namespaces and pods of random NetworkPolicies, with priorities that often meet. */

import type { Random } from './random'
import { nodeName } from './random-policies'

export type RawTierKind = 'AdminNetworkPolicy' | 'BaselineAdminNetworkPolicy' | 'ClusterNetworkPolicy'

export type RawLabels = { readonly matchLabels?: Readonly<Record<string, string>> }

export type RawTierPeer = {
  readonly namespaces?: RawLabels
  readonly pods?: { readonly namespaceSelector: RawLabels; readonly podSelector: RawLabels }
  readonly nodes?: RawLabels
  readonly networks?: readonly string[]
  readonly domainNames?: readonly string[]
  readonly galaxies?: Readonly<Record<string, never>>
}

export type RawTierPort =
  | { readonly portNumber: { readonly protocol: string; readonly port: number } }
  | { readonly portRange: { readonly protocol: string; readonly start: number; readonly end: number } }
  | { readonly namedPort: string }

export type RawTierRule = {
  readonly action: 'Allow' | 'Accept' | 'Deny' | 'Pass'
  readonly from?: readonly RawTierPeer[]
  readonly to?: readonly RawTierPeer[]
  readonly ports?: readonly RawTierPort[]
}

export type RawTierPolicy = {
  readonly kind: RawTierKind
  readonly name: string
  readonly spec: {
    readonly tier?: 'Admin' | 'Baseline'
    readonly priority?: number
    readonly subject: RawTierPeer
    readonly ingress?: readonly RawTierRule[]
    readonly egress?: readonly RawTierRule[]
  }
}

export function randomTiers(random: Random): readonly RawTierPolicy[] {
  const count = random.between(0, 4)
  return Array.from({ length: count }, (_, at): RawTierPolicy => {
    const kind = random.pick([
      'AdminNetworkPolicy',
      'AdminNetworkPolicy',
      'ClusterNetworkPolicy',
      'BaselineAdminNetworkPolicy',
    ] as const)
    if (kind === 'BaselineAdminNetworkPolicy')
      return { kind, name: 'default', spec: randomSpec(random, ['Allow', 'Deny']) }
    const priority = random.pick([1, 2, 2, 3])
    if (kind === 'AdminNetworkPolicy') {
      return { kind, name: `admin-${at}`, spec: { priority, ...randomSpec(random, ['Allow', 'Deny', 'Pass']) } }
    }
    const tier = random.pick(['Admin', 'Baseline'] as const)
    return { kind, name: `cluster-${at}`, spec: { tier, priority, ...randomSpec(random, ['Accept', 'Deny', 'Pass']) } }
  }).filter(({ name }, at, all) => all.findIndex((one) => one.name === name) === at)
}

type Actions = readonly RawTierRule['action'][]

function randomSpec(random: Random, actions: Actions): RawTierPolicy['spec'] {
  const rules = (key: 'from' | 'to'): readonly RawTierRule[] =>
    Array.from({ length: random.below(4) }, () => randomRule(random, actions, key))
  return { subject: randomPods(random), ingress: rules('from'), egress: rules('to') }
}

function randomRule(random: Random, actions: Actions, key: 'from' | 'to'): RawTierRule {
  const action = random.pickFrom(actions) ?? 'Deny'
  const peers = Array.from({ length: random.between(1, 2) }, () => randomPeer(random, key))
  const isOutside = peers.some(({ networks, nodes, domainNames }) => networks ?? nodes ?? domainNames)
  const ports = Array.from({ length: random.below(3) }, () => randomPort(random, isOutside))
  return { action, [key]: peers, ...(ports.length > 0 && { ports }) }
}

function randomPeer(random: Random, key: 'from' | 'to'): RawTierPeer {
  if (random.chance(0.05)) return { galaxies: {} }
  if (key === 'from' || random.chance(0.5)) return randomPods(random)
  return random.pick<RawTierPeer>([
    {
      nodes: random.pick<RawLabels>([
        {},
        { matchLabels: { 'kubernetes.io/hostname': nodeName } },
        { matchLabels: { zone: 'b' } },
      ]),
    },
    { networks: [random.pick(['0.0.0.0/0', '10.244.0.8/29', '203.0.113.0/24', '10.244.0.1/32'])] },
    { domainNames: ['*.example.com'] },
  ])
}

function randomPods(random: Random): RawTierPeer {
  const namespaces = random.pick<RawLabels>([{}, {}, { matchLabels: { team: random.pick(['red', 'blue']) } }])
  if (random.chance(0.6)) return { namespaces }
  const podSelector = random.pick<RawLabels>([{}, { matchLabels: { app: random.pick(['a', 'b', 'c']) } }])
  return { pods: { namespaceSelector: namespaces, podSelector } }
}

function randomPort(random: Random, isOutside: boolean): RawTierPort {
  const protocol = random.pick(['TCP', 'UDP', 'SCTP'])
  if (!isOutside && random.chance(0.3)) return { namedPort: random.pick(['http', 'dns', 'alt', 'nowhere']) }
  if (random.chance(0.5)) return { portNumber: { protocol, port: random.pick([53, 80, 8080, 9000]) } }
  return { portRange: { protocol, start: random.pick([1, 53, 80]), end: random.pick([81, 8080, 65535]) } }
}
