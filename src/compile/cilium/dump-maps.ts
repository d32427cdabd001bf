/** All maps of a node as bytes and text, in the order of a packet's way; those that traffic fills come last and are empty. */
import { isAtLeast } from '#model/cilium-version'
import { dumpIpcache, dumpLxc, dumpNodeIds, dumpTunnels } from './dump-addresses'
import { dumpEgress, dumpIpMasq } from './dump-egress'
import { dumpPolicyMaps } from './dump-policy-maps'
import { dumpServices } from './dump-services'
import { type DumpedMap, type DumpedRow, pairs } from './dumped-map'
import { callLayout, trafficLayouts } from './map-layouts'
import { sourceOf } from './map-source'
import type { NodeMaps } from './node-maps'
import { putU32 } from './struct-bytes'

export function dumpMaps(maps: NodeMaps): readonly DumpedMap[] {
  const { settings } = maps
  const hasTunnelMap = settings.isTunnel && !isAtLeast(settings.policy.version, '1.18')
  return [
    dumpLxc(maps),
    dumpIpcache(maps),
    ...dumpPolicyMaps(maps),
    dumpCalls(maps, 'ingress'),
    ...(settings.replacesKubeProxy ? [dumpCalls(maps, 'egress')] : []),
    ...dumpServices(maps),
    ...dumpEgress(maps),
    ...dumpIpMasq(maps),
    ...(hasTunnelMap ? [dumpTunnels(maps)] : []),
    dumpNodeIds(maps),
    ...trafficLayouts(settings).map((layout) => ({ layout, rows: [], untold: [], table: pairs('KEY', 'VALUE') })),
  ]
}

/** What stands in the value is known to the kernel alone. */
function dumpCalls({ world }: NodeMaps, direction: 'ingress' | 'egress'): DumpedMap {
  const rows = world.endpoints
    .filter(({ kind }) => kind !== 'host')
    .map(({ id, meta, title }): DumpedRow => {
      const keyBytes = new Uint8Array(4)
      putU32(keyBytes, 0, id)
      const value = `policy program of ${title}`
      return { key: String(id), value, keyBytes, valueBytes: new Uint8Array(4), source: sourceOf('endpoints', meta) }
    })
  const untold = [{ from: 0, to: 4, what: 'program' }]
  return { layout: callLayout(direction), rows, untold, table: pairs('ENDPOINT', 'PROGRAM') }
}
