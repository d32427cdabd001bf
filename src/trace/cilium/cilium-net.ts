/** A cluster of Cilium's nodes made ready for packets: each node's maps, computed when a packet first meets the node. */
import type { Finding } from '#base/finding'
import { type Family, type Ip, parseIp, printIp } from '#base/ip'
import { containsIp } from '#base/prefix'
import { compareText, listOf } from '#base/text'
import { type DatapathSettings, datapathSettings } from '#compile/cilium/datapath-settings'
import { nodeMaps } from '#compile/cilium/node-maps'
import { podRanges } from '#compile/cilium/render-ipcache'
import { nodeAddresses } from '#compile/cilium/render-lxc'
import { identityNumbers, reservedNames } from '#compile/identities/numbers'
import type { CiliumOptions } from '#compile/policy/cilium-options'
import type { Cluster } from '#model/cluster'
import type { EndpointSlice } from '#model/endpoint-slice'
import { keyOf } from '#model/meta'
import { localEntry } from '../local-entry'
import { assumeRouters } from './assumed-routers'
import { pathFinding } from './findings'
import { type NodeTables, nodeTables } from './node-tables'
import { type PathSettings, pathSettings } from './path-settings'

export type CiliumNet = {
  readonly cluster: Cluster
  readonly settings: DatapathSettings
  readonly path: PathSettings
  readonly nodeNames: readonly string[]
  /** Undefined for a node that the input does not have. */
  readonly node: (name: string) => NodeTables | undefined
  /** Its maps are there already. */
  readonly isLoaded: (name: string) => boolean
  /** The node that answers for an address: its own, its router's, and those it lends as a gateway. */
  readonly nodeOfAddress: (ip: Ip) => string | undefined
  /** The node of a pod's address, by its range and then by the pod itself. */
  readonly nodeOfPod: (ip: Ip) => string | undefined
  /** Where a load balancer brings in what is for a Service’s address whose traffic stays local. */
  readonly entryOf: (ip: Ip) => string | undefined
  readonly router: (name: string, family: Family) => Ip | undefined
  /** A router's address that no object tells. */
  readonly isAssumed: (ip: Ip) => boolean
  readonly internalIp: (name: string, family: Family) => Ip | undefined
  /** What a number stands for: `world`, `business/a and 2 more`. */
  readonly identityName: (number: number) => string
  readonly findings: () => readonly Finding[]
}

export type NetOptions = {
  readonly slices: readonly EndpointSlice[]
  readonly cilium?: CiliumOptions
  /** Addresses of devices by node and name. */
  readonly devices?: ReadonlyMap<string, ReadonlyMap<string, readonly string[]>>
}

export function prepareCilium(cluster: Cluster, { slices, cilium, devices = new Map() }: NetOptions): CiliumNet {
  const { settings } = datapathSettings(cluster, cilium)
  const routers = assumeRouters(cluster)
  const nodeNames = [...new Set([...cluster.nodes.keys(), ...cluster.ciliumNodes.keys()])].sort(compareText)
  const known = new Map<string, NodeTables>()
  const node = (name: string): NodeTables | undefined => {
    if (!nodeNames.includes(name)) return undefined
    const there = known.get(name)
    if (there !== undefined) return there
    const own = devices.get(name)
    const maps = nodeMaps(routers.cluster, {
      node: name,
      slices,
      ...(cilium !== undefined && { cilium }),
      ...(own !== undefined && { devices: own }),
    })
    const tables = nodeTables(maps)
    known.set(name, tables)
    return tables
  }
  const addressesOf = (name: string) => nodeAddresses(routers, name)
  const ofType = (name: string, type: string, family: Family): Ip | undefined =>
    addressesOf(name).find((one) => one.type === type && one.ip.family === family)?.ip
  const holders = new Map<string, string>()
  for (const name of nodeNames) {
    for (const texts of devices.get(name)?.values() ?? []) for (const text of texts) holders.set(text, name)
    for (const { ip } of addressesOf(name)) holders.set(printIp(ip), name)
  }
  const path = pathSettings(cluster, settings)
  const told = settingFindings(settings, path)
  return {
    cluster,
    settings,
    path,
    nodeNames,
    node,
    isLoaded: (name) => known.has(name),
    nodeOfAddress: (ip) => holders.get(printIp(ip)) ?? gatewayOf(cluster, node, ip),
    nodeOfPod: podNodes(cluster),
    entryOf: (ip) => {
      const text = printIp(ip)
      const services = [...cluster.services.values()].filter(
        ({ externalIPs, loadBalancerIngress }) =>
          externalIPs.includes(text) || loadBalancerIngress.some((one) => one.ip === text),
      )
      return services.map((service) => localEntry(service, slices, nodeNames)).find((name) => name !== undefined)
    },
    router: (name, family) => ofType(name, 'CiliumInternalIP', family),
    isAssumed: routers.isAssumed,
    internalIp: (name, family) => ofType(name, 'InternalIP', family),
    identityName: identityNames(known),
    findings: gatherFindings(known, told),
  }
}

