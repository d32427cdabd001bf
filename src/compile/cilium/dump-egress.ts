/** Egress gateway and masquerade maps as bytes and text. Mirrors pkg/maps/egressmap, pkg/maps/ipmasq and cilium-dbg, Cilium 1.16 to 1.19. */
import { type Family, type Ip, isSameIp, printIp } from '#base/ip'
import { printPrefix } from '#base/prefix'
import { isAtLeast } from '#model/cilium-version'
import { type DumpedMap, type DumpedRow, pairs } from './dumped-map'
import { egressLayout, ipMasqLayout } from './map-layouts'
import type { NodeMaps } from './node-maps'
import { type EgressRow, excludedRange, gatewayNotFound } from './render-egress'
import { putIp, putU32 } from './struct-bytes'

export function dumpEgress(maps: NodeMaps): readonly DumpedMap[] {
  const { settings } = maps
  if (!settings.hasEgressGateway) return []
  return settings.families
    .filter((family) => family === 'ipv4' || isAtLeast(settings.policy.version, '1.18'))
    .map((family) => dumpFamily(maps, family))
}

function dumpFamily({ egress }: NodeMaps, family: Family): DumpedMap {
  const own = egress.filter(({ sourceIp }) => sourceIp.family === family)
  const rows = own.map(
    (row): DumpedRow => ({
      key: `${printIp(row.sourceIp)} ${printPrefix(row.destination)}`,
      value: `${printIp(row.egressIp)} ${gatewayText(row.gatewayIp)}`,
      keyBytes: egressKey(row),
      valueBytes: egressValue(row),
      source: row.source,
    }),
  )
  const columns = (row: EgressRow): readonly string[] => [
    printIp(row.sourceIp),
    printPrefix(row.destination),
    printIp(row.egressIp),
    gatewayText(row.gatewayIp),
  ]
  return {
    layout: egressLayout(family),
    rows,
    untold: family === 'ipv6' ? [{ from: 32, to: 36, what: 'egress_ifindex' }] : [],
    table: {
      kind: 'columns',
      header: ['Source IP', 'Destination CIDR', 'Egress IP', 'Gateway IP'],
      lines: own.map((row) => [columns(row)]),
      empty: 'No entries found.',
    },
    json: () =>
      own.map((row) => {
        const [SourceIP, DestCIDR, EgressIP, GatewayIP] = columns(row)
        return { SourceIP, DestCIDR, EgressIP, GatewayIP }
      }),
  }
}

export function gatewayText(ip: Ip): string {
  if (isSameIp(ip, gatewayNotFound)) return 'Not Found'
  return isSameIp(ip, excludedRange) ? 'Excluded CIDR' : printIp(ip)
}

/** The source counts whole, the destination as far as its mask says. */
function egressKey({ sourceIp, destination }: EgressRow): Uint8Array {
  const size = sourceIp.words.length * 4
  const bytes = new Uint8Array(4 + 2 * size)
  putU32(bytes, 0, 8 * size + destination.length)
  putIp(bytes, 4, sourceIp)
  putIp(bytes, 4 + size, destination.ip)
  return bytes
}

/** The gateway is an IPv4 address for IPv6 as well. */
function egressValue({ egressIp, gatewayIp }: EgressRow): Uint8Array {
  const isIpv4 = egressIp.family === 'ipv4'
  const bytes = new Uint8Array(isIpv4 ? 8 : 40)
  putIp(bytes, 0, egressIp)
  putIp(bytes, isIpv4 ? 4 : 16, gatewayIp)
  return bytes
}

export function dumpIpMasq({ settings, ipMasq }: NodeMaps): readonly DumpedMap[] {
  if (!settings.hasIpMasqAgent) return []
  return settings.families.map((family) => {
    const own = ipMasq.filter(({ prefix }) => prefix.ip.family === family)
    const rows = own.map(({ prefix, source }): DumpedRow => {
      const keyBytes = new Uint8Array(4 + prefix.ip.words.length * 4)
      putU32(keyBytes, 0, prefix.length)
      putIp(keyBytes, 4, prefix.ip)
      return { key: printPrefix(prefix), value: '', keyBytes, valueBytes: new Uint8Array(1), source }
    })
    const json = (): unknown => own.map(({ prefix }) => printPrefix(prefix))
    return { layout: ipMasqLayout(family), rows, untold: [], table: pairs('IP PREFIX/ADDRESS', ''), json }
  })
}
