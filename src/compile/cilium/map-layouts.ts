/** Every map of a node by version: its name, kind, sizes and who fills it. Mirrors pkg/maps and bpf/lib, Cilium 1.16 to 1.19. */
import type { Family } from '#base/ip'
import type { MapType } from '#compile/bpf/map-shape'
import { type CiliumVersion, isAtLeast } from '#model/cilium-version'
import type { DatapathSettings } from './datapath-settings'
import type { Component } from './map-source'

export type MapLayout = {
  readonly name: string
  readonly type: MapType
  readonly keySize: number
  readonly valueSize: number
  readonly maxEntries: number
  readonly by: Component
  /** What prints it on a node; absent where nothing does. */
  readonly command?: string
  readonly holds: string
}

type Layout = Omit<MapLayout, 'name'>

export function lxcLayout(): MapLayout {
  return {
    name: 'cilium_lxc',
    ...hash(20, 48, 65535),
    by: 'endpoints',
    command: 'cilium-dbg bpf endpoint list',
    holds: 'address → endpoint of this node',
  }
}

export function ipcacheLayout(version: CiliumVersion): MapLayout {
  const isWide = isAtLeast(version, '1.18')
  return {
    name: isWide ? 'cilium_ipcache_v2' : 'cilium_ipcache',
    ...trie(24, isWide ? 24 : 12, 512_000),
    by: 'ipcache',
    command: 'cilium-dbg bpf ipcache list',
    holds: 'prefix → identity and tunnel endpoint',
  }
}

export function policyMapName(version: CiliumVersion, endpointId: number): string {
  const prefix = isAtLeast(version, '1.19')
    ? 'cilium_policy_v3_'
    : isAtLeast(version, '1.17')
      ? 'cilium_policy_v2_'
      : 'cilium_policy_'
  return `${prefix}${String(endpointId).padStart(5, '0')}`
}

export function policyLayout(version: CiliumVersion, endpointId: number, maxEntries: number): MapLayout {
  const valueSize = isAtLeast(version, '1.18') ? 12 : isAtLeast(version, '1.17') ? 8 : 24
  return {
    name: policyMapName(version, endpointId),
    ...trie(12, valueSize, maxEntries),
    by: 'policy',
    command: `cilium-dbg bpf policy get ${endpointId}`,
    holds: 'identity, direction, protocol, port → verdict',
  }
}

export type LbMapName = 'services' | 'backends' | 'reverseNat' | 'maglev' | 'sourceRange'

/** Maps of the load balancer, one of each for a family. */
export function lbLayout(name: LbMapName, family: Family, settings: DatapathSettings): MapLayout {
  const is4 = family === 'ipv4'
  const number = is4 ? 4 : 6
  const most = settings.lbMapMax
  const layouts: Readonly<Record<LbMapName, MapLayout>> = {
    services: {
      name: `cilium_lb${number}_services_v2`,
      ...hash(is4 ? 12 : 24, 12, most),
      by: 'services',
      command: 'cilium-dbg bpf lb list',
      holds: 'frontend and slot → backend',
    },
    backends: {
      name: `cilium_lb${number}_backends_v3`,
      ...hash(4, is4 ? 12 : 24, most),
      by: 'services',
      command: 'cilium-dbg bpf lb list --backends',
      holds: 'id → address and port of a backend',
    },
    reverseNat: {
      name: `cilium_lb${number}_reverse_nat`,
      ...hash(2, is4 ? 6 : 18, most),
      by: 'services',
      command: 'cilium-dbg bpf lb list --revnat',
      holds: 'id → address and port of a frontend',
    },
    maglev: {
      name: `cilium_lb${number}_maglev`,
      ...{ ...hash(2, 4, most), type: 'hashOfMaps' as const },
      by: 'services',
      command: 'cilium-dbg bpf lb maglev list',
      holds: 'id of a service → lookup table of backends',
    },
    sourceRange: {
      name: `cilium_lb${number}_source_range`,
      ...trie(is4 ? 12 : 24, 1, most),
      by: 'services',
      command: 'cilium-dbg bpf lb list --source-ranges',
      holds: 'service and prefix of a client → allowed',
    },
  }
  return layouts[name]
}

export function affinityMatchLayout({ lbMapMax }: DatapathSettings): MapLayout {
  return {
    name: 'cilium_lb_affinity_match',
    ...hash(8, 1, lbMapMax),
    by: 'services',
    holds: 'backend and service → it belongs there',
  }
}

