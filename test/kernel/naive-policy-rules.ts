/**
 * NetworkPolicies as nftables rules, written out in the most naive way: one rule for each pod, policy, peer and port. Shares
 * nothing with the product, so that both are wrong together only by chance.
 */
import type {
  LabelMap,
  PolicyPod,
  PolicySketch,
  RawPeer,
  RawPolicy,
  RawPort,
  RawSelector,
} from '../random/random-policies'

type Direction = 'ingress' | 'egress'

/** Refused packets are answered, so that nobody waits; SCTP is dropped. What a node and its pods send each other is not forwarded. */
export function naivePolicyRules(sketch: PolicySketch): string {
  const chains: string[] = []
  const jumps: string[] = []
  for (const [at, pod] of sketch.pods.entries()) {
    for (const direction of ['egress', 'ingress'] as const) {
      const policies = sketch.policies.filter((policy) => isolates(policy, pod, direction))
      if (policies.length === 0) continue
      const name = `${direction}-${at}`
      const rules = policies.flatMap((policy) => allowances(sketch, { policy, pod, direction }))
      chains.push(`chain ${name} {\n${[...rules, ...refusals].map((rule) => `  ${rule}\n`).join('')}}`)
      jumps.push(`  ip ${direction === 'egress' ? 'saddr' : 'daddr'} ${pod.ip} jump ${name}`)
    }
  }
  return [
    'table ip naive {',
    ...chains,
    'chain forward {',
    '  type filter hook forward priority 0; policy accept;',
    '  ct state established,related accept',
    ...jumps,
    '}',
    '}',
  ].join('\n')
}

const refusals = ['meta l4proto tcp reject with tcp reset', 'meta l4proto udp reject', 'drop']

function isolates({ namespace, spec }: RawPolicy, pod: PolicyPod, direction: Direction): boolean {
  if (namespace !== pod.namespace || !selected(spec.podSelector, pod.labels)) return false
  const types = spec.policyTypes
  if (types !== undefined) return types.includes(direction === 'ingress' ? 'Ingress' : 'Egress')
  return direction === 'ingress' || (spec.egress ?? []).length > 0
}

type Lane = { readonly policy: RawPolicy; readonly pod: PolicyPod; readonly direction: Direction }

function allowances(sketch: PolicySketch, { policy, pod, direction }: Lane): readonly string[] {
  const rules = policy.spec[direction] ?? []
  return rules.flatMap((rule) => {
    const peers = (direction === 'ingress' ? rule.from : rule.to) ?? []
    const ports = rule.ports ?? []
    const places = peers.length === 0 ? anywhere(sketch) : peers.flatMap((peer) => placesOf(sketch, policy, peer))
    return places.flatMap((place) => {
      const match = place.match(direction === 'ingress' ? 'saddr' : 'daddr')
      if (ports.length === 0) return [`${match} return`]
      const target = direction === 'ingress' ? pod : place.pod
      return ports.flatMap((port) => portMatch(port, target).map((one) => `${match} ${one} return`))
    })
  })
}

/** Addresses, and the pod that they are where they are one pod's: a named port is looked up there. */
type Place = { readonly match: (field: 'saddr' | 'daddr') => string; readonly pod?: PolicyPod }

/** Each pod by itself for the sake of its named ports, and everything for all other ports. */
function anywhere(sketch: PolicySketch): readonly Place[] {
  return [{ match: () => '' }, ...sketch.pods.map(podPlace)]
}

function podPlace(pod: PolicyPod): Place {
  return { match: (field) => `ip ${field} ${pod.ip}`, pod }
}

function placesOf(sketch: PolicySketch, policy: RawPolicy, peer: RawPeer): readonly Place[] {
  const { ipBlock, namespaceSelector, podSelector } = peer
  if (ipBlock === undefined) {
    return sketch.pods
      .filter((pod) => {
        if (podSelector !== undefined && !selected(podSelector, pod.labels)) return false
        if (namespaceSelector === undefined) return pod.namespace === policy.namespace
        const own = sketch.namespaces.find(({ name }) => name === pod.namespace)
        const labels = { ...own?.labels, 'kubernetes.io/metadata.name': pod.namespace }
        return selected(namespaceSelector, labels)
      })
      .map(podPlace)
  }
  const { cidr, except = [] } = ipBlock
  const within = (field: 'saddr' | 'daddr'): string =>
    [`ip ${field} ${cidr}`, ...except.map((hole) => `ip ${field} != ${hole}`)].join(' ')
  return [
    { match: within },
    ...sketch.pods.map((pod): Place => ({ pod, match: (field) => `${within(field)} ip ${field} ${pod.ip}` })),
  ]
}

function portMatch({ protocol = 'TCP', port, endPort }: RawPort, target: PolicyPod | undefined): readonly string[] {
  const word = protocol.toLowerCase()
  if (port === undefined) return [`meta l4proto ${word}`]
  if (typeof port === 'number') return [`${word} dport ${endPort === undefined ? port : `${port}-${endPort}`}`]
  const found = target?.ports.find((one) => one.name === port && one.protocol === protocol)
  return found === undefined ? [] : [`${word} dport ${found.containerPort}`]
}

function selected({ matchLabels = {}, matchExpressions = [] }: RawSelector, labels: LabelMap): boolean {
  for (const key of Object.keys(matchLabels)) if (labels[key] !== matchLabels[key]) return false
  for (const { key, operator, values = [] } of matchExpressions) {
    const value = labels[key]
    const isIn = value !== undefined && values.includes(value)
    if (operator === 'In' && !isIn) return false
    if (operator === 'NotIn' && isIn) return false
    if (operator === 'Exists' && value === undefined) return false
    if (operator === 'DoesNotExist' && value !== undefined) return false
  }
  return true
}
