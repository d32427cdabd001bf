/** Which endpoints a Service port uses on a node, by traffic policy, topology hints and readiness. */
import { compareText } from '#base/text'
import { zoneLabel } from '#model/node'
import type { ChosenEndpoints, PlannedEndpoint, ProxyNode, TopologyMode } from './service-plan'

export type ChooseOptions = {
  readonly usesClusterEndpoints: boolean
  readonly usesLocalEndpoints: boolean
  readonly node: Pick<ProxyNode, 'name' | 'labels'>
  /** Hints for nodes count, not only those for zones. */
  readonly hasNodeHints: boolean
}

/** Mirrors pkg/proxy/topology.go CategorizeEndpoints (1.34); where that leaves the order to chance, ours is by text. */
export function chooseEndpoints(endpoints: readonly PlannedEndpoint[], options: ChooseOptions): ChosenEndpoints {
  const { usesClusterEndpoints, usesLocalEndpoints } = options
  const mode = usesClusterEndpoints ? topologyModeOf(endpoints, options) : undefined
  const cluster = usesClusterEndpoints ? clusterEndpoints(endpoints, mode, options) : []
  const topology = mode === undefined ? {} : { topologyMode: mode }
  if (!usesLocalEndpoints) return { cluster, local: [], reachable: cluster, hasAny: cluster.length > 0, ...topology }
  const hasAny = endpoints.some((endpoint) => endpoint.isReady || isDraining(endpoint))
  const ready = endpoints.filter((endpoint) => endpoint.isLocal && endpoint.isReady)
  const local = ready.length > 0 ? ready : endpoints.filter((endpoint) => endpoint.isLocal && isDraining(endpoint))
  if (!usesClusterEndpoints) return { cluster, local, reachable: local, hasAny }
  const isWithinCluster = mode === undefined && (ready.length > 0 || local.length === 0)
  const reachable = isWithinCluster ? cluster : union(cluster, local)
  return { cluster, local, reachable, hasAny, ...topology }
}

/** Terminating pods that still serve take over when no ready endpoint is left. */
function isDraining({ isServing, isTerminating }: PlannedEndpoint): boolean {
  return isServing && isTerminating
}

function clusterEndpoints(
  endpoints: readonly PlannedEndpoint[],
  mode: TopologyMode | undefined,
  { node }: ChooseOptions,
): readonly PlannedEndpoint[] {
  if (mode === undefined && endpoints.every((endpoint) => endpoint.isReady)) return endpoints
  const usable = endpoints.filter((endpoint) => endpoint.isReady && fits(endpoint, mode, node))
  return usable.length > 0 ? usable : endpoints.filter(isDraining)
}

function fits({ endpoint }: PlannedEndpoint, mode: TopologyMode | undefined, node: ChooseOptions['node']): boolean {
  switch (mode) {
    case undefined:
      return true
    case 'PreferSameNode':
      return node.name !== undefined && (endpoint.forNodes?.includes(node.name) ?? false)
    case 'PreferSameZone':
      return endpoint.forZones?.includes(node.labels[zoneLabel] ?? '') ?? false
    default:
      return mode satisfies never
  }
}

/** A mode holds only if every ready endpoint is hinted and one of them is for here: one without hints ends it for all. */
function topologyModeOf(endpoints: readonly PlannedEndpoint[], options: ChooseOptions): TopologyMode | undefined {
  const { node, hasNodeHints } = options
  if (hasNodeHints && node.name !== undefined) {
    if (isHinted(endpoints, ({ endpoint }) => endpoint.forNodes, node.name)) return 'PreferSameNode'
  }
  const zone = node.labels[zoneLabel]
  if (zone === undefined || zone === '') return undefined
  return isHinted(endpoints, ({ endpoint }) => endpoint.forZones, zone) ? 'PreferSameZone' : undefined
}

function isHinted(
  endpoints: readonly PlannedEndpoint[],
  hintsOf: (endpoint: PlannedEndpoint) => readonly string[] | undefined,
  here: string,
): boolean {
  let hasOneForHere = false
  for (const endpoint of endpoints) {
    if (!endpoint.isReady) continue
    const hints = hintsOf(endpoint) ?? []
    if (hints.length === 0) return false
    hasOneForHere ||= hints.includes(here)
  }
  return hasOneForHere
}

/** True when hints are there but do not lead to a mode: some ready endpoint has none, or none is for here. */
export function ignoresHints(endpoints: readonly PlannedEndpoint[], mode: TopologyMode | undefined): boolean {
  return (
    mode === undefined && endpoints.some(({ isReady, endpoint }) => isReady && (endpoint.forZones?.length ?? 0) > 0)
  )
}

function union(a: readonly PlannedEndpoint[], b: readonly PlannedEndpoint[]): readonly PlannedEndpoint[] {
  const byText = new Map([...a, ...b].map((endpoint) => [endpoint.text, endpoint]))
  return [...byText.values()].sort((one, other) => compareText(one.text, other.text))
}
