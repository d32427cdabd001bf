/** The load balancer's maps as bytes and text. Mirrors pkg/maps/lbmap and cilium-dbg/cmd/bpf_lb_list.go, Cilium 1.16 to 1.19. */
import { type Family, type Ip, printEndpoint, printIp } from '#base/ip'
import { printPrefix } from '#base/prefix'
import { isAtLeast } from '#model/cilium-version'
import { type DumpedMap, type DumpedRow, pairs } from './dumped-map'
import type { BackendRow, ServiceRow } from './lb-rows'
import { affinityMatchLayout, type LbMapName, lbLayout } from './map-layouts'
import { type NodeMaps, protocolName } from './node-maps'
import type { SourceRangeRow } from './render-services'
import { printServiceFlags } from './service-flags'
import { putBe16, putIp, putU16, putU32 } from './struct-bytes'

export function dumpServices(maps: NodeMaps): readonly DumpedMap[] {
  const { settings, lb } = maps
  const ofFamily = settings.families.flatMap((family): readonly DumpedMap[] => {
    const layout = (name: LbMapName) => lbLayout(name, family, settings)
    const services = lb.services.filter(({ ip }) => ip.family === family)
    const reverse = services.filter(({ isWildcard }) => !isWildcard)
    const backends = lb.backends.filter(({ ip }) => ip.family === family)
    const ranges = lb.sourceRanges.filter(({ prefix }) => prefix.ip.family === family)
    return [
      {
        layout: layout('services'),
        rows: services.flatMap((service) => serviceRows(maps, service)),
        untold: [],
        table: pairs('SERVICE ADDRESS', 'BACKEND ADDRESS (REVNAT_ID) (SLOT)'),
      },
      {
        layout: layout('backends'),
        rows: backends.map((one) => backendRow(maps, one)),
        untold: [],
        table: pairs('ID', 'BACKEND ADDRESS (REVNAT_ID) (SLOT)'),
      },
      {
        layout: layout('reverseNat'),
        rows: reverse.map(reverseRow),
        untold: [],
        table: pairs('ID', 'BACKEND ADDRESS (REVNAT_ID) (SLOT)'),
      },
      ...(settings.checksSourceRanges
        ? [
            {
              layout: layout('sourceRange'),
              rows: ranges.map(rangeRow),
              untold: [],
              table: pairs('SOURCE RANGE (REVNAT_ID)', ''),
            },
          ]
        : []),
      ...(settings.usesMaglev || maps.maglev.length > 0 ? [dumpMaglev(maps, family)] : []),
    ]
  })
  return settings.hasAffinity ? [...ofFamily, dumpAffinity(maps)] : ofFamily
}

function serviceRows(maps: NodeMaps, service: ServiceRow): readonly DumpedRow[] {
  const { source } = service
  const master = {
    key: serviceText(maps, service, 0),
    value: masterText(service),
    keyBytes: serviceKey(service, 0),
    valueBytes: masterValue(service),
    source,
  }
  const slots = service.slots.map((backend, index): DumpedRow => {
    const slot = index + 1
    return {
      key: serviceText(maps, service, slot),
      value: `${backendText(backend)} (${service.revNat}) (${slot})`,
      keyBytes: serviceKey(service, slot),
      valueBytes: slotValue(service, backend),
      source: backend.source,
    }
  })
  return [master, ...slots]
}

export function masterText({ ip, revNat, flags }: ServiceRow): string {
  const any = ip.family === 'ipv4' ? '0.0.0.0:0' : '[::]:0'
  return `${any} (${revNat}) (0) [${printServiceFlags(flags)}] `
}

/** Before 1.17 all slots stand under one address, without its protocol. */
export function serviceText(
  { settings }: Pick<NodeMaps, 'settings'>,
  { ip, port, protocol, scope }: Pick<ServiceRow, 'ip' | 'port' | 'protocol' | 'scope'>,
  slot: number,
): string {
  const address = printEndpoint(printIp(ip), port)
  const inner = scope === 'internal' ? '/i' : ''
  if (!isAtLeast(settings.policy.version, '1.17')) return `${address}${inner}`
  return `${address}/${protocolName(protocol)}${inner} (${slot})`
}

export function backendText({ ip, port, protocol }: BackendRow): string {
  const address = printEndpoint(printIp(ip), port)
  return protocol === 0 ? address : `${address}/${protocolName(protocol)}`
}

