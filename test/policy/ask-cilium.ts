/** The example world of Cilium's cases, and questions to it: A, B, C and D are pods, as there. */
import type { Finding } from '#base/finding'
import { parseIp } from '#base/ip'
import { labelSet, reservedLabel } from '#compile/identities/label'
import { endpointPolicyMap, type PolicyEndpoint, policyMaker } from '#compile/policy/cilium-endpoint-map'
import { labelsOfPod } from '#compile/policy/cilium-identities'
import type { CiliumOptions } from '#compile/policy/cilium-options'
import type { PolicyEntry } from '#compile/policy/cilium-policy-entry'
import type { Direction, PolicyProtocol } from '#compile/policy/policy-rule'
import { parseCluster } from '#manifests/parse-cluster'
import type { Cluster } from '#model/cluster'
import { namedPorts } from '#model/pod'
import type { DirectionAnswer } from '#trace/policy/answer'
import { type CiliumSemantics, ciliumSemantics } from '#trace/policy/cilium-semantics'
import { decide } from '#trace/policy/decide'
import { evaluate } from '#trace/policy/evaluate'
import type { Party } from '#trace/policy/party'
import { commonFamily, nearnessOf } from '#trace/policy/party-facts'
import { classOf, type PolicyWorld, partyOfIp, preparePolicies } from '#trace/policy/world'
import { namespace, node, pod, type Raw } from './policy-objects'

const names: Readonly<Record<string, string>> = { A: 'business/a', B: 'business/b', C: 'business/c', D: 'other/d' }

export const exampleWorld: readonly Raw[] = [
  node('node-a', '192.168.1.10'),
  node('node-b', '192.168.1.11'),
  namespace('business', { team: 'red' }),
  namespace('other', { team: 'blue' }),
  pod('business/a', { app: 'client' }, { ip: '10.244.1.10', nodeName: 'node-a' }),
  pod(
    'business/b',
    { app: 'server' },
    { ip: '10.244.1.20', nodeName: 'node-a', ports: [{ name: 'web', containerPort: 8080 }] },
  ),
  pod('business/c', { app: 'server', ver: 'v2' }, { ip: '10.244.2.30', nodeName: 'node-b' }),
  pod('other/d', { app: 'client' }, { ip: '10.244.2.40', nodeName: 'node-b' }),
  ciliumIdentity('1001', 'business', 'red', { app: 'client' }),
  ciliumIdentity('1002', 'business', 'red', { app: 'server' }),
  ciliumIdentity('1003', 'business', 'red', { app: 'server', ver: 'v2' }),
  ciliumIdentity('1004', 'other', 'blue', { app: 'client' }),
]

function ciliumIdentity(name: string, space: string, team: string, labels: Readonly<Record<string, string>>): Raw {
  const own = Object.entries(labels).map(([key, value]) => [`k8s:${key}`, value] as const)
  return {
    apiVersion: 'cilium.io/v2',
    kind: 'CiliumIdentity',
    metadata: { name },
    'security-labels': {
      'k8s:io.kubernetes.pod.namespace': space,
      'k8s:io.cilium.k8s.namespace.labels.kubernetes.io/metadata.name': space,
      'k8s:io.cilium.k8s.namespace.labels.team': team,
      'k8s:io.cilium.k8s.policy.serviceaccount': 'default',
      'k8s:io.cilium.k8s.policy.cluster': 'default',
      ...Object.fromEntries(own),
    },
  }
}

export function cnp(path: string, spec: Raw): Raw {
  const [space, name] = path.split('/')
  return { apiVersion: 'cilium.io/v2', kind: 'CiliumNetworkPolicy', metadata: { namespace: space, name }, spec }
}

export function ccnp(name: string, spec: Raw): Raw {
  return { apiVersion: 'cilium.io/v2', kind: 'CiliumClusterwideNetworkPolicy', metadata: { name }, spec }
}

export type CiliumAsked = {
  readonly cluster: Cluster
  readonly semantics: CiliumSemantics
  readonly world: PolicyWorld
  readonly findings: readonly Finding[]
  /** Of one direction: `allowed`, `unknown`, or the number of the drop reason. */
  readonly at: (direction: Direction, source: string, target: string, connection: string) => string
  readonly answer: (direction: Direction, source: string, target: string, connection: string) => DirectionAnswer
  /** `Allow Ingress 1001 8080/TCP`, sorted. */
  readonly map: (endpoint: string) => readonly string[]
  readonly entries: (endpoint: string) => readonly PolicyEntry[]
  readonly party: (name: string) => Party
}

