/** One node's maps as its programs ask them: by key, by longest prefix, and with the text that each row is printed as. */
import { type Ip, printEndpoint, printIp } from '#base/ip'
import { containsIp, type Prefix, printPrefix } from '#base/prefix'
import { ipcacheText, lxcText } from '#compile/cilium/dump-addresses'
import { gatewayText } from '#compile/cilium/dump-egress'
import { backendText, masterText, serviceText } from '#compile/cilium/dump-services'
import type { BackendRow, ServiceRow } from '#compile/cilium/lb-rows'
import { egressLayout, ipcacheLayout, ipMasqLayout, lbLayout } from '#compile/cilium/map-layouts'
import type { RowSource } from '#compile/cilium/map-source'
import type { MaglevRow, NodeMaps } from '#compile/cilium/node-maps'
import type { EgressRow } from '#compile/cilium/render-egress'
import { type IpcacheRow, worldNumber } from '#compile/cilium/render-ipcache'
import type { IpMasqRow } from '#compile/cilium/render-ipmasq'
import type { LxcRow } from '#compile/cilium/render-lxc'
import type { TunnelRow } from '#compile/cilium/render-nodes'
import type { EndpointPolicy, PolicyMapRow } from '#compile/cilium/render-policy-maps'
import type { SourceRangeRow } from '#compile/cilium/render-services'
import type { PolicyEntry } from '#compile/policy/cilium-policy-entry'
import type { PolicyMap } from '#compile/policy/cilium-policy-map'
import type { MapLookup } from '#model/walk'

/** What a look-up found, and how it is told. */
export type Found<Row> = { readonly row: Row | undefined; readonly lookup: MapLookup }

export type NodeTables = {
  readonly name: string
  readonly maps: NodeMaps
  readonly lxc: (ip: Ip) => Found<LxcRow>
  readonly ipcache: (ip: Ip) => Found<IpcacheRow>
  readonly service: (key: ServiceKey) => Found<ServiceRow>
  readonly slot: (service: ServiceRow, backend: BackendRow) => MapLookup
  readonly backend: (id: number, like: Ip) => Found<BackendRow>
  readonly reverseNat: (number: number, like: Ip) => Found<ServiceRow>
  readonly maglev: (service: ServiceRow) => MaglevRow | undefined
  readonly sourceRange: (service: ServiceRow, ip: Ip) => Found<SourceRangeRow>
  readonly egress: (source: Ip, destination: Ip) => Found<EgressRow>
  readonly ipMasq: (ip: Ip) => Found<IpMasqRow>
  readonly tunnel: (ip: Ip) => Found<TunnelRow>
  readonly policy: (endpointId: number) => PolicyTable | undefined
}

export type ServiceKey = {
  readonly ip: Ip
  readonly port: number
  readonly protocol: number
  readonly scope: 'external' | 'internal'
}

export type PolicyTable = {
  readonly of: EndpointPolicy
  readonly map: PolicyMap
  readonly rows: ReadonlyMap<PolicyEntry, PolicyMapRow>
}

/** Of the kind that a map of prefixes is: by length, the longest first. */
type PrefixIndex<Row> = {
  readonly lengths: readonly number[]
  readonly rows: ReadonlyMap<string, Row>
}

export function nodeTables(maps: NodeMaps): NodeTables {
  const { settings, world } = maps
  const { version } = settings.policy
  const lxc = new Map(maps.lxc.map((row) => [printIp(row.ip), row]))
  const ipcache = prefixIndex(maps.ipcache)
  const services = new Map(maps.lb.services.map((row) => [serviceKeyText(row), row]))
  const backends = new Map(maps.lb.backends.map((row) => [row.id, row]))
  const reverse = new Map(maps.lb.services.filter(({ isWildcard }) => !isWildcard).map((row) => [row.revNat, row]))
  const maglev = new Map(maps.maglev.map((row) => [row.service, row]))
  const masq = prefixIndex(maps.ipMasq)
  return {
    name: world.node,
    maps,
    lxc: (ip) => {
      const row = lxc.get(printIp(ip))
      return found('cilium_lxc', `${printIp(ip)}:0`, row, (one) => shortLxc(lxcText(one, version)))
    },
    ipcache: (ip) => {
      const row = longest(ipcache, ip)
      const { name } = ipcacheLayout(version)
      return found(name, printIp(ip), row, (one) => `${printPrefix(one.prefix)} ${ipcacheText(one, version)}`)
    },
    service: (key) => {
      const row = services.get(serviceKeyText(key))
      const { name } = lbLayout('services', key.ip.family, settings)
      return found(name, keyText(maps, key), row, masterText)
    },
    slot: (service, backend) => {
      const { name } = lbLayout('services', service.ip.family, settings)
      const slot = service.slots.indexOf(backend) + 1
      const value = `${backendText(backend)} (${service.revNat}) (${slot})`
      return { map: name, key: serviceText(maps, service, slot), value, ...placeOf(backend.source) }
    },
    backend: (id, like) => {
      const { name } = lbLayout('backends', like.family, settings)
      return found(name, String(id), backends.get(id), (one) => `${backendText(one)}${stateText(one)}`)
    },
    reverseNat: (number, like) => {
      const { name } = lbLayout('reverseNat', like.family, settings)
      const text = (one: ServiceRow): string => printEndpoint(printIp(one.ip), one.port)
      return found(name, String(number), reverse.get(number), text)
    },
    maglev: (service) => maglev.get(service),
    sourceRange: (service, ip) => {
      const own = maps.lb.sourceRanges.filter(({ revNat }) => revNat === service.revNat)
      const { name } = lbLayout('sourceRange', ip.family, settings)
      return found(name, `${printIp(ip)} (${service.revNat})`, longestOf(own, ip), (one) => printPrefix(one.prefix))
    },
    egress: egressLookup(maps),
    ipMasq: (ip) =>
      found(ipMasqLayout(ip.family).name, printIp(ip), longest(masq, ip), (one) => printPrefix(one.prefix)),
    tunnel: (ip) => {
      const row = maps.tunnels.find(({ range }) => containsIp(range, ip))
      const key = row === undefined ? `the pod range of ${printIp(ip)}` : `${printIp(row.range.ip)}:0`
      return found('cilium_tunnel_map', key, row, (one) => `${printIp(one.nodeIp)}:0`)
    },
    policy: policyLookup(maps),
  }
}

