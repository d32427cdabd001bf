/** Maps by address as bytes and text: cilium_lxc, cilium_ipcache, cilium_tunnel_map and cilium_node_map_v2. Mirrors pkg/maps, Cilium 1.16 to 1.19. */
import { type Ip, printIp } from '#base/ip'
import { printPrefix } from '#base/prefix'
import { type CiliumVersion, isAtLeast } from '#model/cilium-version'
import { type DumpedMap, pairs, type UntoldBytes } from './dumped-map'
import { ipcacheLayout, lxcLayout, nodeMapLayout, tunnelLayout } from './map-layouts'
import type { NodeMaps } from './node-maps'
import { type IpcacheRow, ipcacheFlags } from './render-ipcache'
import { hostFlag, type LxcRow } from './render-lxc'
import type { NodeIdRow, TunnelRow } from './render-nodes'
import { putIp, putU16, putU32 } from './struct-bytes'

export function familyByte({ family }: Ip): number {
  return family === 'ipv4' ? 1 : 2
}

const lxcUntold: readonly UntoldBytes[] = [
  { from: 0, to: 4, what: 'ifindex' },
  { from: 16, to: 32, what: 'mac and nodemac' },
  { from: 36, to: 40, what: 'parent_ifindex' },
]

export function dumpLxc({ lxc, settings }: NodeMaps): DumpedMap {
  const { version } = settings.policy
  const rows = lxc.map((row) => ({
    key: `${printIp(row.ip)}:0`,
    value: lxcText(row, version),
    keyBytes: addressKey(row.ip),
    valueBytes: lxcValue(row),
    source: row.source,
  }))
  return { layout: lxcLayout(), rows, untold: lxcUntold, table: pairs('IP ADDRESS', 'LOCAL ENDPOINT INFO') }
}

/** Sixteen bytes of address, then the family. */
function addressKey(ip: Ip): Uint8Array {
  const bytes = new Uint8Array(20)
  putIp(bytes, 0, ip)
  bytes[16] = familyByte(ip)
  return bytes
}

function lxcValue({ endpointId, identity, flags }: LxcRow): Uint8Array {
  const bytes = new Uint8Array(48)
  putU16(bytes, 6, endpointId)
  putU32(bytes, 8, flags)
  putU32(bytes, 32, identity)
  return bytes
}

export function lxcText({ endpointId, identity, flags }: LxcRow, version: CiliumVersion): string {
  if ((flags & hostFlag) !== 0) return '(localhost)'
  const noMac = '00:00:00:00:00:00'
  const parts = [
    `id=${String(endpointId).padEnd(5)}`,
    `sec_id=${String(identity).padEnd(5)}`,
    `flags=0x${flags.toString(16).toUpperCase().padStart(4, '0')}`,
    `ifindex=${'0'.padEnd(3)}`,
    `mac=${noMac}`,
    `nodemac=${noMac}`,
    ...(isAtLeast(version, '1.18') ? [`parent_ifindex=${'0'.padEnd(3)}`] : []),
  ]
  return parts.join(' ').trimEnd()
}

export function dumpIpcache({ ipcache, settings }: NodeMaps): DumpedMap {
  const { version } = settings.policy
  const rows = ipcache.map((row) => ({
    key: printPrefix(row.prefix),
    value: ipcacheText(row, version),
    keyBytes: ipcacheKey(row),
    valueBytes: ipcacheValue(row, version),
    source: row.source,
  }))
  return { layout: ipcacheLayout(version), rows, untold: [], table: pairs('IP PREFIX/ADDRESS', 'IDENTITY') }
}

/** Cluster, padding and family count before the address. */
function ipcacheKey({ prefix }: IpcacheRow): Uint8Array {
  const bytes = new Uint8Array(24)
  putU32(bytes, 0, 32 + prefix.length)
  bytes[7] = familyByte(prefix.ip)
  putIp(bytes, 8, prefix.ip)
  return bytes
}

function ipcacheValue({ identity, tunnel, key, flags }: IpcacheRow, version: CiliumVersion): Uint8Array {
  const isWide = isAtLeast(version, '1.18')
  const bytes = new Uint8Array(isWide ? 24 : 12)
  putU32(bytes, 0, identity)
  if (tunnel !== undefined) putIp(bytes, 4, tunnel)
  bytes[isWide ? 22 : 10] = key
  bytes[isWide ? 23 : 11] = flags
  return bytes
}

export function ipcacheText({ identity, tunnel, key, flags }: IpcacheRow, version: CiliumVersion): string {
  const end = isAtLeast(version, '1.17') ? `flags=${ipcacheFlagText(flags)}` : 'nodeid=0'
  return `identity=${identity} encryptkey=${key} tunnelendpoint=${tunnel === undefined ? '0.0.0.0' : printIp(tunnel)} ${end}`
}

export function ipcacheFlagText(flags: number): string {
  const names = {
    skiptunnel: ipcacheFlags.skipTunnel,
    hastunnel: ipcacheFlags.hasTunnel,
    ipv6tunnel: ipcacheFlags.ipv6Tunnel,
    remotecluster: ipcacheFlags.remoteCluster,
  }
  const set = Object.entries(names).filter(([, flag]) => (flags & flag) !== 0)
  return set.length === 0 ? '<none>' : set.map(([name]) => name).join(',')
}

export function dumpTunnels({ tunnels }: NodeMaps): DumpedMap {
  const rows = tunnels.map((row: TunnelRow) => ({
    key: `${printIp(row.range.ip)}:0`,
    value: `${printIp(row.nodeIp)}:0`,
    keyBytes: addressKey(row.range.ip),
    valueBytes: addressKey(row.nodeIp),
    source: row.source,
  }))
  return { layout: tunnelLayout(), rows, untold: [], table: pairs('TUNNEL', 'VALUE') }
}

export function dumpNodeIds({ nodeIds }: NodeMaps): DumpedMap {
  const rows = nodeIds.map((row) => ({
    key: printIp(row.ip),
    value: nodeIdText(row),
    keyBytes: nodeKey(row.ip),
    valueBytes: nodeValue(row),
    source: row.source,
  }))
  const lines = nodeIds.map(({ ip, nodeId, spi }) => [[`0x${nodeId.toString(16)}`, printIp(ip), String(spi)]])
  return {
    layout: nodeMapLayout(),
    rows,
    untold: [{ from: 0, to: 2, what: 'numbers of other nodes' }],
    table: { kind: 'columns', header: ['NODE ID', 'IP ADDRESSES', 'SPI'], lines, empty: 'No entries found.' },
    json: () => nodeIds.map(({ ip, nodeId, spi }) => ({ ID: nodeId, Address: printIp(ip), SPI: spi })),
  }
}

export function nodeIdText({ nodeId, spi }: NodeIdRow): string {
  return `nodeid=0x${nodeId.toString(16)} spi=${spi}`
}

function nodeKey(ip: Ip): Uint8Array {
  const bytes = new Uint8Array(20)
  bytes[3] = familyByte(ip)
  putIp(bytes, 4, ip)
  return bytes
}

function nodeValue({ nodeId, spi }: NodeIdRow): Uint8Array {
  const bytes = new Uint8Array(4)
  putU16(bytes, 0, nodeId)
  bytes[2] = spi
  return bytes
}
