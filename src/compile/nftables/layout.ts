/** The three layouts of kube-proxy's nftables mode, each named after the first version that has it. */
import type { BaseChain, Hook } from './ruleset'

export type Layout = '1.31' | '1.34' | '1.36'

export type LayoutChain = { readonly name: string } & Pick<BaseChain, 'type' | 'hook' | 'priority'>
export type LayoutJump = { readonly from: string; readonly to: string; readonly isForNew: boolean }

export type LayoutPlan = {
  readonly baseChains: readonly LayoutChain[]
  readonly jumps: readonly LayoutJump[]
  /** Rules mark packets to be masqueraded by a jump to a chain; later versions write the mark at once. */
  readonly hasMarkChain: boolean
  /** The rule that marks packets from outside for a cluster IP names its port. */
  readonly namesPort: boolean
}

function chain(name: string, hook: Hook, priority: number): LayoutChain {
  return { name, type: name.startsWith('nat-') ? 'nat' : 'filter', hook, priority }
}

function jump(from: string, to: string, isForNew = true): LayoutJump {
  return { from, to, isForNew }
}

const natChains = [
  chain('nat-prerouting', 'prerouting', -100),
  chain('nat-output', 'output', -100),
  chain('nat-postrouting', 'postrouting', 100),
]

const endpointJumps = [
  jump('filter-input', 'nodeport-endpoints-check'),
  jump('filter-input', 'service-endpoints-check'),
  jump('filter-forward', 'service-endpoints-check'),
  jump('filter-output', 'service-endpoints-check'),
]

const natJumps = [
  jump('nat-output', 'services', false),
  jump('nat-prerouting', 'services', false),
  jump('nat-postrouting', 'masquerading', false),
]

/** All filter rules come before DNAT, so a node's own packets meet the check of cluster IPs in a chain of its own. */
const early: LayoutPlan = {
  baseChains: [
    chain('filter-prerouting', 'prerouting', -110),
    chain('filter-input', 'input', -110),
    chain('filter-forward', 'forward', -110),
    chain('filter-output', 'output', -110),
    chain('filter-output-post-dnat', 'output', -90),
    ...natChains,
  ],
  jumps: [
    ...endpointJumps,
    jump('filter-prerouting', 'firewall-check'),
    jump('filter-output', 'firewall-check'),
    ...natJumps,
    jump('filter-forward', 'cluster-ips-check'),
    jump('filter-output-post-dnat', 'cluster-ips-check'),
  ],
  hasMarkChain: true,
  namesPort: true,
}

const middle: LayoutPlan = {
  baseChains: [
    chain('filter-prerouting-pre-dnat', 'prerouting', -110),
    chain('filter-output-pre-dnat', 'output', -110),
    chain('filter-input', 'input', 0),
    chain('filter-forward', 'forward', 0),
    chain('filter-output', 'output', 0),
    ...natChains,
  ],
  jumps: [
    ...endpointJumps,
    jump('filter-prerouting-pre-dnat', 'firewall-check'),
    jump('filter-output-pre-dnat', 'firewall-check'),
    ...natJumps,
    jump('filter-forward', 'cluster-ips-check'),
    jump('filter-output', 'cluster-ips-check'),
  ],
  hasMarkChain: true,
  namesPort: false,
}

export const layoutPlans: Readonly<Record<Layout, LayoutPlan>> = {
  '1.31': early,
  '1.34': middle,
  '1.36': { ...middle, hasMarkChain: false },
}