export function askCilium(objects: readonly Raw[], options: CiliumOptions = {}): CiliumAsked {
  const text = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects })
  const { value: cluster, findings } = parseCluster(text, 'f.json')
  const semantics = ciliumSemantics(cluster, options)
  const world = preparePolicies(cluster, { semantics })
  const party = (name: string): Party => findParty(world, names[name] ?? name)
  const answer: CiliumAsked['answer'] = (direction, source, target, connection) => {
    const [protocol = '', port, code] = connection.split(' ')
    const [from, to] = [party(source), party(target)]
    const found = evaluate(world, {
      source: from,
      target: to,
      protocol: protocol as PolicyProtocol,
      ...(port !== undefined && { port: Number(port) }),
      ...(code !== undefined && { icmpCode: Number(code) }),
    })
    if (code === undefined)
      checkFastWay({ world, cluster }, { from, to }, { protocol: protocol as PolicyProtocol, port, found })
    return found[direction]
  }
  const at: CiliumAsked['at'] = (...question) => {
    const { decision, because } = answer(...question)
    const drop = because.map(({ code }) => /^cilium\.drop-(\d+)$/.exec(code)?.[1]).find((one) => one !== undefined)
    return decision === 'denied' ? (drop ?? 'denied') : decision
  }
  const entries = (endpoint: string): readonly PolicyEntry[] =>
    endpointPolicyMap(policyMaker(semantics.identities, world.policies), endpointOf(semantics, party(endpoint))).entries
  const map = (endpoint: string): readonly string[] => entries(endpoint).map(printEntry).sort()
  return { cluster, semantics, world, findings: [...findings, ...semantics.findings], at, answer, map, entries, party }
}

function endpointOf({ identities }: CiliumSemantics, party: Party): PolicyEndpoint {
  if (party.kind === 'pod' && !party.pod.hostNetwork) {
    return { kind: 'endpoints', labels: labelsOfPod(identities, party.pod), ports: namedPorts(party.pod) }
  }
  const labels = party.kind === 'node' ? Object.entries(party.node.meta.labels) : []
  const own = labels.map(([key, value]) => ({ source: 'k8s', key, value }))
  return { kind: 'host', labels: labelSet([...own, reservedLabel('host')]), ports: [] }
}

type FastQuestion = {
  readonly protocol: PolicyProtocol
  readonly port: string | undefined
  readonly found: { readonly allowed: boolean | null }
}

/** The fast way must say the same. */
function checkFastWay(
  { world, cluster }: Pick<CiliumAsked, 'world' | 'cluster'>,
  { from, to }: { readonly from: Party; readonly to: Party },
  { protocol, port, found }: FastQuestion,
): void {
  const family = commonFamily(cluster, from, to)
  const fast = decide(world, {
    source: classOf(world, from, family).id,
    target: classOf(world, to, family).id,
    protocol,
    port: Number(port ?? (protocol === 'ICMP' ? 8 : protocol === 'ICMPv6' ? 128 : 0)),
    nearness: nearnessOf(from, to),
  })
  const told = found.allowed === null ? 'unknown' : found.allowed ? 'allowed' : 'denied'
  if (fast !== told) throw new Error(`decide says ${fast}, and evaluate ${told}`)
}

function findParty(world: PolicyWorld, name: string): Party {
  const { cluster } = world
  const ip = parseIp(name)
  if (ip !== undefined) return partyOfIp(world, ip)
  const found = cluster.pods.get(name)
  if (found !== undefined) return { kind: 'pod', pod: found }
  const onNode = cluster.nodes.get(name)
  return onNode === undefined ? { kind: 'entity', name } : { kind: 'node', node: onNode }
}

const protocolNames: Readonly<Record<number, string>> = {
  1: 'ICMP',
  6: 'TCP',
  17: 'UDP',
  58: 'ICMPv6',
  132: 'SCTP',
  112: 'VRRP',
  2: 'IGMP',
}

/** `Allow Ingress 1001 8080/TCP`, a range with its prefix length, `http` for a redirection. */
export function printEntry({ key, isDeny, redirect, auth }: PolicyEntry): string {
  const { direction, identity, protocol, port, length } = key
  const name = protocolNames[protocol] ?? protocol
  const at =
    length === 0 ? 'ANY' : length === 8 ? name : length === 24 ? `${port}/${name}` : `${port}/${name}/${length - 8}`
  const then = [redirect?.parser, auth.type === 0 ? undefined : `auth${auth.type}`].filter((one) => one !== undefined)
  return [isDeny ? 'Deny' : 'Allow', direction === 'ingress' ? 'Ingress' : 'Egress', identity, at, ...then].join(' ')
}
