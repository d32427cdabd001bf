/** cilium_ipmasq: destinations whose packets keep the pod's address. Mirrors pkg/ipmasq, Cilium 1.16 to 1.19. */
import { load } from 'js-yaml'
import { type Prefix, parsePrefix, printPrefix } from '#base/prefix'
import type { Cluster, ConfigMap } from '#model/cluster'
import { refOf } from '#model/meta'
import { mapsFinding } from './findings'
import { type RowSource, sourceOf } from './map-source'
import type { NodeWorld } from './node-world'

export type IpMasqRow = { readonly prefix: Prefix; readonly source: RowSource }

const defaultRanges: readonly string[] = [
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '100.64.0.0/10',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '240.0.0.0/4',
]

type Config = {
  readonly ranges: readonly string[]
  readonly masksLinkLocal: boolean
  readonly masksLinkLocalIpv6: boolean
}

/** Link-local destinations are added unless the configuration masks them. */
export function renderIpMasq(world: NodeWorld): readonly IpMasqRow[] {
  if (!world.settings.hasIpMasqAgent) return []
  const config = [...world.cluster.configMaps.values()].find(({ meta }) => meta.name === 'ip-masq-agent')
  const { ranges, masksLinkLocal, masksLinkLocalIpv6 } = readConfig(world, config)
  const isDefault = ranges.length === 0
  const all = [
    ...(isDefault ? defaultRanges : ranges),
    ...(masksLinkLocal ? [] : ['169.254.0.0/16']),
    ...(masksLinkLocalIpv6 ? [] : ['fe80::/10']),
  ]
  const rows = new Map<string, IpMasqRow>()
  for (const text of all) {
    const prefix = parsePrefix(text)?.prefix
    if (prefix === undefined || !world.settings.families.includes(prefix.ip.family)) continue
    const isOwn = ranges.includes(text)
    const source = isOwn
      ? sourceOf('masquerade', config?.meta, { path: 'data.config nonMasqueradeCIDRs' })
      : sourceOf('masquerade', undefined, { note: 'a default of the agent' })
    rows.set(printPrefix(prefix), { prefix, source })
  }
  return [...rows.values()]
}

/** Ranges that an agent of any network plugin leaves alone, where its ConfigMap is in the input. */
export function rangesWithoutMasquerade({ configMaps }: Cluster): readonly Prefix[] | undefined {
  const config = [...configMaps.values()].find(({ meta }) => meta.name === 'ip-masq-agent')
  if (config === undefined) return undefined
  const { ranges } = readConfig({ findings: [] }, config)
  return (ranges.length === 0 ? defaultRanges : ranges).flatMap((text) => parsePrefix(text)?.prefix ?? [])
}

function readConfig({ findings }: Pick<NodeWorld, 'findings'>, config: ConfigMap | undefined): Config {
  const nothing = { ranges: [], masksLinkLocal: false, masksLinkLocalIpv6: false }
  if (config === undefined) return nothing
  const parsed = parseYaml(config.data.config ?? Object.values(config.data)[0] ?? '')
  if (typeof parsed !== 'object' || parsed === null) {
    if (parsed === undefined) return nothing
    findings.push(
      mapsFinding('maps.bad-config', {
        message: 'the configuration of ip-masq-agent is no map of YAML; the agent’s defaults are taken',
        object: refOf(config.meta),
        origin: config.meta.origin,
        path: 'data.config',
      }),
    )
    return nothing
  }
  const { nonMasqueradeCIDRs, masqLinkLocal, masqLinkLocalIPv6 } = parsed as Readonly<Record<string, unknown>>
  const texts = Array.isArray(nonMasqueradeCIDRs) ? nonMasqueradeCIDRs : []
  return {
    ranges: texts.filter((text): text is string => typeof text === 'string' && parsePrefix(text) !== undefined),
    masksLinkLocal: masqLinkLocal === true,
    masksLinkLocalIpv6: masqLinkLocalIPv6 === true,
  }
}

/** Undefined for an empty text, null for one that is no YAML. */
function parseYaml(text: string): unknown {
  if (text.trim() === '') return undefined
  try {
    return load(text)
  } catch {
    return null
  }
}
