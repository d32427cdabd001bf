/** Names of the chains that kube-proxy makes for a Service port and its endpoints, and the way back from a name. */
import { sha256Base32, sha256Hex } from '#base/hash'
import type { Service, ServicePort } from '#model/service'

/** `own` names have 16 hex digits where kube-proxy's have base32, so a reader can tell who wrote a chain. */
export type ChainNaming = 'kube-proxy' | 'own'

export type ServiceChains = {
  readonly cluster: string
  readonly local: string
  readonly external: string
  readonly firewall: string
}

const prefixes = { cluster: 'KUBE-SVC-', local: 'KUBE-SVL-', external: 'KUBE-EXT-', firewall: 'KUBE-FW-' } as const
const endpointPrefix = 'KUBE-SEP-'
const hashLength = 16

/** `port` is a Service port as kube-proxy calls it: `namespace/name` or `namespace/name:port`, protocol in lower case. */
export type NamedPort = { readonly name: string; readonly protocol: string }

/** pkg/proxy/iptables/proxier.go portProtoHash (1.34): name and protocol go in without anything between them. */
export function serviceChains({ name, protocol }: NamedPort, naming: ChainNaming = 'kube-proxy'): ServiceChains {
  const hash = hashOf(name + protocol, naming)
  return {
    cluster: prefixes.cluster + hash,
    local: prefixes.local + hash,
    external: prefixes.external + hash,
    firewall: prefixes.firewall + hash,
  }
}

/** `endpoint` is `ip:port`, with brackets around an IPv6 address. */
export function endpointChain(
  { name, protocol }: NamedPort,
  endpoint: string,
  naming: ChainNaming = 'kube-proxy',
): string {
  return endpointPrefix + hashOf(name + protocol + endpoint, naming)
}

function hashOf(text: string, naming: ChainNaming): string {
  return naming === 'own' ? sha256Hex(text, hashLength) : sha256Base32(text, hashLength)
}

/** True for chains that kube-proxy makes per Service port or endpoint, and cleans up when they are stale. */
export function isServiceChain(chain: string): boolean {
  return chain.startsWith(endpointPrefix) || Object.values(prefixes).some((prefix) => chain.startsWith(prefix))
}

/** Whose chain a name is; `isOldForm` for `namespace/name:`, as kube-proxy before 1.19 called an unnamed port. */
export type ChainOwner = {
  readonly service: Service
  readonly port: ServicePort
  readonly naming: ChainNaming
  readonly isOldForm: boolean
}

export type ChainOwners = ReadonlyMap<string, ChainOwner>

/** Indexes Service ports by the part of a chain name after its prefix; chains of endpoints need their endpoints known. */
export function indexChainOwners(services: Iterable<Service>): ChainOwners {
  const owners = new Map<string, ChainOwner>()
  for (const service of services) {
    const base = `${service.meta.namespace}/${service.meta.name}`
    for (const port of service.ports) {
      const protocol = port.protocol.toLowerCase()
      const name = port.name === '' ? base : `${base}:${port.name}`
      for (const naming of ['kube-proxy', 'own'] as const) {
        owners.set(hashOf(name + protocol, naming), { service, port, naming, isOldForm: false })
      }
      if (port.name !== '') continue
      owners.set(hashOf(`${base}:${protocol}`, 'kube-proxy'), { service, port, naming: 'kube-proxy', isOldForm: true })
    }
  }
  return owners
}

/** Undefined for a chain of an endpoint, of another tool, or of a Service that is not in the index. */
export function chainOwner(owners: ChainOwners, chain: string): ChainOwner | undefined {
  const prefix = Object.values(prefixes).find((candidate) => chain.startsWith(candidate))
  return prefix === undefined ? undefined : owners.get(chain.slice(prefix.length))
}