/** What keeps the agent from starting; packets are walked as if it had. */
function settingFindings(
  { isTunnel, tunnelProtocol, families, hasEgressGateway, replacesKubeProxy }: DatapathSettings,
  path: PathSettings,
): readonly Finding[] {
  const findings: Finding[] = []
  const lacking = families.filter((family) => path.masquerades[family] && path.nativeRanges[family] === undefined)
  if (!isTunnel && path.isBpfMasquerade && lacking.length > 0) {
    const keys = lacking.map((family) => `${family}-native-routing-cidr`)
    const message = `routing is native and pods are masqueraded, and ${listOf(keys)} is not set: the agent does not start; here a pod's own range alone keeps its address`
    findings.push(
      pathFinding('path.native-range', { message, path: `data["${keys[0]}"]`, hint: `set ${listOf(keys)}` }),
    )
  }
  if (hasEgressGateway && !(path.isBpfMasquerade && replacesKubeProxy)) {
    const message =
      'enable-egress-gateway needs enable-bpf-masquerade and kube-proxy-replacement: the agent does not start'
    findings.push(pathFinding('path.egress-masquerade', { message, path: 'data["enable-egress-gateway"]' }))
  }
  const isCarried = path.dispatch === 'geneve' ? !isTunnel || tunnelProtocol === 'geneve' : !isTunnel
  if (path.mode !== 'snat' && !isCarried) {
    const message = `bpf-lb-mode ${path.mode} with bpf-lb-dsr-dispatch ${path.dispatch} does not go with a ${tunnelProtocol} tunnel: the agent does not start`
    findings.push(
      pathFinding('path.dsr-mode', {
        message,
        path: 'data["bpf-lb-dsr-dispatch"]',
        hint: 'use Geneve for both, or native routing',
      }),
    )
  }
  return findings
}

function podNodes(cluster: Cluster): CiliumNet['nodeOfPod'] {
  const ranges = podRanges({ cluster })
  const byIp = new Map<string, string>()
  for (const { podIPs, nodeName, hostNetwork, phase } of cluster.pods.values()) {
    if (nodeName === undefined || hostNetwork || phase === 'Succeeded' || phase === 'Failed') continue
    for (const ip of podIPs) byIp.set(ip, nodeName)
  }
  return (ip) => byIp.get(printIp(ip)) ?? ranges.find(({ prefix }) => containsIp(prefix, ip))?.name
}

/** An address of an egress policy is its gateway's. */
function gatewayOf(cluster: Cluster, node: CiliumNet['node'], ip: Ip): string | undefined {
  const text = printIp(ip)
  const isLent = [...cluster.egressGatewayPolicies.values()].some(({ gateway, gateways }) =>
    [...(gateway === undefined ? [] : [gateway]), ...gateways].some(
      ({ egressIp }) => egressIp !== undefined && parseIp(egressIp) !== undefined && egressIp === text,
    ),
  )
  if (!isLent) return undefined
  return [...cluster.nodes.keys()]
    .sort(compareText)
    .find((name) => node(name)?.maps.egress.some(({ egressIp }) => printIp(egressIp) === text))
}

function identityNames(known: ReadonlyMap<string, NodeTables>): CiliumNet['identityName'] {
  const names = new Map<number, string>(reservedNames.map((name) => [identityNumbers[name], name]))
  const seen = new Set<NodeTables>()
  return (number) => {
    for (const tables of known.values()) {
      if (seen.has(tables)) continue
      seen.add(tables)
      addNames(names, tables)
    }
    return names.get(number) ?? `identity ${number}`
  }
}

function addNames(names: Map<number, string>, { maps: { world } }: NodeTables): void {
  const pods = new Map<number, string[]>()
  for (const { identity, pod } of world.pods) {
    const there = pods.get(identity)
    if (there === undefined) pods.set(identity, [keyOf(pod.meta)])
    else there.push(keyOf(pod.meta))
  }
  for (const [number, [first = '', ...others]] of pods) {
    names.set(number, others.length === 0 ? first : `${first} and ${others.length} more`)
  }
  for (const { number, prefix } of world.identities.prefixes.identities) {
    names.set(number, `${printIp(prefix.ip)}/${prefix.length}`)
  }
}

/** Gathered anew when a packet has met another node. */
function gatherFindings(known: ReadonlyMap<string, NodeTables>, told: readonly Finding[]): CiliumNet['findings'] {
  let [count, gathered] = [-1, told]
  return () => {
    if (count === known.size) return gathered
    count = known.size
    gathered = uniqueFindings([...told, ...[...known.values()].flatMap(({ maps }) => maps.findings)])
    return gathered
  }
}

/** Maps of several nodes tell the same of the objects. */
function uniqueFindings(findings: readonly Finding[]): readonly Finding[] {
  const byText = new Map<string, Finding>()
  for (const finding of findings) byText.set(JSON.stringify(finding), finding)
  return [...byText.values()]
}
