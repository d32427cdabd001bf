/** Names of the chains and sets that kube-proxy makes for a Service port and its endpoints. */
import { sha256Base32 } from '#base/hash'
import type { Service, ServicePort } from '#model/service'

export type NamedPort = {
  readonly service: Pick<Service, 'meta'>
  readonly servicePort: Pick<ServicePort, 'name'>
  /** Lower case. */
  readonly protocol: string
}

export type ServiceChains = {
  readonly cluster: string
  readonly local: string
  readonly external: string
  readonly firewall: string
}

/** `namespace/name/protocol/port`; an unnamed port leaves the slash. */
export function portText({ service, servicePort, protocol }: NamedPort): string {
  return `${service.meta.namespace}/${service.meta.name}/${protocol}/${servicePort.name}`
}

/** `text` is the port's own, from `portText`. */
export function serviceChains(text: string): ServiceChains {
  const base = withHash(text)
  return {
    cluster: `service-${base}`,
    local: `local-${base}`,
    external: `external-${base}`,
    firewall: `firewall-${base}`,
  }
}

const endpointPrefix = 'endpoint-'

/** A colon may not stand in a chain's name, so the parts of an IPv6 address have dots between them. */
export function endpointChain(text: string, { ip, port }: EndpointAddress): string {
  const address = ip.includes(':') ? ip.replaceAll(':', '.') : ip
  return endpointPrefix + withHash(`${text}__${address}/${port}`)
}

/** The set of the clients that an endpoint remembers, from the name of its chain. */
export function affinitySet(chain: string): string {
  return `affinity-${chain.slice(endpointPrefix.length)}`
}

type EndpointAddress = { readonly ip: string; readonly port: number }

const longest = 240
const cutMark = '...'
const hashLength = 8

/** pkg/proxy/nftables/proxier.go hashAndTruncate (1.34): the hash keeps a name that is cut unlike any other. */
function withHash(text: string): string {
  const name = `${sha256Base32(text, hashLength)}-${text}`
  return name.length > longest ? name.slice(0, longest - cutMark.length) + cutMark : name
}

/** True for the chains of Service ports and endpoints: no other chain of kube-proxy has a slash in its name. */
export function isServiceChain(chain: string): boolean {
  return chain.includes('/')
}
