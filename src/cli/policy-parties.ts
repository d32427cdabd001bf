/** The two ends of a connection as the command line names them: pods, workloads, Services, nodes, addresses, entities. */
import { Failure } from '#base/failure'
import { canonicalIp, explainBadIp, type Family, type Ip, parseIp, printIp } from '#base/ip'
import { compareText, listOf } from '#base/text'
import { isEntity } from '#compile/identities/entities'
import type { Cluster } from '#model/cluster'
import { nodeIps } from '#model/node'
import type { Pod } from '#model/pod'
import { matchesSelector } from '#model/selector'
import type { Service } from '#model/service'
import { workloadKey } from '#model/workload'
import type { Party } from '#trace/policy/party'
import { hasEnded } from '#trace/policy/party-facts'
import { ownerOf } from '#verify/policy/pod-owner'
import { kindOf } from './kind-words'

/** `family` is that of the address by which it is named, if it is. */
export type NamedParty = { readonly name: string; readonly party: Party; readonly family?: Family }

/** A Service stands for its backends, which depend on the port. */
export type PolicyEnd =
  | {
      readonly kind: 'parties'
      readonly name: string
      readonly parties: readonly [NamedParty, ...NamedParty[]]
      readonly note?: string
    }
  | {
      readonly kind: 'service'
      readonly name: string
      readonly service: Service
      readonly family?: Family
      readonly note?: string
    }

export type EndSetting = {
  readonly cluster: Cluster
  readonly semantics: 'k8s' | 'cilium'
  readonly namespace: string
  /** The other end's namespace, where a name without one is looked for first. */
  readonly home?: string
  /** As the command line names it. */
  readonly flag: string
  readonly isTarget: boolean
}

const forms = 'NS/POD, NS/KIND/NAME, NS/svc/NAME, node/NAME or an IP address'

export function parseEnd(text: string, setting: EndSetting): PolicyEnd {
  const parts = text.split('/')
  if (parts.some((part) => part === '') || parts.length > 3) {
    throw usage(`${setting.flag} ${text === '' ? 'is empty; write one' : `${text} is none`} of ${forms}`)
  }
  const [first = '', second = '', third = ''] = parts
  if (parts.length === 1) return parseWord(text, setting)
  if (parts.length === 3) return endOfKind(setting, { namespace: first, kind: second, name: third })
  if (isNodeWord(first)) return nodeEnd(setting, second)
  const isKind = kindOf(first) !== undefined && !setting.cluster.pods.has(text)
  if (isKind) return endOfKind(setting, { namespace: namespaceFor(setting, second), kind: first, name: second })
  return podEnd(setting, `${first}/${second}`)
}

/** Of an end that is a pod or its workload. */
export function namespaceOfEnd(end: PolicyEnd): string | undefined {
  const party = end.kind === 'parties' ? end.parties[0].party : undefined
  return party?.kind === 'pod' ? party.pod.meta.namespace : undefined
}

/** With the other end first; where neither has the name, the refusal is about the likelier one. */
function namespaceFor({ cluster, namespace, home = namespace }: EndSetting, name: string): string {
  const holds = (where: string): boolean =>
    cluster.pods.has(`${where}/${name}`) ||
    cluster.services.has(`${where}/${name}`) ||
    [...cluster.workloads.values()].some(({ meta }) => meta.namespace === where && meta.name === name)
  return [home, namespace].find(holds) ?? home
}

function usage(sentence: string): Failure {
  return new Failure('usage.bad-argument', sentence)
}

function isNodeWord(word: string): boolean {
  return /^(?:node|nodes|no)$/i.test(word)
}

function parseWord(text: string, setting: EndSetting): PolicyEnd {
  const looksLikeIp = /^[\d.]+$|:/.test(text)
  const ip = canonicalIp(text)
  if (ip !== undefined) return addressEnd(setting, ip)
  if (looksLikeIp) throw usage(`${setting.flag}: ${explainBadIp(text)}`)
  if (!isEntity(text)) return podEnd(setting, `${namespaceFor(setting, text)}/${text}`)
  if (setting.semantics === 'cilium') return single(text, { kind: 'entity', name: text })
  throw usage(`${setting.flag} ${text} is an entity of Cilium; add --semantics cilium, or name ${forms}`)
}

