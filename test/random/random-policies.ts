/** Random NetworkPolicies over a few namespaces and pods, as the API server would hold them, written to meet each other often. */
import { type Random, randomOf } from './random'

export type LabelMap = Readonly<Record<string, string>>
export type PortProtocol = 'TCP' | 'UDP' | 'SCTP'

export type PodPort = { readonly name: string; readonly protocol: PortProtocol; readonly containerPort: number }

export type PolicyPod = {
  readonly namespace: string
  readonly name: string
  readonly labels: LabelMap
  readonly ip: string
  readonly ports: readonly PodPort[]
}

export type PolicyNamespace = { readonly name: string; readonly labels: LabelMap }

export type RawSelector = {
  readonly matchLabels?: LabelMap
  readonly matchExpressions?: readonly {
    readonly key: string
    readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist'
    readonly values?: readonly string[]
  }[]
}

export type RawPeer = {
  readonly podSelector?: RawSelector
  readonly namespaceSelector?: RawSelector
  readonly ipBlock?: { readonly cidr: string; readonly except?: readonly string[] }
}

export type RawPort = { readonly protocol?: PortProtocol; readonly port?: number | string; readonly endPort?: number }

export type RawRule = {
  readonly from?: readonly RawPeer[]
  readonly to?: readonly RawPeer[]
  readonly ports?: readonly RawPort[]
}

export type RawPolicy = {
  readonly namespace: string
  readonly name: string
  readonly spec: {
    readonly podSelector: RawSelector
    readonly policyTypes?: readonly ('Ingress' | 'Egress')[]
    readonly ingress?: readonly RawRule[]
    readonly egress?: readonly RawRule[]
  }
}

export type PolicySketch = {
  readonly seed: number
  readonly namespaces: readonly PolicyNamespace[]
  readonly pods: readonly PolicyPod[]
  readonly policies: readonly RawPolicy[]
}

export const podIps = [11, 12, 13, 14, 15, 16, 17].map((host) => `10.244.0.${host}`)
export const outsideIps = ['203.0.113.7', '198.51.100.9'] as const
export const nodeIp = '10.244.0.1'
export const nodeName = 'node-a'

/** Every port that a policy or a pod may name, and some beside and between them. */
export const portPool = [53, 80, 81, 82, 443, 8080, 8081, 8090, 9000] as const
export const protocolPool = ['TCP', 'UDP', 'SCTP'] as const satisfies readonly PortProtocol[]

export function randomPolicies(seed: number): PolicySketch {
  const random = randomOf(seed)
  const namespaces = ['x', 'y', 'z'].map((name): PolicyNamespace => {
    const team = random.pick(['red', 'blue', undefined])
    return { name, labels: team === undefined ? {} : { team } }
  })
  const pods = podIps.map((ip, at): PolicyPod => {
    const { name: namespace = 'x' } = namespaces[at % namespaces.length] ?? {}
    return { namespace, name: `pod-${at}`, labels: randomLabels(random), ip, ports: randomPodPorts(random) }
  })
  const count = random.between(1, 5)
  const policies = Array.from({ length: count }, (_, at) => randomPolicy(random, `policy-${at}`))
  return { seed, namespaces, pods, policies }
}

function randomLabels(random: Random): LabelMap {
  const labels: Record<string, string> = {}
  if (random.chance(0.9)) labels.app = random.pick(['a', 'b', 'c'])
  if (random.chance(0.5)) labels.tier = random.pick(['front', 'back'])
  return labels
}

/** A name stands for other numbers in other pods, and for several protocols in some. */
function randomPodPorts(random: Random): readonly PodPort[] {
  const ports: PodPort[] = []
  if (random.chance(0.8)) ports.push({ name: 'http', protocol: 'TCP', containerPort: random.pick([80, 8080]) })
  if (random.chance(0.5)) ports.push({ name: 'dns', protocol: 'UDP', containerPort: random.pick([53, 8090]) })
  if (random.chance(0.3)) ports.push({ name: 'alt', protocol: random.pick(protocolPool), containerPort: 9000 })
  return ports
}

function randomPolicy(random: Random, name: string): RawPolicy {
  const hasIngress = random.chance(0.6)
  const hasEgress = random.chance(0.5)
  const types = random.pick([undefined, ['Ingress'], ['Egress'], ['Ingress', 'Egress']] as const)
  return {
    namespace: random.pick(['x', 'y', 'z']),
    name,
    spec: {
      podSelector: random.chance(0.4) ? {} : randomSelector(random, podKeys),
      ...(types !== undefined && { policyTypes: types }),
      ...(hasIngress && { ingress: randomRules(random, 'from') }),
      ...(hasEgress && { egress: randomRules(random, 'to') }),
    },
  }
}

