/**
 * Policies asked the slow way: raw objects as they stand, each rule looked at for each connection, each order of equal
 * priorities and each meaning of what is open tried in turn. Written apart from the evaluator, to hold it to.
 */
import type { PolicyPod, PolicySketch, RawPeer, RawPolicy, RawPort, RawSelector } from '../random/random-policies'
import type { RawTierPeer, RawTierPolicy, RawTierPort, RawTierRule } from '../random/random-tiers'

export type NaiveEnd =
  | { readonly kind: 'pod'; readonly pod: PolicyPod }
  | { readonly kind: 'node'; readonly ip: string; readonly name: string; readonly labels: Labels }
  | { readonly kind: 'address'; readonly ip: string }

type Labels = Readonly<Record<string, string>>
type Side = 'ingress' | 'egress'
export type NaiveWorld = {
  readonly sketch: PolicySketch
  readonly tiers: readonly RawTierPolicy[]
  readonly podNode: string
}
export type NaiveConnection = {
  readonly source: NaiveEnd
  readonly target: NaiveEnd
  readonly protocol: string
  readonly port: number
}
export type NaiveDecision = 'allowed' | 'denied' | 'unknown'

export function decideNaively(world: NaiveWorld, connection: NaiveConnection): NaiveDecision {
  const both = (['ingress', 'egress'] as const).map((side) => decideSide(world, connection, side))
  if (both.includes('denied')) return 'denied'
  return both.includes('unknown') ? 'unknown' : 'allowed'
}

function decideSide(world: NaiveWorld, connection: NaiveConnection, side: Side): NaiveDecision {
  const { source, target } = connection
  const subject = side === 'ingress' ? target : source
  if (subject.kind !== 'pod') return 'allowed'
  const peer = side === 'ingress' ? source : target
  if (peer.kind === 'pod' && peer.pod.name === subject.pod.name && peer.pod.namespace === subject.pod.namespace)
    return 'allowed'
  if (peer.kind === 'node' && peer.name === world.podNode) return 'allowed'
  const outcomes = new Set<boolean>()
  const admins = policiesOf(world, 'Admin', subject.pod)
  const baselines = policiesOf(world, 'Baseline', subject.pod)
  for (const areNamesMatched of [false, true]) {
    for (const admin of orders(admins)) {
      for (const baseline of orders(baselines)) {
        const ask: Ask = { world, connection, side, areNamesMatched }
        for (const one of walk(admin, baseline, ask)) outcomes.add(one)
      }
    }
  }
  if (outcomes.size > 1) return 'unknown'
  return outcomes.has(true) ? 'allowed' : 'denied'
}

type Ask = {
  readonly world: NaiveWorld
  readonly connection: NaiveConnection
  readonly side: Side
  readonly areNamesMatched: boolean
}

function walk(admin: readonly RawTierPolicy[], baseline: readonly RawTierPolicy[], ask: Ask): readonly boolean[] {
  const first = firstAction(admin, ask)
  if (first === 'Allow') return [true]
  if (first === 'Deny') return [false]
  const normal = askNetworkPolicies(ask)
  if (normal !== undefined) return normal
  const last = firstAction(baseline, ask)
  return [last !== 'Deny']
}

function policiesOf(
  { tiers, sketch }: NaiveWorld,
  tier: 'Admin' | 'Baseline',
  pod: PolicyPod,
): readonly RawTierPolicy[] {
  return tiers.filter(({ kind, spec }) => {
    const own = kind === 'AdminNetworkPolicy' ? 'Admin' : kind === 'BaselineAdminNetworkPolicy' ? 'Baseline' : spec.tier
    return own === tier && isPodOf(sketch, spec.subject, pod)
  })
}

/** Every order of the policies in which a lower priority number comes first. */
function orders(policies: readonly RawTierPolicy[]): readonly (readonly RawTierPolicy[])[] {
  if (policies.length === 0) return [[]]
  const best = Math.min(...policies.map(({ spec }) => spec.priority ?? 0))
  return policies.flatMap((policy, at) =>
    (policy.spec.priority ?? 0) === best ? orders(policies.toSpliced(at, 1)).map((rest) => [policy, ...rest]) : [],
  )
}

function firstAction(policies: readonly RawTierPolicy[], ask: Ask): 'Allow' | 'Deny' | 'Pass' | 'none' {
  for (const { spec } of policies) {
    for (const rule of spec[ask.side] ?? []) {
      const action = rule.action === 'Accept' ? 'Allow' : rule.action
      const peers = (ask.side === 'ingress' ? rule.from : rule.to) ?? []
      if (peers.some(({ galaxies }) => galaxies !== undefined)) {
        if (action === 'Allow') continue
        return 'Deny'
      }
      if (holdsTierPorts(rule, ask) && peers.some((peer) => isTierPeer(peer, ask))) return action
    }
  }
  return 'none'
}

function isTierPeer(peer: RawTierPeer, { world, connection, side, areNamesMatched }: Ask): boolean {
  const end = side === 'ingress' ? connection.source : connection.target
  if (peer.networks !== undefined) return peer.networks.some((cidr) => isInRange(ipOf(end), cidr))
  if (peer.nodes !== undefined) return end.kind === 'node' && hasLabels(peer.nodes, end.labels)
  if (peer.domainNames !== undefined) return end.kind === 'address' && areNamesMatched
  return end.kind === 'pod' && isPodOf(world.sketch, peer, end.pod)
}