function serviceKey({ ip, port, protocol, scope }: ServiceRow, slot: number): Uint8Array {
  const at = ip.words.length * 4
  const bytes = new Uint8Array(at + 8)
  putIp(bytes, 0, ip)
  putBe16(bytes, at, port)
  putU16(bytes, at + 2, slot)
  bytes[at + 4] = protocol
  bytes[at + 5] = scope === 'internal' ? 1 : 0
  return bytes
}

/** The timeout takes the low 24 bits, the service's own algorithm the rest. */
function masterValue({ affinitySeconds = 0, algorithm, slots, revNat, flags }: ServiceRow): Uint8Array {
  const bytes = new Uint8Array(12)
  putU32(bytes, 0, ((algorithm << 24) | (affinitySeconds & 0xffffff)) >>> 0)
  putU16(bytes, 4, slots.length)
  putBe16(bytes, 6, revNat)
  putU16(bytes, 8, flags)
  return bytes
}

function slotValue({ revNat }: ServiceRow, { id }: BackendRow): Uint8Array {
  const bytes = new Uint8Array(12)
  putU32(bytes, 0, id)
  putBe16(bytes, 6, revNat)
  return bytes
}

function backendRow({ settings }: NodeMaps, backend: BackendRow): DumpedRow {
  const { id, ip, port, protocol, state, source } = backend
  const keyBytes = new Uint8Array(4)
  putU32(keyBytes, 0, id)
  const at = ip.words.length * 4
  const valueBytes = new Uint8Array(at + 8)
  putIp(valueBytes, 0, ip)
  putBe16(valueBytes, at, port)
  valueBytes[at + 2] = protocol
  valueBytes[at + 3] = state === 'active' ? 0 : 1
  const hasPort = !isAtLeast(settings.policy.version, '1.18')
  const address = hasPort ? printEndpoint(printIp(ip), port) : bracketed(ip)
  return { key: String(id), value: `${protocolName(protocol)}://${address}`, keyBytes, valueBytes, source }
}

function bracketed(ip: Ip): string {
  return ip.family === 'ipv4' ? printIp(ip) : `[${printIp(ip)}]`
}

function reverseRow({ ip, port, revNat, source }: ServiceRow): DumpedRow {
  const keyBytes = new Uint8Array(2)
  putBe16(keyBytes, 0, revNat)
  const at = ip.words.length * 4
  const valueBytes = new Uint8Array(at + 2)
  putIp(valueBytes, 0, ip)
  putBe16(valueBytes, at, port)
  return { key: String(revNat), value: printEndpoint(printIp(ip), port), keyBytes, valueBytes, source }
}

/** Number of the service and padding count before the address. */
function rangeRow({ prefix, revNat, source }: SourceRangeRow): DumpedRow {
  const keyBytes = new Uint8Array(8 + prefix.ip.words.length * 4)
  putU32(keyBytes, 0, 32 + prefix.length)
  putBe16(keyBytes, 4, revNat)
  putIp(keyBytes, 8, prefix.ip)
  return { key: `${printPrefix(prefix)} (${revNat})`, value: '', keyBytes, valueBytes: new Uint8Array(1), source }
}

function dumpMaglev({ settings, maglev }: NodeMaps, family: Family): DumpedMap {
  const inner = new Map<DumpedRow, Uint32Array>()
  const rows = maglev
    .filter(({ service }) => service.ip.family === family)
    .map(({ service, table }): DumpedRow => {
      const keyBytes = new Uint8Array(2)
      putBe16(keyBytes, 0, service.revNat)
      const row = {
        key: `[${service.revNat}]/${family === 'ipv4' ? 'v4' : 'v6'}`,
        value: `[${table.join(' ')}]`,
        keyBytes,
        valueBytes: new Uint8Array(4),
        source: service.source,
      }
      inner.set(row, table)
      return row
    })
  const untold = [{ from: 0, to: 4, what: 'id of the inner map' }]
  return { layout: lbLayout('maglev', family, settings), rows, untold, table: pairs('SVC ID', 'LOOKUP TABLE'), inner }
}

function dumpAffinity({ settings, lb }: NodeMaps): DumpedMap {
  const rows = lb.services
    .filter(({ affinitySeconds }) => affinitySeconds !== undefined)
    .flatMap(({ slots, revNat }) =>
      slots.map(({ id, source }): DumpedRow => {
        const keyBytes = new Uint8Array(8)
        putU32(keyBytes, 0, id)
        putBe16(keyBytes, 4, revNat)
        return { key: `${id} ${revNat}`, value: '', keyBytes, valueBytes: new Uint8Array(1), source }
      }),
    )
  return { layout: affinityMatchLayout(settings), rows, untold: [], table: pairs('BACKEND ID REVNAT ID', '') }
}
