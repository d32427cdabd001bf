/** What the agent of one node knows: its settings, the cluster's identities and policies, its own endpoints. */
import type { Finding } from '#base/finding'
import { type Ip, parseIp } from '#base/ip'
import { compareText } from '#base/text'
import type { GivenIdentity } from '#compile/identities/identities'
import { type LabelSet, printLabelSet } from '#compile/identities/label'
import { identityNumbers, lastClusterNumber } from '#compile/identities/numbers'
import { type PolicyMaker, policyMaker } from '#compile/policy/cilium-endpoint-map'
import { type CiliumIdentities, ciliumIdentities, labelsOfPod } from '#compile/policy/cilium-identities'
import type { CiliumOptions } from '#compile/policy/cilium-options'
import { compileCilium } from '#compile/policy/compile-cilium'
import type { Cluster } from '#model/cluster'
import type { EndpointSlice } from '#model/endpoint-slice'
import { keyOf, type Meta, refOf } from '#model/meta'
import type { Pod } from '#model/pod'
import { type DatapathSettings, datapathSettings } from './datapath-settings'
import { mapsFinding } from './findings'

/** What a node told beside the objects: its numbers are its own, and no object holds them. */
export type Learned = {
  readonly identities: readonly GivenIdentity[]
  /** Numbers of endpoints by address. */
  readonly endpointIds: ReadonlyMap<string, number>
  /** Numbers of prefixes, as they are printed. */
  readonly prefixNumbers: ReadonlyMap<string, number>
}

export const nothingLearned: Learned = { identities: [], endpointIds: new Map(), prefixNumbers: new Map() }

export type WorldOptions = {
  readonly node: string
  readonly slices: readonly EndpointSlice[]
  readonly cilium?: CiliumOptions
  readonly learned?: Learned
  /** Addresses of the node's devices, first ones first, beyond what its Node object tells. */
  readonly devices?: ReadonlyMap<string, readonly string[]>
}

/** A pod with an address and an identity: anywhere in the cluster. */
export type PodEndpoint = {
  readonly pod: Pod
  readonly ips: readonly { readonly ip: Ip; readonly path: string }[]
  readonly identity: number
  readonly labels: LabelSet
}

/** What has a number on this node. */
export type LocalEndpoint = {
  readonly id: number
  /** The number is made up: neither an object nor a dump tells it. */
  readonly isNumbered: boolean
  readonly kind: 'pod' | 'health' | 'ingress' | 'host'
  readonly identity: number
  readonly ips: readonly { readonly ip: Ip; readonly path: string }[]
  readonly pod?: PodEndpoint
  readonly meta?: Meta
  readonly title: string
}

export type NodeWorld = {
  readonly cluster: Cluster
  readonly settings: DatapathSettings
  readonly identities: CiliumIdentities
  readonly maker: PolicyMaker
  readonly node: string
  readonly slices: readonly EndpointSlice[]
  readonly pods: readonly PodEndpoint[]
  readonly endpoints: readonly LocalEndpoint[]
  readonly learned: Learned
  readonly devices: ReadonlyMap<string, readonly string[]>
  readonly findings: Finding[]
}

export function nodeWorld(cluster: Cluster, options: WorldOptions): NodeWorld {
  const { node, slices, learned = nothingLearned, devices = new Map() } = options
  const { settings, findings } = datapathSettings(cluster, options.cilium)
  const compilation = compileCilium(cluster, settings.policy)
  const identities = ciliumIdentities(cluster, compilation, learned.identities)
  const found: Finding[] = [...findings, ...compilation.findings]
  const pods = podEndpoints(identities, found)
  return {
    cluster,
    settings,
    identities: { ...identities, prefixes: renumber(identities.prefixes, learned) },
    maker: policyMaker({ ...identities, prefixes: renumber(identities.prefixes, learned) }, compilation.policies),
    node,
    slices,
    pods,
    endpoints: localEndpoints({ cluster, node, pods, learned, settings }),
    learned,
    devices,
    findings: found,
  }
}

/** Numbers of prefixes are each node's own; where the node told them they count. */
function renumber(table: CiliumIdentities['prefixes'], { prefixNumbers }: Learned): CiliumIdentities['prefixes'] {
  if (prefixNumbers.size === 0) return table
  const taken = new Set(prefixNumbers.values())
  const highest = Math.max(...taken, ...table.identities.map(({ number }) => number))
  let next = highest + 1
  const identities = table.identities.map((one) => {
    const told = prefixNumbers.get(prefixText(one))
    if (told !== undefined) return { ...one, number: told, isGiven: true }
    return taken.has(one.number) ? { ...one, number: next++ } : one
  })
  return { ...table, identities }
}

function prefixText({ labels }: { readonly labels: LabelSet }): string {
  return labels.labels.find(({ source }) => source === 'cidr')?.key ?? ''
}

