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

export type PodPhase = 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown'

export type Pod = {
  readonly meta: Meta
  readonly containers: readonly Container[]
  readonly initContainers: readonly Container[]
  readonly nodeName?: string
  readonly hostNetwork: boolean
  readonly hostname?: string
  readonly subdomain?: string
  readonly dnsPolicy: string
  readonly phase: PodPhase
  /** Canonical addresses, `status.podIPs` order; empty when the pod has none yet. */
  readonly podIPs: readonly string[]
  readonly hostIPs: readonly string[]
  /** The pod's Ready condition is True. */
  readonly isReady: boolean
}