function single(name: string, party: Party): PolicyEnd {
  return { kind: 'parties', name, parties: [{ name, party }] }
}

function byAddress(name: string, party: Party, ip: Ip): PolicyEnd {
  const noun = party.kind === 'node' ? '' : 'pod '
  const note = `${printIp(ip)} is the address of ${noun}${name.replace('node/', 'node ')}`
  return { kind: 'parties', name, parties: [{ name, party, family: ip.family }], note }
}

/** An address that the input knows is its holder's. */
function addressEnd(setting: EndSetting, text: string): PolicyEnd {
  const { cluster, flag, isTarget } = setting
  const ip = parseIp(text)
  if (ip === undefined) throw usage(explainBadIp(text))
  const node = [...cluster.nodes.values()].find((one) => nodeIps(one).includes(text))
  if (node !== undefined) {
    return byAddress(`node/${node.meta.name}`, { kind: 'node', node }, ip)
  }
  const pod = [...cluster.pods.values()].find((one) => one.podIPs.includes(text) && !hasEnded(one))
  if (pod !== undefined) {
    return byAddress(nameOf(pod), { kind: 'pod', pod }, ip)
  }
  const service = [...cluster.services.values()].find((one) => addressesOf(one).includes(text))
  if (service === undefined) return single(text, { kind: 'address', ip })
  const end = serviceEnd(setting, `${service.meta.namespace}/${service.meta.name}`)
  if (!isTarget) throw usage(`${flag} ${text} is the address of ${end.name}, which sends nothing; name its pods`)
  return { ...end, family: ip.family, note: `${text} is an address of ${end.name}` }
}

function addressesOf(service: Service): readonly string[] {
  const ingress = service.loadBalancerIngress.flatMap(({ ip }) => ip ?? [])
  return [...service.clusterIPs, ...service.externalIPs, ...ingress]
}

function nodeEnd({ cluster, flag }: EndSetting, name: string): PolicyEnd {
  const node = cluster.nodes.get(name)
  if (node !== undefined) return single(`node/${name}`, { kind: 'node', node })
  throw notFound(`${flag} node/${name}: no Node has that name`, [...cluster.nodes.keys()], { noun: 'Node', name })
}

/** Of names that differ in case alone the one that is meant is told. */
function notFound(sentence: string, names: readonly string[], { noun, name }: Missing): Failure {
  const sorted = [...names].sort(compareText)
  const meant = sorted.filter((one) => one.toLowerCase() === name.toLowerCase())
  const told = meant.length > 0 ? meant : sorted
  const verb = told.length === 1 ? 'there is' : 'there are'
  const known = told.length === 0 ? `the input has no ${noun}` : `${verb} ${listOf(told, mostNames)}`
  return new Failure('usage.not-found', `${sentence}: ${known}`)
}

type Missing = { readonly noun: string; readonly name: string }

/** Names that a refusal lists. */
const mostNames = 8

/** What a name may mean that no pod, workload or Service has. */
function otherMeaning({ nodes }: Cluster, name: string): string {
  const node = [...nodes.keys()].find((one) => one.toLowerCase() === name.toLowerCase())
  if (node !== undefined) return `; of a node write node/${node}`
  const isDns = name.includes('.') || name === 'localhost'
  return isDns ? '; names of the DNS are not looked up: write the address' : ''
}

function nameOf({ meta }: Pod): string {
  return `${meta.namespace}/${meta.name}`
}

