/** All that Cilium enforces in a cluster: policies as rules, the prefixes they name, and what it refuses or ignores. */
import type { Finding } from '#base/finding'
import { parseIp } from '#base/ip'
import { hostPrefix, type Prefix } from '#base/prefix'
import { compareText } from '#base/text'
import { reservedLabel } from '#compile/identities/label'
import type { PrefixFacts } from '#compile/identities/prefix-identities'
import type { FqdnSelector } from '#model/cilium-policy'
import type { Cluster } from '#model/cluster'
import { serviceNameLabel } from '#model/endpoint-slice'
import { type Meta, refOf } from '#model/meta'
import { faultOf } from './cilium-agent-checks'
import { matchesName } from './cilium-dns-cache'
import { clusterPortNames, whyDisputed } from './cilium-named-ports'
import type { CiliumSettings } from './cilium-options'
import { prefixesOf } from './cilium-peers'
import { peerOf } from './cilium-rule'
import { compileCiliumNetworkPolicy } from './compile-cilium-network-policy'
import { compileCiliumPolicy } from './compile-cilium-policy'
import { policyFinding } from './findings'
import type { CompiledPolicy } from './policy-rule'

export type CiliumCompilation = {
  readonly settings: CiliumSettings
  readonly policies: readonly CompiledPolicy[]
  readonly prefixes: readonly PrefixFacts[]
  /** Addresses of the API server, wherever it runs. */
  readonly apiServers: ReadonlySet<string>
  readonly findings: readonly Finding[]
}

/** In the order of kinds and names, which changes no answer. */
export function compileCilium(cluster: Cluster, settings: CiliumSettings): CiliumCompilation {
  const findings: Finding[] = [...ignoredTiers(cluster, settings)]
  const own = byName(cluster.ciliumPolicies.values()).flatMap((policy) => {
    const fault = faultOf(policy, settings)
    if (fault === undefined) return compileCiliumPolicy(policy, cluster, settings)
    findings.push(
      policyFinding('policy.agent-refuses', {
        message: `the API server takes this object, but the agent of Cilium ${settings.version} refuses it, so that nothing of it is enforced: ${fault.why}`,
        ...placeOf(policy.meta),
        path: fault.path,
        ...(fault.hint !== undefined && { hint: fault.hint }),
      }),
    )
    return []
  })
  const plain = byName(cluster.networkPolicies.values()).flatMap((policy) =>
    compileCiliumNetworkPolicy(policy, settings),
  )
  const policies = [...plain, ...own]
  findings.push(...disputedNames(policies, cluster))
  const apiServers = apiServerAddresses(cluster)
  return { settings, policies, prefixes: prefixFacts(policies, settings, apiServers), apiServers, findings }
}

function byName<T extends { readonly meta: Meta }>(objects: Iterable<T>): readonly T[] {
  const name = ({ meta }: T): string => `${meta.kind} ${meta.namespace}/${meta.name}`
  return [...objects].sort((a, b) => compareText(name(a), name(b)))
}

function placeOf(meta: Meta): Pick<Finding, 'object' | 'origin'> {
  return { object: refOf(meta), origin: meta.origin }
}

function disputedNames(policies: readonly CompiledPolicy[], cluster: Cluster): readonly Finding[] {
  const names = clusterPortNames(cluster)
  if (names.disputed.size === 0) return []
  return policies.flatMap(({ direction, source, rules }) =>
    (direction === 'ingress' ? [] : rules).flatMap(({ ports, path }) =>
      (ports === 'any' ? [] : ports).flatMap((port) => {
        const why = port.kind === 'named' ? whyDisputed(names, port.name) : undefined
        if (why === undefined) return []
        const { object, origin } = source
        const hint = 'write the number in the rule, or give the ports different names'
        return [policyFinding('policy.port-name-disputed', { message: why, object, origin, path, hint })]
      }),
    ),
  )
}

function ignoredTiers(cluster: Cluster, { version }: CiliumSettings): readonly Finding[] {
  return byName(cluster.tierPolicies.values()).map(({ meta }) =>
    policyFinding('policy.not-read', {
      message: `Cilium ${version} does not read ${meta.kind}, so that nothing of it is enforced`,
      ...placeOf(meta),
      hint:
        meta.kind === 'ClusterNetworkPolicy'
          ? 'Cilium reads the kind from 1.20 on; until then write a CiliumClusterwideNetworkPolicy'
          : 'write a CiliumClusterwideNetworkPolicy, or a ClusterNetworkPolicy for Cilium 1.20',
    }),
  )
}

/** Endpoints of the Service `default/kubernetes`. */
function apiServerAddresses(cluster: Cluster): ReadonlySet<string> {
  const slices = [...cluster.slices.values()].filter(
    ({ meta }) => meta.namespace === 'default' && meta.labels[serviceNameLabel] === 'kubernetes',
  )
  const inSlices = slices.flatMap(({ endpoints }) => endpoints.flatMap(({ addresses }) => addresses))
  const subsets = cluster.endpoints.get('default/kubernetes')?.subsets ?? []
  return new Set([...inSlices, ...subsets.flatMap(({ addresses }) => addresses.map(({ ip }) => ip))])
}

function prefixFacts(
  policies: readonly CompiledPolicy[],
  settings: CiliumSettings,
  apiServers: ReadonlySet<string>,
): readonly PrefixFacts[] {
  const named = policies.flatMap(({ rules }) => rules.flatMap(({ peers }) => prefixesOf(peers)))
  return [
    ...named.map((prefix) => ({ prefix })),
    ...learnedAddresses(policies, settings),
    ...[...apiServers].flatMap((address) =>
      hostOf(address).map((prefix) => ({ prefix, labels: [reservedLabel('kube-apiserver')] })),
    ),
  ]
}

/** Only names that some policy selects have identities. */
function learnedAddresses(policies: readonly CompiledPolicy[], settings: CiliumSettings): readonly PrefixFacts[] {
  if (settings.dnsCache === undefined) return []
  const selectors = policies.flatMap(({ rules }) =>
    rules.flatMap(({ peers }) => (peers === 'any' ? [] : peers.flatMap(fqdnOf))),
  )
  return [...settings.dnsCache].flatMap(([name, addresses]) => {
    if (!selectors.some((selector) => matchesName(selector, name, settings.version))) return []
    return addresses.flatMap((address) => hostOf(address).map((prefix) => ({ prefix, names: [name] })))
  })
}

function fqdnOf(peer: Exclude<CompiledPolicy['rules'][number]['peers'], 'any'>[number]): readonly FqdnSelector[] {
  if (peer.kind !== 'own') return []
  const detail = peerOf(peer)
  return detail.kind === 'name' ? [detail.fqdn] : []
}

function hostOf(address: string): readonly Prefix[] {
  const ip = parseIp(address)
  return ip === undefined ? [] : [hostPrefix(ip)]
}