type Keys = Readonly<Record<string, readonly [string, ...string[]]>>

const podKeys: Keys = { app: ['a', 'b', 'c'], tier: ['front', 'back'] }
const namespaceKeys: Keys = { team: ['red', 'blue'], 'kubernetes.io/metadata.name': ['x', 'y', 'z'] }

function randomSelector(random: Random, keys: Keys): RawSelector {
  const [key = '', values = ['']] = random.pickFrom(Object.entries(keys)) ?? []
  const [first = ''] = values
  if (random.chance(0.55)) return { matchLabels: { [key]: random.pickFrom(values) ?? first } }
  const operator = random.pick(['In', 'NotIn', 'Exists', 'DoesNotExist'] as const)
  const isAboutValues = operator === 'In' || operator === 'NotIn'
  const some = random.some(values, 2)
  return {
    matchExpressions: [{ key, operator, ...(isAboutValues && { values: some.length === 0 ? [first] : some }) }],
  }
}

function randomRules(random: Random, key: 'from' | 'to'): readonly RawRule[] {
  return Array.from({ length: random.below(3) }, () => {
    const peers = Array.from({ length: random.below(3) }, () => randomPeer(random))
    const ports = Array.from({ length: random.below(3) }, () => randomPort(random))
    return { ...(peers.length > 0 && { [key]: peers }), ...(ports.length > 0 && { ports }) }
  })
}

function randomPeer(random: Random): RawPeer {
  if (random.chance(0.3)) return { ipBlock: random.pick(blocks) }
  const pods = random.chance(0.3) ? {} : randomSelector(random, podKeys)
  const namespaces = random.chance(0.3) ? {} : randomSelector(random, namespaceKeys)
  return random.pick<RawPeer>([
    { podSelector: pods },
    { namespaceSelector: namespaces },
    { podSelector: pods, namespaceSelector: namespaces },
  ])
}

type Block = { readonly cidr: string; readonly except?: readonly string[] }

const blocks: readonly [Block, ...Block[]] = [
  { cidr: '0.0.0.0/0' },
  { cidr: '0.0.0.0/0', except: ['10.244.0.0/24'] },
  { cidr: '10.244.0.0/24', except: ['10.244.0.12/32', '10.244.0.16/29'] },
  { cidr: '10.244.0.8/29' },
  { cidr: '203.0.113.0/24' },
  { cidr: '198.51.100.9/32' },
  { cidr: '128.0.0.0/1', except: ['203.0.113.0/25'] },
  { cidr: '10.244.0.1/32' },
]

function randomPort(random: Random): RawPort {
  const protocol = random.pick([undefined, ...protocolPool])
  const kind = random.pick(['number', 'number', 'name', 'range', 'none'] as const)
  const port = random.pick(portPool)
  const rest = {
    number: { port },
    name: { port: random.pick(['http', 'dns', 'alt', 'nowhere']) },
    range: { port, endPort: random.pick([port, port + 1, 9000, 65535]) },
    none: {},
  }[kind]
  return { ...(protocol !== undefined && { protocol }), ...rest }
}

/** Without one of its policies, rules, peers, ports or exceptions. */
export function smallerPolicies(sketch: PolicySketch): readonly PolicySketch[] {
  const { policies } = sketch
  const fewer = policies.map((_, at) => ({ ...sketch, policies: policies.toSpliced(at, 1) }))
  const lesser = policies.flatMap((policy, at) =>
    smallerSpecs(policy.spec).map((spec) => ({ ...sketch, policies: policies.with(at, { ...policy, spec }) })),
  )
  return [...fewer, ...lesser]
}

type Spec = RawPolicy['spec']

function smallerSpecs(spec: Spec): readonly Spec[] {
  return (['ingress', 'egress'] as const).flatMap((direction) => {
    const rules = spec[direction] ?? []
    return [
      ...rules.map((_, at) => ({ ...spec, [direction]: rules.toSpliced(at, 1) })),
      ...rules.flatMap((rule, at) => smallerRules(rule).map((one) => ({ ...spec, [direction]: rules.with(at, one) }))),
    ]
  })
}

/** Keeps the last peer and the last port: a rule without any is another rule. */
function smallerRules(rule: RawRule): readonly RawRule[] {
  return (['from', 'to', 'ports'] as const).flatMap((key) => {
    const list: readonly unknown[] = rule[key] ?? []
    return list.length < 2 ? [] : list.map((_, at) => ({ ...rule, [key]: list.toSpliced(at, 1) }))
  })
}
