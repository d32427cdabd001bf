/** Policy maps as bytes and text, as each version lays them out. Mirrors pkg/maps/policymap and bpf/lib/policy.h, Cilium 1.16 to 1.19. */

import { reservedIdentities } from '#compile/identities/identities'
import { type Label, printLabel } from '#compile/identities/label'
import {
  type PolicyEntry,
  type PolicyKey,
  policyKeyBytes,
  precedenceOf,
  prefixLength,
  proxyPortPriority,
} from '#compile/policy/cilium-policy-entry'
import { prefixRange } from '#compile/policy/cilium-port-prefix'
import { type CiliumVersion, isAtLeast } from '#model/cilium-version'
import type { DumpedMap, DumpedRow, UntoldBytes } from './dumped-map'
import { policyLayout } from './map-layouts'
import { type RowSource, sourceOf } from './map-source'
import { type NodeMaps, protocolName } from './node-maps'
import type { NodeWorld } from './node-world'
import type { EndpointPolicy, PolicyMapRow } from './render-policy-maps'
import { putBe16, putU32 } from './struct-bytes'

export function dumpPolicyMaps(maps: NodeMaps): readonly DumpedMap[] {
  const labels = labelsByNumber(maps.world)
  return maps.policies.map((policy) => dumpPolicyMap(maps, policy, labels))
}

function dumpPolicyMap(
  { settings }: NodeMaps,
  { endpoint, rows }: EndpointPolicy,
  labels: ReadonlyMap<number, readonly Label[]>,
): DumpedMap {
  const { version } = settings.policy
  const dumped = rows.map(
    (row): DumpedRow => ({
      key: policyKeyText(row.entry.key, version),
      value: policyValueText(row, version),
      keyBytes: policyKeyBytes(row.entry.key),
      valueBytes: policyValueBytes(row, version),
      source: policySource(row.entry),
    }),
  )
  const hasCookie = isAtLeast(version, '1.18')
  const header = [
    'POLICY',
    'DIRECTION',
    'LABELS (source:key[=value])',
    'PORT/PROTO',
    'PROXY PORT',
    'AUTH TYPE',
    'BYTES',
    'PACKETS',
    'PREFIX',
  ]
  return {
    layout: {
      ...policyLayout(version, endpoint.id, settings.policyMapMax),
      holds: `what ${endpoint.title} may receive and send`,
    },
    rows: dumped,
    untold: untoldBytes(version),
    table: {
      kind: 'columns',
      header: hasCookie ? [...header, 'COOKIE'] : header,
      lines: rows.map((row) => linesOf(row, version, labels.get(row.entry.key.identity))),
      empty: 'Policy stats empty. Perhaps the policy enforcement is disabled?',
    },
    json: () => rows.map((row) => jsonOf(row, version)),
  }
}

function untoldBytes(version: CiliumVersion): readonly UntoldBytes[] {
  const port = { from: 0, to: 2, what: 'proxy port' }
  if (isAtLeast(version, '1.18')) return [port, { from: 8, to: 12, what: 'cookie' }]
  return isAtLeast(version, '1.17') ? [port] : [port, { from: 8, to: 24, what: 'packets and bytes' }]
}

function labelsByNumber({ identities }: NodeWorld): ReadonlyMap<number, readonly Label[]> {
  const known = [
    ...reservedIdentities(identities.settings.isDualStack),
    ...identities.table.values(),
    ...identities.prefixes.identities,
  ]
  return new Map(known.map(({ number, labels }) => [number, labels.labels]))
}

/** The value of a row in its version's layout. */
export function policyValueBytes({ entry, proxyPort, cookie }: PolicyMapRow, version: CiliumVersion): Uint8Array {
  const { key, isDeny, auth } = entry
  if (!isAtLeast(version, '1.17')) {
    const bytes = new Uint8Array(24)
    putBe16(bytes, 0, proxyPort)
    bytes[2] = (isDeny ? 1 : 0) | (key.length === 0 ? 2 : 0) | (key.length <= 8 ? 4 : 0)
    bytes[3] = auth.type
    return bytes
  }
  const bytes = new Uint8Array(isAtLeast(version, '1.18') ? 12 : 8)
  putBe16(bytes, 0, proxyPort)
  bytes[2] = (isDeny ? 1 : 0) | (key.length << 3)
  bytes[3] = auth.type | (auth.isExplicit ? 0x80 : 0)
  if (isAtLeast(version, '1.19')) putU32(bytes, 4, precedenceOf(entry))
  else bytes[4] = proxyPortPriority(entry)
  if (isAtLeast(version, '1.18')) putU32(bytes, 8, cookie)
  return bytes
}

