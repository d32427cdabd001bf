/** The connections that a source, a target and a port stand for: every pod with every pod, and a Service's port with its backends. */
import { Failure } from '#base/failure'
import { type Family, printIp } from '#base/ip'
import { countOf, listOf } from '#base/text'
import type { PolicyProtocol } from '#compile/policy/policy-rule'
import type { Cluster } from '#model/cluster'
import { type EndpointSlice, serviceNameLabel } from '#model/endpoint-slice'
import { keyOf } from '#model/meta'
import { isHeadless, type Service } from '#model/service'
import type { Party, PartyConnection } from '#trace/policy/party'
import { commonFamilies, familiesOf, namedPorts } from '#trace/policy/party-facts'
import { type Backend, routesOf, type ServiceRoute } from '#verify/policy/service-rows'
import type { NamedParty, PolicyEnd } from './policy-parties'

/** `TCP 8080` is what is asked of the target, after translation. */
export type Route = {
  readonly source: NamedParty
  readonly target: NamedParty
  readonly connection: PartyConnection
  readonly isSamePod: boolean
}

export type RouteRequest = {
  readonly source: PolicyEnd
  readonly target: PolicyEnd
  readonly protocol: PolicyProtocol
  /** A number, or the name of a port. */
  readonly port: string | undefined
}

export type Routes = { readonly routes: readonly [Route, ...Route[]]; readonly notes: readonly string[] }

type Input = { readonly cluster: Cluster; readonly slices: readonly EndpointSlice[] }

export function routesBetween(input: Input, request: RouteRequest): Routes {
  const { source, target } = request
  if (source.kind === 'service') throw usage(`--source: ${source.name} sends nothing; name its pods`)
  const notes = [source.note, target.note].filter((note) => note !== undefined)
  const reached =
    target.kind === 'service' ? throughService(input, target.service, request) : directly(target.parties, request)
  const pairs = source.parties.flatMap((from) =>
    reached.ends.flatMap(({ target: to, port }) =>
      familiesOfPair(input.cluster, { from, to, request }).map(({ target, family }): Route => {
        const connection = {
          source: from.party,
          target: to.party,
          protocol: request.protocol,
          ...(port !== undefined && { port }),
          ...(family !== undefined && { family }),
        }
        return { source: from, target, connection, isSamePod: isSame(from.party, to.party) }
      }),
    ),
  )
  checkFamilies(source.parties, reached.ends)
  // A pod of a workload that talks to its own workload means the others, where there are any, and no client an address of a
  // family that it has not, where there is another.
  const others = preferring(pairs, ({ isSamePod }) => !isSamePod)
  const [first, ...rest] = preferring(others, (route) => canBe(input.cluster, route))
  if (first === undefined) throw usage('there is nothing to connect')
  return { routes: [first, ...rest], notes: [...notes, ...reached.notes] }
}

type Pair = { readonly from: NamedParty; readonly to: NamedParty; readonly request: RouteRequest }
type OverFamily = { readonly target: NamedParty; readonly family: Family | undefined }

/** Ranges may tell the families of two pods apart; of ICMP each version is of one family. */
function familiesOfPair(cluster: Cluster, { from, to, request }: Pair): readonly OverFamily[] {
  const told = to.family ?? from.family
  if (told !== undefined) return [{ target: to, family: told }]
  const common = commonFamilies(cluster, from.party, to.party)
  const isIcmp = request.protocol === 'ICMP' || request.protocol === 'ICMPv6'
  if (common.length < 2 || isIcmp) return [{ target: to, family: undefined }]
  return common.map((family) => ({ target: { ...to, name: `${to.name} (${familyNames[family]})` }, family }))
}

function preferring(routes: readonly Route[], isFine: (route: Route) => boolean): readonly Route[] {
  const fine = routes.filter(isFine)
  return fine.length > 0 ? fine : routes
}

function canBe(cluster: Cluster, { source, connection: { family } }: Route): boolean {
  const own = source.family === undefined ? familiesOf(cluster, source.party) : [source.family]
  return family === undefined || own.length === 0 || own.includes(family)
}

/** Addresses of one pod may be of both families: what is asked is the one that is named. */
function checkFamilies([source]: readonly NamedParty[], ends: Reached['ends']): void {
  const told = ends.flatMap(({ target }) => target.family ?? [])
  if (source?.family === undefined || told.length === 0 || told.includes(source.family)) return
  throw usage('--source and --to are addresses of two families, so that no packet goes between them; name two of one')
}

function usage(sentence: string): Failure {
  return new Failure('usage.bad-argument', sentence)
}

function isSame(a: Party, b: Party): boolean {
  return a.kind === 'pod' && b.kind === 'pod' && keyOf(a.pod.meta) === keyOf(b.pod.meta)
}

type Reached = {
  readonly ends: readonly { readonly target: NamedParty; readonly port: number | undefined }[]
  readonly notes: readonly string[]
}