export function egressLayout(family: Family): MapLayout {
  const is4 = family === 'ipv4'
  return {
    name: `cilium_egress_gw_policy_${is4 ? 'v4' : 'v6'}`,
    ...trie(is4 ? 12 : 36, is4 ? 8 : 40, 16384),
    by: 'egress',
    command: 'cilium-dbg bpf egress list',
    holds: 'source and destination → egress address and gateway',
  }
}

export function ipMasqLayout(family: Family): MapLayout {
  const is4 = family === 'ipv4'
  return {
    name: `cilium_ipmasq_${is4 ? 'v4' : 'v6'}`,
    ...trie(is4 ? 8 : 20, 1, 16384),
    by: 'masquerade',
    command: 'cilium-dbg bpf ipmasq list',
    holds: 'prefix that is not masqueraded',
  }
}

export function tunnelLayout(): MapLayout {
  return {
    name: 'cilium_tunnel_map',
    ...hash(20, 20, 65536),
    by: 'nodes',
    command: 'cilium-dbg bpf tunnel list',
    holds: 'pod range → node',
  }
}

export function nodeMapLayout(): MapLayout {
  return {
    name: 'cilium_node_map_v2',
    ...hash(20, 4, 16384),
    by: 'nodes',
    command: 'cilium-dbg bpf nodeid list',
    holds: 'address of a node → its number and key',
  }
}

export function callLayout(direction: 'ingress' | 'egress'): MapLayout {
  return {
    name: direction === 'ingress' ? 'cilium_call_policy' : 'cilium_egresscall_policy',
    ...{ ...hash(4, 4, 65535), type: 'programArray' as const },
    by: 'endpoints',
    holds: 'endpoint → its policy program',
  }
}

/** Those that traffic fills: empty as long as no packet has passed. */
export function trafficLayouts({ families, policy, hasAffinity }: DatapathSettings): readonly MapLayout[] {
  const { version } = policy
  const of = (name: string, layout: Layout): MapLayout => ({ name, ...layout })
  const traffic = (
    type: MapType,
    [keySize, valueSize, maxEntries]: Sizes,
    holds: string,
    command?: string,
  ): Layout => ({
    type,
    keySize,
    valueSize,
    maxEntries,
    by: 'datapath',
    holds,
    ...(command !== undefined && { command }),
  })
  const ofFamily = (family: Family): readonly MapLayout[] => {
    const is4 = family === 'ipv4'
    const number = is4 ? 4 : 6
    const tuple = is4 ? 14 : 38
    const ct = 'cilium-dbg bpf ct list global'
    const affinity = of(
      `cilium_lb${number}_affinity`,
      traffic('lruHash', [is4 ? 16 : 24, 16, 65536], 'client and service → backend and last use'),
    )
    return [
      of(`cilium_ct${number}_global`, traffic('lruHash', [tuple, 56, 524_288], 'connections of TCP', ct)),
      of(`cilium_ct_any${number}_global`, traffic('lruHash', [tuple, 56, 262_144], 'other connections', ct)),
      of(
        `cilium_snat_v${number}_external`,
        traffic('lruHash', [tuple, is4 ? 40 : 48, 524_288], 'source translations', 'cilium-dbg bpf nat list'),
      ),
      ...(hasAffinity ? [affinity] : []),
    ]
  }
  return [
    ...families.flatMap(ofFamily),
    of(
      'cilium_metrics',
      traffic('perCpuHash', [8, 16, 1024], 'packets and bytes by reason', 'cilium-dbg bpf metrics list'),
    ),
    of(
      'cilium_ipv4_frag_datagrams',
      traffic('lruHash', [12, 4, 8192], 'fragments → ports', 'cilium-dbg bpf frag list'),
    ),
    of(
      'cilium_auth_map',
      traffic('hash', [12, 8, 524_288], 'pairs that have authenticated', 'cilium-dbg bpf auth list'),
    ),
    ...(isAtLeast(version, '1.17')
      ? [of('cilium_policystats', traffic('lruPerCpuHash', [12, 16, 65536], 'packets and bytes by policy entry'))]
      : []),
  ]
}

type Sizes = readonly [keySize: number, valueSize: number, maxEntries: number]
type Shape = Pick<MapLayout, 'type' | 'keySize' | 'valueSize' | 'maxEntries'>

function hash(keySize: number, valueSize: number, maxEntries: number): Shape {
  return { type: 'hash', keySize, valueSize, maxEntries }
}

function trie(keySize: number, valueSize: number, maxEntries: number): Shape {
  return { type: 'prefixTrie', keySize, valueSize, maxEntries }
}
