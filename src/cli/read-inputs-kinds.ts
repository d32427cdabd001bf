/** Which kinds each command reads from a live cluster: no more than its answer rests on. */

/**
 * `ConfigMap/NAME` is one object of a kind that may hold anything. Without what is needed the answer is unknown; what
 * helps is told when it cannot be read, and the answer is given without it.
 */
export type KindNeeds = { readonly needed: readonly string[]; readonly helpful: readonly string[] }

export type ClusterCommand =
  | 'endpoints'
  | 'iptables'
  | 'nftables'
  | 'trace'
  | 'explain'
  | 'dns'
  | 'resolv-conf'
  | 'policy eval'
  | 'policy matrix'
  | 'policy diff'
  | 'policy lint'
  | 'policy audit'
  | 'policy explain'
  | 'policy show'
  | 'maps'
  | 'maps diff'
  | 'path'
  | 'generate'

const slices = ['Service', 'Pod', 'EndpointSlice', 'Endpoints']
const workloads = ['Deployment', 'ReplicaSet', 'StatefulSet', 'DaemonSet', 'Job', 'CronJob']
export const tiers = ['AdminNetworkPolicy', 'BaselineAdminNetworkPolicy', 'ClusterNetworkPolicy']
export const ciliumPolicies = ['CiliumNetworkPolicy', 'CiliumClusterwideNetworkPolicy', 'CiliumCIDRGroup']
/** What Cilium's agents write: of no matter where others decide. */
export const ciliumAgents = ['CiliumIdentity', 'CiliumEndpoint', 'CiliumEndpointSlice', 'CiliumNode']
export const ciliumRoutes = ['CiliumEgressGatewayPolicy', 'CiliumLocalRedirectPolicy']
const traffic = ['TrafficPolicy', 'TrafficPolicyBinding', 'VPCAttachment', 'EdgeService', 'EdgeAttachment']

const dnsSettings = ['ConfigMap/coredns', 'ConfigMap/coredns-custom']

const nodeRules: KindNeeds = { needed: [...slices, 'Node'], helpful: ['ConfigMap/kube-proxy'] }
const policies: KindNeeds = {
  needed: ['Namespace', 'Node', ...slices, 'NetworkPolicy', ...tiers, ...ciliumPolicies],
  helpful: [...workloads, ...ciliumAgents, 'ConfigMap/cilium-config'],
}
const everyNode: KindNeeds = {
  needed: [
    'Namespace',
    'Node',
    ...slices,
    'NetworkPolicy',
    ...ciliumPolicies,
    ...ciliumAgents,
    ...ciliumRoutes,
    'ConfigMap/cilium-config',
    'ConfigMap/ip-masq-agent',
  ],
  helpful: [...tiers, ...workloads, 'ConfigMap/kube-proxy'],
}

export const commandKinds: Readonly<Record<ClusterCommand, KindNeeds>> = {
  endpoints: { needed: slices, helpful: ['Node'] },
  iptables: nodeRules,
  nftables: nodeRules,
  trace: nodeRules,
  explain: {
    needed: [...slices, 'Node'],
    helpful: [
      'Namespace',
      ...workloads,
      'NetworkPolicy',
      ...tiers,
      ...ciliumPolicies,
      'ConfigMap/kube-proxy',
      'ConfigMap/cilium-config',
      ...dnsSettings,
      ...traffic,
    ],
  },
  dns: { needed: ['Namespace', ...slices], helpful: ['Node', ...dnsSettings] },
  'resolv-conf': { needed: ['Service', 'Pod'], helpful: [] },
  'policy eval': policies,
  'policy matrix': policies,
  'policy diff': policies,
  'policy lint': { needed: policies.needed, helpful: [...policies.helpful, ...traffic] },
  'policy audit': policies,
  'policy explain': { needed: ['TrafficPolicy'], helpful: [] },
  'policy show': { needed: traffic, helpful: [] },
  maps: everyNode,
  'maps diff': everyNode,
  path: everyNode,
  generate: { needed: [...slices, 'Namespace', 'Node'], helpful: workloads },
}
