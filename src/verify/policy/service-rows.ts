/** Who may reach which Services: after translation, so that the ports of the backends count. */

import { type Family, parseIp } from '#base/ip'
import type { PortRange } from '#base/port-range'
import { compareText } from '#base/text'
import type { PolicyProtocol } from '#compile/policy/policy-rule'
import { type EndpointSlice, serviceNameLabel } from '#model/endpoint-slice'
import { keyOf } from '#model/meta'
import type { Protocol, Service } from '#model/service'
import type { PortRanges } from '#trace/policy/decide'
import type { Party } from '#trace/policy/party'
import { isOnHost, nearnessOf } from '#trace/policy/party-facts'
import { printConnections } from './connection-text'
import type { MatrixRow, ServiceEnd, WorkloadEnd } from './matrix'
import { type Lanes, mayHaveFamily } from './matrix-lanes'

/** A port of a Service with the backends that it leads to. */
export type ServiceRoute = {
  readonly name: string
  readonly protocol: Protocol
  readonly port: number
  readonly backends: readonly Backend[]
}

/** `port` is the backend's own, and `family` that of the address that the slice has of it. */
export type Backend = { readonly party: Party; readonly port: number; readonly family: Family }

export function serviceRows(
  lanes: Lanes,
  workloads: readonly WorkloadEnd[],
  slices: readonly EndpointSlice[],
): readonly MatrixRow[] {
  const { cluster } = lanes.world
  const routes = routesByService(lanes, slices)
  return [...cluster.services.values()]
    .sort((a, b) => compareText(keyOf(a.meta), keyOf(b.meta)))
    .flatMap((service) => {
      const end = serviceEnd(service)
      const own = routes.get(keyOf(service.meta)) ?? []
      return workloads.flatMap((src) => {
        const conn = connectionOf(lanes, src, own)
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
        if (ip === undefined) return []
        const party: Party = pod === undefined ? { kind: 'address', ip } : { kind: 'pod', pod }
        return [{ party, port: target, family: ip.family }]
      })
    })
    return { name, protocol, port, backends }
  })
}

/** A port is open when all backends can be reached, and partly open when only some of them can. */
function connectionOf(lanes: Lanes, source: WorkloadEnd, routes: readonly ServiceRoute[]): string {
  const allowed: OpenPorts = new Map()
  const unknown: OpenPorts = new Map()
  const partly: OpenPorts = new Map()
  for (const { protocol, port, backends } of routes) {
    const states = new Set(backends.flatMap((backend) => statesOf(lanes, source, { ...backend, protocol })))
    if (states.size === 0) continue
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
type Asked = Backend & { readonly protocol: Protocol }

/**
 * Members are alike but for the nodes that they run on, which matters on the hosts' network. A pod as a backend of its own
 * is left out, as the matrix pairs no workload with itself, and so are addresses of a family that the client has not.
 */
function statesOf(lanes: Lanes, { members }: WorkloadEnd, asked: Asked): readonly State[] {
  const others = members.filter(
    (member) => mayHaveFamily(lanes.world, member, asked.family) && nearnessOf(member, asked.party) !== 'same-pod',
  )
  const isHosted = isOnHost(asked.party) || others.some(isOnHost)
  return (isHosted ? others : others.slice(0, 1)).map((member) => stateOf(lanes, member, asked))
}

function stateOf({ betweenParties }: Lanes, source: Party, { party, protocol, port, family }: Asked): State {
  const set = betweenParties(source, party, family)
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