/** Interfaces and addresses of links are the node's own, and zero in what is computed. */
function shortLxc(text: string): string {
  return text.replace(/ ifindex=.*$/, '').replaceAll(/ +/g, ' ')
}

function found<Row extends { readonly source: RowSource }>(
  map: string,
  key: string,
  row: Row | undefined,
  text: (row: Row) => string,
): Found<Row> {
  if (row === undefined) return { row, lookup: { map, key } }
  return { row, lookup: { map, key, value: text(row).trim(), ...placeOf(row.source) } }
}

export function placeOf({ object, path, origin }: RowSource): Pick<MapLookup, 'object' | 'path' | 'origin'> {
  return {
    ...(object !== undefined && { object }),
    ...(path !== undefined && { path }),
    ...(origin !== undefined && { origin }),
  }
}

function prefixIndex<Row extends { readonly prefix: Prefix }>(rows: readonly Row[]): PrefixIndex<Row> {
  const lengths = [...new Set(rows.map(({ prefix }) => prefix.length))].sort((a, b) => b - a)
  return { lengths, rows: new Map(rows.map((row) => [printPrefix(row.prefix), row])) }
}

function longest<Row>({ lengths, rows }: PrefixIndex<Row>, ip: Ip): Row | undefined {
  for (const length of lengths) {
    if (length > 32 && ip.family === 'ipv4') continue
    const row = rows.get(printPrefix(masked(ip, length)))
    if (row !== undefined) return row
  }
  return undefined
}

function masked(ip: Ip, length: number): Prefix {
  const words = ip.words.map((word, index) => {
    const bits = Math.min(32, Math.max(0, length - 32 * index))
    return bits === 0 ? 0 : (word & (0xffffffff << (32 - bits))) >>> 0
  })
  return { ip: { family: ip.family, words }, length }
}

function longestOf<Row extends { readonly prefix: Prefix }>(rows: readonly Row[], ip: Ip): Row | undefined {
  let best: Row | undefined
  for (const row of rows) {
    if (containsIp(row.prefix, ip) && row.prefix.length > (best?.prefix.length ?? -1)) best = row
  }
  return best
}

function serviceKeyText({ ip, port, protocol, scope }: ServiceKey): string {
  return `${printIp(ip)} ${port} ${protocol} ${scope}`
}

function keyText(maps: NodeMaps, key: ServiceKey): string {
  return serviceText(maps, key, 0)
}

function stateText({ state }: BackendRow): string {
  return state === 'active' ? '' : ` (${state})`
}

function egressLookup(maps: NodeMaps): NodeTables['egress'] {
  const bySource = new Map<string, EgressRow[]>()
  for (const row of maps.egress) {
    const key = printIp(row.sourceIp)
    const there = bySource.get(key)
    if (there === undefined) bySource.set(key, [row])
    else there.push(row)
  }
  return (source, destination) => {
    let best: EgressRow | undefined
    for (const row of bySource.get(printIp(source)) ?? []) {
      const { destination: range } = row
      if (containsIp(range, destination) && range.length > (best?.destination.length ?? -1)) best = row
    }
    const text = (one: EgressRow): string =>
      `${printPrefix(one.destination)} egress ${printIp(one.egressIp)} gateway ${gatewayText(one.gatewayIp)}`
    return found(egressLayout(source.family).name, `${printIp(source)} ${printIp(destination)}`, best, text)
  }
}

function policyLookup(maps: NodeMaps): NodeTables['policy'] {
  const known = new Map<number, PolicyTable | undefined>()
  const byId = new Map(maps.policies.map((one) => [one.endpoint.id, one]))
  return (id) => {
    if (known.has(id)) return known.get(id)
    const of = byId.get(id)
    const table = of === undefined ? undefined : policyTable(of, maps)
    known.set(id, table)
    return table
  }
}

function policyTable(of: EndpointPolicy, { settings }: NodeMaps): PolicyTable {
  const rows = new Map(of.rows.map((row) => [row.entry, row]))
  const byIdentity = new Map<number, PolicyEntry[]>()
  for (const { entry } of of.rows) {
    const there = byIdentity.get(entry.key.identity)
    if (there === undefined) byIdentity.set(entry.key.identity, [entry])
    else there.push(entry)
  }
  return { of, rows, map: { version: settings.policy.version, entries: [...rows.keys()], byIdentity } }
}

/** What the datapath calls the world of a family. */
export function worldOf({ maps }: Pick<NodeTables, 'maps'>, { family }: Ip): number {
  return worldNumber(maps.settings.policy.isDualStack, family)
}

export function isUnspecified(ip: Ip): boolean {
  return ip.words.every((word) => word === 0)
}
