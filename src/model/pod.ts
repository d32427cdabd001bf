/** A pod, as far as addresses, ports, readiness and placement go. */
import type { Meta } from './meta'
import type { Protocol } from './service'

export type ContainerPort = {
  readonly name?: string
  readonly containerPort: number
  readonly protocol: Protocol
  readonly hostPort?: number
}

export type Container = {
  readonly name: string
  readonly ports: readonly ContainerPort[]
  /** Only `Always` on an init container makes it a sidecar. */
  readonly restartPolicy?: string
}

/** An option of resolv.conf, such as `ndots` with its value, or `edns0` without one. */
export type DnsOption = { readonly name: string; readonly value?: string }

/** `spec.dnsConfig`: what the kubelet adds to the resolv.conf that the policy gives. */
export type PodDnsConfig = {
  readonly nameservers: readonly string[]
  readonly searches: readonly string[]
  readonly options: readonly DnsOption[]
}

export type PodPhase = 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown'

export type Pod = {
  readonly meta: Meta
  readonly containers: readonly Container[]
  readonly initContainers: readonly Container[]
  readonly nodeName?: string
  /** Absent where the text has none: the API server then fills in `default`. */
  readonly serviceAccountName?: string
  readonly hostNetwork: boolean
  readonly hostname?: string
  readonly subdomain?: string
  readonly dnsPolicy: string
  readonly dnsConfig?: PodDnsConfig
  readonly phase: PodPhase
  /** Canonical addresses, `status.podIPs` order; empty when the pod has none yet. */
  readonly podIPs: readonly string[]
  readonly hostIPs: readonly string[]
  /** The pod's Ready condition is True. */
  readonly isReady: boolean
}

export type NamedPort = { readonly name: string; readonly protocol: Protocol; readonly port: number }

/** Of containers, and of init containers that keep running; of one name and protocol the first counts. */
export function namedPorts({ containers, initContainers }: Pod): readonly NamedPort[] {
  const found: NamedPort[] = []
  for (const { ports } of containers) addNamedPorts(found, ports)
  for (const { ports, restartPolicy } of initContainers) if (restartPolicy === 'Always') addNamedPorts(found, ports)
  return found
}

function addNamedPorts(found: NamedPort[], ports: readonly ContainerPort[]): void {
  for (const { name, protocol, containerPort } of ports) {
    if (name === undefined || found.some((one) => one.name === name && one.protocol === protocol)) continue
    found.push({ name, protocol, port: containerPort })
  }
}
