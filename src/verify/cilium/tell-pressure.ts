/** Maps that are nearly full: what comes next finds no room. */
import type { Finding } from '#base/finding'
import { type FoundMap, foundKinds } from '#compile/cilium/found-map'
import { ipcacheLayout, lbLayout, lxcLayout, policyLayout } from '#compile/cilium/map-layouts'
import type { NodeMaps } from '#compile/cilium/node-maps'
import { diffFinding } from './findings'

const nearlyFull = 0.9

export function tellPressure(maps: NodeMaps, map: FoundMap): readonly Finding[] {
  const most = mostRows(maps, map)
  const count = map.rows.reduce((sum, { fields }) => sum + rowsOf(map, fields), 0)
  if (most === undefined || count < nearlyFull * most) return []
  const message = `${foundKinds[map.kind]} holds ${count} of at most ${most} rows`
  return [
    diffFinding('maps-diff.map-pressure', { message, origin: map.origin, hint: 'raise its size in cilium-config' }),
  ]
}

/** A frontend and its slots are one row here. */
function rowsOf({ kind }: FoundMap, { backends }: FoundMap['rows'][number]['fields']): number {
  return kind === 'services' && backends !== undefined && backends !== '' ? 1 + backends.split(' ').length : 1
}

function mostRows({ settings }: NodeMaps, { kind }: FoundMap): number | undefined {
  const { version } = settings.policy
  if (kind === 'lxc') return lxcLayout().maxEntries
  if (kind === 'ipcache') return ipcacheLayout(version).maxEntries
  if (kind === 'policy') return policyLayout(version, 0, settings.policyMapMax).maxEntries
  if (kind === 'services' || kind === 'backends') return lbLayout(kind, 'ipv4', settings).maxEntries
  return undefined
}
