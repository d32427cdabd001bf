/** Who may reach which Services: after translation, so that the ports of the backends count. */

import { parseIp } from '#base/ip'
import type { PortRange } from '#base/port-range'
import { compareText } from '#base/text'
import type { PolicyProtocol } from '#compile/policy/policy-rule'
import { type EndpointSlice, serviceNameLabel } from '#model/endpoint-slice'
import { keyOf } from '#model/meta'
import type { Protocol, Service } from '#model/service'
import type { ConnectionSet, PortRanges } from '#trace/policy/decide'
import type { Party } from '#trace/policy/party'
import { printConnections } from './connection-text'
import type { MatrixRow, ServiceEnd, WorkloadEnd } from './matrix'
import type { Lanes } from './matrix-lanes'

/** A port of a Service with the backends that it leads to. */
export type ServiceRoute = {
  readonly name: string
  readonly protocol: Protocol
  readonly port: number
  readonly backends: readonly Backend[]
}

/** `port` is the backend's own. */
export type Backend = { readonly party: Party; readonly port: number }

export function serviceRows(
  lanes: Lanes,
  workloads: readonly WorkloadEnd[],
  slices: readonly EndpointSlice[],
): readonly MatrixRow[] {
  const { cluster } = lanes.world
  const routes = routesByService(lanes, slices)
  const sources = workloads.map((end) => ({ end, id: lanes.classOf(end.members[0]) }))
  return [...cluster.services.values()]
    .sort((a, b) => compareText(keyOf(a.meta), keyOf(b.meta)))
    .flatMap((service) => {
      const end = serviceEnd(service)
      const own = routes.get(keyOf(service.meta)) ?? []
      return sources.flatMap(({ end: src, id }) => {
        const conn = connectionOf(lanes, id, own)
        return conn === '' ? [] : [{ src, dst: end, conn }]
      })
    })
}

function serviceEnd({ meta }: Service): ServiceEnd {
  return { kind: 'service', name: `${meta.namespace}/${meta.name}[Service]`, namespace: meta.namespace }
}

function routesByService(lanes: Lanes, slices: readonly EndpointSlice[]): ReadonlyMap<string, readonly ServiceRoute[]> {
  const byService = new Map<string, EndpointSlice[]>()
  for (const slice of slices) {
    const key = `${slice.meta.namespace}/${slice.meta.labels[serviceNameLabel] ?? ''}`
    const known = byService.get(key)
    if (known === undefined) byService.set(key, [slice])
    else known.push(slice)
  }
  const routes = new Map<string, readonly ServiceRoute[]>()
  for (const [key, own] of byService) {
    const service = lanes.world.cluster.services.get(key)
    if (service !== undefined) routes.set(key, routesOf(lanes.world.cluster, service, own))
  }
  return routes
}

/** Backends that are not ready count: they may be ready in a moment. */
export function routesOf(
  { pods }: Lanes['world']['cluster'],
  { ports }: Service,
  slices: readonly EndpointSlice[],
): readonly ServiceRoute[] {
  return ports.map(({ name, protocol, port }) => {
    const backends = slices.flatMap(({ ports: own, endpoints }) => {
      const target = own.find((one) => (one.name ?? '') === name && one.protocol === protocol)?.port
      if (target === undefined) return []
      return endpoints.flatMap(({ addresses: [address], targetRef }): readonly Backend[] => {
        const pod = targetRef?.kind === 'Pod' ? pods.get(`${targetRef.namespace}/${targetRef.name}`) : undefined
        const ip = address === undefined ? undefined : parseIp(address)
        if (pod !== undefined) return [{ party: { kind: 'pod', pod }, port: target }]
        return ip === undefined ? [] : [{ party: { kind: 'address', ip }, port: target }]
      })
    })
    return { name, protocol, port, backends }
  })
}

/** A port is open when all backends can be reached, and partly open when only some of them can. */
function connectionOf(lanes: Lanes, source: number, routes: readonly ServiceRoute[]): string {
  const allowed: OpenPorts = new Map()
  const unknown: OpenPorts = new Map()
  const partly: OpenPorts = new Map()
  for (const { protocol, port, backends } of routes) {
    if (backends.length === 0) continue
    const states = new Set(
      backends.map(({ party, port: own }) => stateOf(lanes, source, { party, protocol, port: own })),
    )
    const kept = states.has('unknown')
      ? unknown
      : states.size === 2
        ? partly
        : states.has('allowed')
          ? allowed
          : undefined
    if (kept !== undefined) kept.set(protocol, [...(kept.get(protocol) ?? []), { from: port, to: port }])
  }
  return printConnections({ allowed: joinPorts(allowed), unknown: joinPorts(unknown) }, joinPorts(partly))
}

type OpenPorts = Map<PolicyProtocol, readonly PortRange[]>
type State = 'allowed' | 'unknown' | 'denied'
type Asked = { readonly party: Party; readonly protocol: Protocol; readonly port: number }

function stateOf(lanes: Lanes, source: number, { party, protocol, port }: Asked): State {
  const set: ConnectionSet = lanes.between(source, lanes.classOf(party))
  if (holds(set.allowed, protocol, port)) return 'allowed'
  return holds(set.unknown, protocol, port) ? 'unknown' : 'denied'
}

function holds(ranges: PortRanges, protocol: Protocol, port: number): boolean {
  return (ranges.get(protocol) ?? []).some(({ from, to }) => port >= from && port <= to)
}

function joinPorts(open: OpenPorts): PortRanges {
  const joined = new Map<PolicyProtocol, readonly PortRange[]>()
  for (const [protocol, ranges] of open) {
    const sorted = ranges.toSorted((a, b) => a.from - b.from)
    joined.set(protocol, joinTouching(sorted))
  }
  return joined
}

function joinTouching(sorted: readonly PortRange[]): readonly PortRange[] {
  const joined: PortRange[] = []
  for (const range of sorted) {
    const last = joined.at(-1)
    if (last === undefined || range.from > last.to + 1) joined.push(range)
    else joined[joined.length - 1] = { from: last.from, to: Math.max(last.to, range.to) }
  }
  return joined
}