/** Ended pods have no address any more, and pods on the host's network are the host. */
function podEndpoints(identities: CiliumIdentities, findings: Finding[]): readonly PodEndpoint[] {
  const { cluster } = identities
  const hasObjects = cluster.ciliumEndpoints.size > 0
  const pods = [...cluster.pods.values()]
    .filter(
      ({ hostNetwork, phase, podIPs }) =>
        !hostNetwork && phase !== 'Succeeded' && phase !== 'Failed' && podIPs.length > 0,
    )
    .sort((a, b) => compareText(a.meta.namespace, b.meta.namespace) || compareText(a.meta.name, b.meta.name))
  const endpoints: PodEndpoint[] = []
  for (const pod of pods) {
    const object = cluster.ciliumEndpoints.get(keyOf(pod.meta))
    if (hasObjects && object?.identity === undefined) {
      findings.push(unmanaged(pod, object !== undefined))
      continue
    }
    const labels = labelsOfPod(identities, pod)
    const identity = object?.identity ?? identities.table.get(printLabelSet(labels))?.number ?? lastClusterNumber
    endpoints.push({ pod, ips: addressesOf(pod), identity, labels })
  }
  return endpoints
}

function addressesOf({ podIPs }: Pod): PodEndpoint['ips'] {
  const ips: PodEndpoint['ips'][number][] = []
  for (const [index, text] of podIPs.entries()) {
    const ip = parseIp(text)
    if (ip !== undefined) ips.push({ ip, path: podIpPaths[index] ?? `status.podIPs[${index}]` })
  }
  return ips
}

const podIpPaths = ['status.podIPs[0]', 'status.podIPs[1]']

function unmanaged({ meta }: Pod, hasObject: boolean): Finding {
  const what = hasObject ? 'its CiliumEndpoint has no identity' : 'other pods have a CiliumEndpoint and it has none'
  return mapsFinding('maps.pod-without-identity', {
    message: `${what}: Cilium does not manage it, so that no map knows it, and others see it as world`,
    object: refOf(meta),
    origin: meta.origin,
    hint: 'look at its events and at the agent of its node; a pod started before Cilium has to be started anew',
  })
}

type LocalFacts = Pick<NodeWorld, 'cluster' | 'node' | 'pods' | 'learned' | 'settings'>

/** Those of CiliumEndpoint objects have their numbers, others the first that are free, in the order of their names. */
function localEndpoints({ cluster, node, pods, learned, settings }: LocalFacts): readonly LocalEndpoint[] {
  const own = pods.filter(({ pod }) => pod.nodeName === node)
  const told = own.map((one) => toldId(cluster, one, learned))
  const taken = new Set(told.filter((id) => id !== undefined))
  let next = 1
  const free = (): number => {
    while (taken.has(next)) next++
    return next++
  }
  const ofPods = own.map((one, index): LocalEndpoint => {
    const id = told[index]
    return {
      id: id ?? free(),
      isNumbered: id === undefined,
      kind: 'pod',
      identity: one.identity,
      ips: one.ips,
      pod: one,
      meta: one.pod.meta,
      title: keyOf(one.pod.meta),
    }
  })
  const object = cluster.ciliumNodes.get(node)
  const others = [
    { kind: 'health', texts: object?.healthIps ?? [], path: 'spec.health', identity: identityNumbers.health },
    { kind: 'ingress', texts: object?.ingressIps ?? [], path: 'spec.ingress', identity: identityNumbers.ingress },
  ] as const
  const ofNode = others.flatMap(({ kind, texts, path, identity }): readonly LocalEndpoint[] => {
    const ips = texts.flatMap((text) => {
      const ip = parseIp(text)
      return ip === undefined ? [] : [{ ip, path: `${path}.${ip.family}` }]
    })
    if (ips.length === 0) return []
    const known = texts.map((text) => learned.endpointIds.get(text)).find((id) => id !== undefined)
    const meta = object?.meta
    return [
      { id: known ?? free(), isNumbered: known === undefined, kind, identity, ips, title: kind, ...(meta && { meta }) },
    ]
  })
  return [...ofPods, ...ofNode, ...(settings.policy.hasHostFirewall ? [hostEndpoint(cluster, node, free)] : [])]
}

function toldId(cluster: Cluster, { pod, ips }: PodEndpoint, { endpointIds }: Learned): number | undefined {
  const own = cluster.ciliumEndpoints.get(keyOf(pod.meta))?.id
  if (own !== undefined) return own
  return pod.podIPs.length === ips.length
    ? pod.podIPs.map((ip) => endpointIds.get(ip)).find((id) => id !== undefined)
    : undefined
}

function hostEndpoint(cluster: Cluster, node: string, free: () => number): LocalEndpoint {
  const meta = cluster.nodes.get(node)?.meta
  return {
    id: free(),
    isNumbered: true,
    kind: 'host',
    identity: identityNumbers.host,
    ips: [],
    title: 'host',
    ...(meta && { meta }),
  }
}