function directly(parties: readonly NamedParty[], { protocol, port }: RouteRequest): Reached {
  if (protocol === 'ICMP' || protocol === 'ICMPv6') {
    const usual = protocol === 'ICMP' ? 8 : 128
    const type = port === undefined ? usual : numberOf(port)
    if (type === undefined || type > 255) throw usage(`--port ${port}: of ICMP the port is the type, 0 to 255`)
    return { ends: parties.map((target) => ({ target, port: type })), notes: [] }
  }
  if (port === undefined) throw usage('no port is named; add --port with the port of the pod')
  const number = numberOf(port)
  return { ends: parties.map((target) => ({ target, port: number ?? portNamed(target, port, protocol) })), notes: [] }
}

function numberOf(port: string): number | undefined {
  return /^\d+$/.test(port) ? Number(port) : undefined
}

/** Each pod may have another number under a name. */
function portNamed({ name, party }: NamedParty, wanted: string, protocol: PolicyProtocol): number {
  const own = party.kind === 'pod' ? namedPorts(party.pod) : []
  const found = own.find((one) => one.name === wanted && one.protocol === protocol)
  if (found !== undefined) return found.port
  const known =
    own.length === 0
      ? 'it has none with a name'
      : `it has ${listOf(own.map((one) => `${one.name} (${one.protocol} ${one.port})`))}`
  throw usage(`--port ${wanted}: ${name} has no such port over ${protocol}: ${known}`)
}

function throughService({ cluster, slices }: Input, service: Service, request: RouteRequest): Reached {
  const key = keyOf(service.meta)
  if (service.type === 'ExternalName') {
    throw usage(`--to ${key}: the Service is a name for ${service.externalName ?? 'another host'}; name its address`)
  }
  const own = slices.filter(
    ({ meta }) => meta.namespace === service.meta.namespace && meta.labels[serviceNameLabel] === service.meta.name,
  )
  const whole = routeOf(service, routesOf(cluster, service, own), request)
  const family = request.target.kind === 'service' ? request.target.family : undefined
  const route = { ...whole, backends: whole.backends.filter((one) => family === undefined || one.family === family) }
  const [first, ...rest] = route.backends
  if (first === undefined) {
    throw new Failure(
      'usage.not-found',
      `Service ${key} has no backends for port ${route.port}, so that no policy is asked: the connection is refused; see portolan explain ${key}`,
    )
  }
  const backends = [first, ...rest]
  const isDual = new Set(backends.map((backend) => backend.family)).size > 1
  return {
    ends: backends.map((backend) => ({ target: nameOf(backend, isDual), port: backend.port })),
    notes: [noteOf(service, route), ...noteOutside(service, request)],
  }
}

/** Of two families each pod is two backends. */
function nameOf({ party, family }: Backend, isDual: boolean): NamedParty {
  if (party.kind === 'address') return { name: printIp(party.ip), party, family }
  const name = party.kind === 'pod' ? keyOf(party.pod.meta) : 'backend'
  return { name: isDual ? `${name} (${familyNames[family]})` : name, party, family }
}

const familyNames: Readonly<Record<Family, string>> = { ipv4: 'IPv4', ipv6: 'IPv6' }

function routeOf(service: Service, routes: readonly ServiceRoute[], { port, protocol }: RouteRequest): ServiceRoute {
  const own = routes.filter((route) => route.protocol === protocol)
  const fitting = own.filter((route) => port === undefined || String(route.port) === port || route.name === port)
  const [route, second] = fitting
  if (route !== undefined && second === undefined) return route
  const shown = listOf(
    routes.map(({ name, port: number, protocol: over }) => `${name === '' ? '' : `${name} `}${number}/${over}`),
  )
  const key = keyOf(service.meta)
  throw usage(
    route === undefined
      ? `Service ${key} has no such port over ${protocol}; it has ${shown}`
      : `Service ${key} has several ports: ${shown}; add --port`,
  )
}

function noteOf(service: Service, { port, protocol, backends }: ServiceRoute): string {
  const ports = [...new Set(backends.map((backend) => backend.port))].join(' or ')
  const how = isHeadless(service) ? 'resolves to' : 'is translated to'
  return `${protocol} ${port} of Service ${keyOf(service.meta)} ${how} ${countOf(backends.length, 'backend')} on port ${ports}; policies see that port`
}

/** What a node forwards for clients outside mostly carries the node's address. */
function noteOutside({ externalTrafficPolicy, type }: Service, { source }: RouteRequest): readonly string[] {
  const isOutside = source.kind === 'parties' && source.parties.every(({ party }) => party.kind === 'address')
  if (!isOutside) return []
  if (type === 'ClusterIP')
    return ['a ClusterIP is for the inside of the cluster: a client outside mostly has no way to it']
  return externalTrafficPolicy === 'Local'
    ? []
    : ['with externalTrafficPolicy Cluster the pod may see the address of the node in place of the client’s']
}