function podEnd(setting: EndSetting, key: string): PolicyEnd {
  const { cluster, flag, isTarget } = setting
  const pod = cluster.pods.get(key)
  const [namespace = '', name = ''] = key.split('/')
  if (pod === undefined) {
    const [workload, second] = [...cluster.workloads.values()].filter(
      ({ meta }) => meta.namespace === namespace && meta.name === name,
    )
    const isService = cluster.services.has(key)
    const isOther = second !== undefined || (isService && isTarget)
    if (workload !== undefined && !isOther) return workloadEnd(setting, { namespace, kind: workload.kind, name })
    if (workload !== undefined) {
      const words = [workload, second].flatMap((one) => (one === undefined ? [] : [one.kind.toLowerCase()]))
      const ways = [...words, ...(isService ? ['svc'] : [])].map((word) => `${namespace}/${word}/${name}`)
      throw usage(`${flag} ${key} is no pod, and may mean others; write ${listOf(ways).replace(' and ', ' or ')}`)
    }
    if (isService) throw usage(`${flag} ${key} is no pod but a Service; write ${namespace}/svc/${name}`)
    const near = [...cluster.pods.keys()].filter((other) => other.startsWith(`${namespace}/`))
    const sentence = `${flag} ${key}: no Pod has that name${otherMeaning(cluster, name)}`
    throw notFound(sentence, near.length > 0 ? near : [...cluster.pods.keys()], { noun: 'Pod', name: key })
  }
  if (hasEnded(pod)) throw usage(`${flag} ${key}: the pod has ended (${pod.phase}) and holds no address`)
  return single(key, { kind: 'pod', pod })
}

type Named = { readonly namespace: string; readonly kind: string; readonly name: string }

function endOfKind(setting: EndSetting, { namespace, kind: word, name }: Named): PolicyEnd {
  const kind = kindOf(word)
  if (kind === 'Pod') return podEnd(setting, `${namespace}/${name}`)
  if (kind === 'Service') {
    const end = serviceEnd(setting, `${namespace}/${name}`)
    if (setting.isTarget) return end
    throw usage(`${setting.flag} ${namespace}/${word}/${name} is a Service, which sends nothing; name its pods`)
  }
  return workloadEnd(setting, { namespace, kind: kind ?? word, name })
}

function serviceEnd({ cluster, flag }: EndSetting, key: string): Extract<PolicyEnd, { kind: 'service' }> {
  const service = cluster.services.get(key)
  if (service !== undefined) return { kind: 'service', name: `Service ${key}`, service }
  throw notFound(`${flag}: no Service is named ${key}`, [...cluster.services.keys()], { noun: 'Service', name: key })
}

function workloadEnd({ cluster, flag }: EndSetting, { namespace, kind, name }: Named): PolicyEnd {
  const pods = [...cluster.pods.values()].filter(
    (pod) => pod.meta.namespace === namespace && !hasEnded(pod) && belongsTo(cluster, pod, { namespace, kind, name }),
  )
  const parties = pods
    .sort((a, b) => compareText(a.meta.name, b.meta.name))
    .map((pod) => ({
      name: nameOf(pod),
      party: { kind: 'pod', pod } as const,
    }))
  const [first, ...rest] = parties
  const shown = `${kind} ${namespace}/${name}`
  if (first !== undefined) return { kind: 'parties', name: shown, parties: [first, ...rest] }
  if (cluster.workloads.has(workloadKey(kind, { namespace, name }))) {
    throw new Failure('usage.not-found', `${flag}: ${shown} has no pods, in the input or implied`)
  }
  const known = [...cluster.workloads.values()].map(
    ({ kind: own, meta }) => `${meta.namespace}/${own.toLowerCase()}/${meta.name}`,
  )
  throw notFound(`${flag}: there is no ${shown}`, known, {
    noun: 'workload',
    name: `${namespace}/${kind.toLowerCase()}/${name}`,
  })
}

/** By owner, or by name and labels where owner references are missing. */
function belongsTo(cluster: Cluster, pod: Pod, { namespace, kind, name }: Named): boolean {
  const owner = ownerOf(cluster, pod)
  if (owner.kind === kind && owner.name === name) return true
  if (pod.meta.ownerReferences.some((one) => one.kind === kind && one.name === name)) return true
  const workload = cluster.workloads.get(workloadKey(kind, { namespace, name }))
  if (workload?.selector === undefined || pod.meta.ownerReferences.length > 0) return false
  return pod.meta.name.startsWith(`${name}-`) && matchesSelector(workload.selector, pod.meta.labels)
}
