/** Rows of the load balancer as they are gathered: numbers of services and of backends are given in this order. */
import { type Ip, parseIp, printEndpoint, printIp } from '#base/ip'
import type { Prefix } from '#base/prefix'
import { protocolNumbers } from '#compile/policy/cilium-policy-entry'
import type { Protocol } from '#model/service'
import type { RowSource } from './map-source'
import type { NodeWorld } from './node-world'
import type { BackendState, PortBackend } from './service-backends'
import type { FrontendType } from './service-flags'

export type BackendRow = {
  readonly id: number
  readonly ip: Ip
  readonly port: number
  /** 0 before protocols were told apart. */
  readonly protocol: number
  readonly state: BackendState
  readonly source: RowSource
}

/** A frontend with its slots; slot 0 is the frontend itself. */
export type ServiceRow = {
  readonly type: FrontendType
  readonly ip: Ip
  readonly port: number
  readonly protocol: number
  readonly scope: 'external' | 'internal'
  readonly isSurrogate: boolean
  readonly isWildcard: boolean
  readonly flags: number
  readonly revNat: number
  /** 0 the node's own, 1 random, 2 Maglev. */
  readonly algorithm: number
  readonly affinitySeconds?: number
  readonly slots: readonly BackendRow[]
  readonly source: RowSource
}

export type NewFrontend = Omit<ServiceRow, 'protocol' | 'revNat' | 'isWildcard'> & { readonly protocol: Protocol }

export type NewBackend = Omit<BackendRow, 'id' | 'protocol'> & { readonly protocol: Protocol }

export type Lb = {
  readonly services: ServiceRow[]
  readonly backends: Map<string, BackendRow>
  readonly sourceRanges: { readonly revNat: number; readonly prefix: Prefix; readonly source: RowSource }[]
  readonly protocolOf: (protocol: Protocol) => number
  readonly addFrontend: (frontend: NewFrontend) => ServiceRow
  readonly addBackend: (backend: NewBackend) => BackendRow
  readonly backendOf: (backend: PortBackend, protocol: Protocol) => BackendRow
}

/** One pool of numbers serves both families, for services as for backends. */
export function startLb({ settings }: NodeWorld): Lb {
  const services: ServiceRow[] = []
  const places = new Map<string, number>()
  const backends = new Map<string, BackendRow>()
  const protocolOf = (protocol: Protocol): number => (settings.tellsProtocols ? protocolNumbers[protocol] : 0)
  const add = (address: string, { protocol, ...backend }: NewBackend): BackendRow => {
    const number = protocolOf(protocol)
    const row = { ...backend, id: backends.size + 1, protocol: number }
    backends.set(`${address} ${number}`, row)
    return row
  }
  return {
    services,
    backends,
    sourceRanges: [],
    protocolOf,
    addBackend(backend) {
      const address = printEndpoint(printIp(backend.ip), backend.port)
      return backends.get(`${address} ${protocolOf(backend.protocol)}`) ?? add(address, backend)
    },
    backendOf: ({ endpoint, state }, protocol) =>
      backends.get(`${endpoint.text} ${protocolOf(protocol)}`) ??
      add(endpoint.text, {
        ip: parseIp(endpoint.ip) ?? { family: 'ipv4', words: [0] },
        port: endpoint.port,
        protocol,
        state,
        source: endpointSource(endpoint.endpoint),
      }),
    addFrontend({ protocol, ...frontend }) {
      const number = protocolOf(protocol)
      const key = `${printIp(frontend.ip)} ${frontend.port} ${number} ${frontend.scope}`
      const there = places.get(key)
      // Where the protocol is not told the last Service at an address and port has it.
      const revNat = (there ?? services.length) + 1
      const row = { ...frontend, protocol: number, revNat, isWildcard: false }
      places.set(key, revNat - 1)
      services[revNat - 1] = row
      return row
    },
  }
}

function endpointSource({ targetRef, addresses }: PortBackend['endpoint']['endpoint']): RowSource {
  const note = `endpoint ${addresses[0] ?? ''}`
  if (targetRef === undefined) return { by: 'services', note }
  const { kind, namespace, name } = targetRef
  const object = namespace === undefined ? { kind, name } : { kind, namespace, name }
  return { by: 'services', object, path: 'status.podIPs', note: 'by its EndpointSlice' }
}
