/** An EndpointSlice (discovery.k8s.io/v1) and a v1 Endpoints object. Absent conditions stay absent: readers give them meaning. */
import type { ObjectRef } from '#base/finding'
import type { Meta } from './meta'
import type { Protocol } from './service'

export type Conditions = { readonly ready?: boolean; readonly serving?: boolean; readonly terminating?: boolean }

export type TargetRef = ObjectRef & { readonly uid?: string }

export type Endpoint = {
  /** Canonical addresses; kube-proxy uses the first alone. */
  readonly addresses: readonly string[]
  readonly conditions: Conditions
  readonly hostname?: string
  readonly nodeName?: string
  readonly zone?: string
  readonly targetRef?: TargetRef
  readonly forZones?: readonly string[]
  readonly forNodes?: readonly string[]
}

export type EndpointPort = {
  /** Absent is not the same as the empty name. */
  readonly name?: string
  readonly protocol: Protocol
  readonly port?: number
  readonly appProtocol?: string
}

export type AddressType = 'IPv4' | 'IPv6' | 'FQDN'

export type EndpointSlice = {
  readonly meta: Meta
  readonly addressType: AddressType
  readonly endpoints: readonly Endpoint[]
  readonly ports: readonly EndpointPort[]
}

export type EndpointsAddress = {
  readonly ip: string
  readonly hostname?: string
  readonly nodeName?: string
  readonly targetRef?: TargetRef
}

export type EndpointsSubset = {
  readonly addresses: readonly EndpointsAddress[]
  readonly notReadyAddresses: readonly EndpointsAddress[]
  readonly ports: readonly EndpointPort[]
}

export type Endpoints = { readonly meta: Meta; readonly subsets: readonly EndpointsSubset[] }

export const serviceNameLabel = 'kubernetes.io/service-name'
export const managedByLabel = 'endpointslice.kubernetes.io/managed-by'
export const headlessLabel = 'service.kubernetes.io/headless'
export const proxyNameLabel = 'service.kubernetes.io/service-proxy-name'