/** `8080/TCP`, `8080-8087/TCP`, `TCP`, `ANY`; the first builds that had ranges wrote base and length. */
export function portText({ protocol, port, length }: PolicyKey, version: CiliumVersion): string {
  if (length === 0) return 'ANY'
  const name = protocolName(protocol)
  if (length <= 8) return name
  if (length === 24) return `${port}/${name}`
  if (!isAtLeast(version, '1.17')) return `0x${port.toString(16)}/${length - 8}/${name}`
  const { from, to } = prefixRange({ port, bits: length - 8 })
  return `${from}-${to}/${name}`
}

const authNames: readonly string[] = ['disabled', 'spire', 'always-fail']

export function policyKeyText(key: PolicyKey, version: CiliumVersion): string {
  return `${key.direction === 'ingress' ? 'Ingress' : 'Egress'}: ${key.identity} ${portText(key, version)}`
}

export function policyValueText({ entry, proxyPort }: PolicyMapRow, version: CiliumVersion): string {
  const parts = [
    entry.isDeny ? 'Deny' : 'Allow',
    proxyPort === 0 ? '' : `proxy port ${proxyPort}`,
    entry.auth.type === 0 ? '' : `auth ${authNames[entry.auth.type] ?? entry.auth.type}`,
    isAtLeast(version, '1.19') ? `precedence 0x${precedenceOf(entry).toString(16)}` : '',
  ]
  return parts.filter((part) => part !== '').join(', ')
}

/** The rest of an identity's labels stand below the first. */
function linesOf(
  { entry, proxyPort, cookie }: PolicyMapRow,
  version: CiliumVersion,
  labels: readonly Label[] | undefined,
): readonly (readonly string[])[] {
  const { key, isDeny, auth } = entry
  const texts = key.identity === 0 ? ['ANY'] : (labels ?? []).map(printLabel).map((text) => text.replace(/:$/, ''))
  const [first = String(key.identity), ...others] = texts
  const counters = isAtLeast(version, '1.17') ? ['-', '-'] : ['0', '0']
  const line = [
    isDeny ? 'Deny' : 'Allow',
    key.direction === 'ingress' ? 'Ingress' : 'Egress',
    first,
    portText(key, version),
    proxyPort === 0 ? 'NONE' : String(proxyPort),
    authNames[auth.type] ?? String(auth.type),
    ...counters,
    String(key.length),
    ...(isAtLeast(version, '1.18') ? [String(cookie)] : []),
  ]
  return [line, ...others.map((text) => ['', '', text])]
}

function jsonOf({ entry, proxyPort, cookie }: PolicyMapRow, version: CiliumVersion): unknown {
  const { key, isDeny, auth } = entry
  const swap = (port: number): number => ((port & 0xff) << 8) | (port >>> 8)
  return {
    Key: {
      Prefixlen: prefixLength(key),
      Identity: key.identity,
      TrafficDirection: key.direction === 'ingress' ? 0 : 1,
      Nexthdr: key.protocol,
      DestPortNetwork: swap(key.port),
    },
    ProxyPortNetwork: swap(proxyPort),
    Flags: (isDeny ? 1 : 0) | (isAtLeast(version, '1.17') ? key.length << 3 : 0),
    AuthRequirement: auth.type | (auth.isExplicit ? 0x80 : 0),
    ...(isAtLeast(version, '1.19')
      ? { Precedence: precedenceOf(entry) }
      : isAtLeast(version, '1.17')
        ? { ProxyPortPriority: proxyPortPriority(entry) }
        : { Packets: 0, Bytes: 0 }),
    ...(isAtLeast(version, '1.18') && { Cookie: cookie }),
  }
}

export function policySource({ origins, note }: PolicyEntry): RowSource {
  const [first, ...others] = origins
  if (first === undefined) return sourceOf('policy', undefined, note === undefined ? {} : { note })
  const { source, rule } = first
  const more =
    others.length === 0
      ? {}
      : { note: `and ${others.length} more, such as ${others[0]?.source.object.name} ${others[0]?.rule.path}` }
  return { by: 'policy', object: source.object, origin: source.origin, path: rule.path, ...more }
}