function isPodOf(sketch: PolicySketch, { namespaces, pods }: RawTierPeer, pod: PolicyPod): boolean {
  const labels = namespaceLabels(sketch, pod.namespace)
  if (namespaces !== undefined) return hasLabels(namespaces, labels)
  return pods !== undefined && hasLabels(pods.namespaceSelector, labels) && hasLabels(pods.podSelector, pod.labels)
}

function holdsTierPorts({ ports }: RawTierRule, ask: Ask): boolean {
  return ports === undefined || ports.some((port) => holdsTierPort(port, ask.connection))
}

function holdsTierPort(port: RawTierPort, { target, protocol, port: number }: NaiveConnection): boolean {
  if ('namedPort' in port) {
    return (
      target.kind === 'pod' &&
      target.pod.ports.some(
        (one) => one.name === port.namedPort && one.protocol === protocol && one.containerPort === number,
      )
    )
  }
  if ('portNumber' in port) return port.portNumber.protocol === protocol && port.portNumber.port === number
  const { protocol: own, start, end } = port.portRange
  return own === protocol && number >= start && number <= end
}

/** Undefined when no NetworkPolicy selects the pod in this direction. */
function askNetworkPolicies({ world, connection, side }: Ask): readonly boolean[] | undefined {
  const subject = side === 'ingress' ? connection.target : connection.source
  if (subject.kind !== 'pod') return [true]
  const { pod } = subject
  const own = world.sketch.policies.filter(
    (policy) =>
      policy.namespace === pod.namespace &&
      isSelected(policy.spec.podSelector, pod.labels) &&
      typesOf(policy).includes(side),
  )
  if (own.length === 0) return undefined
  if (!['TCP', 'UDP', 'SCTP'].includes(connection.protocol)) return [true, false]
  return [own.some((policy) => allows(policy, { world, connection, side }))]
}

function typesOf({ spec }: RawPolicy): readonly Side[] {
  const types = spec.policyTypes ?? ['Ingress', ...((spec.egress ?? []).length > 0 ? ['Egress'] : [])]
  return types.map((type) => (type === 'Ingress' ? 'ingress' : 'egress'))
}

function allows(policy: RawPolicy, { world, connection, side }: Omit<Ask, 'areNamesMatched'>): boolean {
  const end = side === 'ingress' ? connection.source : connection.target
  for (const rule of policy.spec[side] ?? []) {
    const peers = (side === 'ingress' ? rule.from : rule.to) ?? []
    const ports = rule.ports ?? []
    const isPeer = peers.length === 0 || peers.some((peer) => isPeerOf(world.sketch, { peer, policy, end }))
    if (isPeer && (ports.length === 0 || ports.some((port) => holdsPort(port, connection)))) return true
  }
  return false
}

type PeerAsked = { readonly peer: RawPeer; readonly policy: RawPolicy; readonly end: NaiveEnd }

function isPeerOf(sketch: PolicySketch, { peer, policy, end }: PeerAsked): boolean {
  const { ipBlock, podSelector, namespaceSelector } = peer
  if (ipBlock !== undefined) {
    const except = ipBlock.except ?? []
    return isInRange(ipOf(end), ipBlock.cidr) && !except.some((cidr) => isInRange(ipOf(end), cidr))
  }
  if (end.kind !== 'pod') return false
  const { pod } = end
  const isThere =
    namespaceSelector === undefined
      ? pod.namespace === policy.namespace
      : isSelected(namespaceSelector, namespaceLabels(sketch, pod.namespace))
  return isThere && isSelected(podSelector ?? {}, pod.labels)
}

function holdsPort({ protocol = 'TCP', port, endPort }: RawPort, connection: NaiveConnection): boolean {
  if (protocol !== connection.protocol) return false
  if (port === undefined) return true
  if (typeof port === 'number') return connection.port >= port && connection.port <= (endPort ?? port)
  const { target } = connection
  if (target.kind !== 'pod') return false
  return target.pod.ports.some(
    (one) => one.name === port && one.protocol === protocol && one.containerPort === connection.port,
  )
}

function namespaceLabels({ namespaces }: PolicySketch, name: string): Labels {
  return { ...namespaces.find((one) => one.name === name)?.labels, 'kubernetes.io/metadata.name': name }
}

function hasLabels({ matchLabels = {} }: RawSelector, labels: Labels): boolean {
  return Object.entries(matchLabels).every(([key, value]) => labels[key] === value)
}

function isSelected(selector: RawSelector, labels: Labels): boolean {
  if (!hasLabels(selector, labels)) return false
  for (const { key, operator, values = [] } of selector.matchExpressions ?? []) {
    const value = labels[key]
    const isListed = value !== undefined && values.includes(value)
    const holds = { In: isListed, NotIn: !isListed, Exists: value !== undefined, DoesNotExist: value === undefined }[
      operator
    ]
    if (!holds) return false
  }
  return true
}

function ipOf(end: NaiveEnd): string {
  return end.kind === 'pod' ? end.pod.ip : end.ip
}

function isInRange(ip: string, cidr: string): boolean {
  const [base = '', length = '32'] = cidr.split('/')
  const size = 2 ** (32 - Number(length))
  return Math.floor(numberOf(ip) / size) === Math.floor(numberOf(base) / size)
}

function numberOf(ip: string): number {
  return ip.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
}
