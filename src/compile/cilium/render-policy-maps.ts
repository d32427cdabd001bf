/** The policy map of each endpoint of a node. Mirrors pkg/maps/policymap, Cilium 1.16 to 1.19. */
import { compareText } from '#base/text'
import { type LabelSet, labelSet, printLabelSet, reservedLabel } from '#compile/identities/label'
import { identityNumbers, reservedLabels } from '#compile/identities/numbers'
import { endpointPolicyMap, openRulesOf, type PolicyEndpoint } from '#compile/policy/cilium-endpoint-map'
import type { PolicyEntry } from '#compile/policy/cilium-policy-entry'
import { refOf } from '#model/meta'
import { namedPorts } from '#model/pod'
import { mapsFinding } from './findings'
import type { LocalEndpoint, NodeWorld } from './node-world'

export type PolicyMapRow = {
  readonly entry: PolicyEntry
  /** 0 without redirection. The proxy draws the number; ours are in the order of parsers and directions. */
  readonly proxyPort: number
  /** Where the list of origins stands; numbered from 1 in the order of rows. */
  readonly cookie: number
}

export type EndpointPolicy = {
  readonly endpoint: LocalEndpoint
  /** Denies first, then by direction and identity, as `cilium-dbg bpf policy get` sorts them. */
  readonly rows: readonly PolicyMapRow[]
  /** Entries that found no room. */
  readonly lost: number
}

const firstProxyPort = 10000

export function renderPolicyMaps(world: NodeWorld): readonly EndpointPolicy[] {
  const built = new Map<string, readonly PolicyEntry[]>()
  const maps = world.endpoints.map((endpoint) => {
    const asked = policyEndpoint(world, endpoint)
    const text = `${asked.kind} ${printLabelSet(asked.labels)} ${JSON.stringify(asked.ports)}`
    if (!built.has(text)) tellOpen(world, asked)
    const entries = built.get(text) ?? sortEntries(endpointPolicyMap(world.maker, asked).entries)
    built.set(text, entries)
    return { endpoint, entries }
  })
  const ports = proxyPorts(maps.flatMap(({ entries }) => entries))
  return maps.map(({ endpoint, entries }) => withNumbers(world, endpoint, { entries, ports }))
}

/** An endpoint as its policies see it. */
export function policyEndpoint({ cluster, node }: NodeWorld, { kind, pod }: LocalEndpoint): PolicyEndpoint {
  if (kind === 'host') {
    const own = Object.entries(cluster.nodes.get(node)?.meta.labels ?? {})
    const labels = own.map(([key, value]) => ({ source: 'k8s', key, value }))
    return { kind: 'host', labels: labelSet([...labels, reservedLabel('host')]), ports: [] }
  }
  const labels: LabelSet = kind === 'pod' ? (pod?.labels ?? labelSet([])) : reservedLabels(kind)
  return { kind: 'endpoints', labels, ports: pod === undefined ? [] : namedPorts(pod.pod) }
}

function sortEntries(entries: readonly PolicyEntry[]): readonly PolicyEntry[] {
  return [...entries].sort(compareEntries)
}

function compareEntries(a: PolicyEntry, b: PolicyEntry): number {
  if (a.isDeny !== b.isDeny) return a.isDeny ? -1 : 1
  if (a.key.direction !== b.key.direction) return a.key.direction === 'ingress' ? -1 : 1
  return (
    a.key.identity - b.key.identity ||
    a.key.protocol - b.key.protocol ||
    a.key.port - b.key.port ||
    a.key.length - b.key.length
  )
}

function proxyPorts(entries: readonly PolicyEntry[]): ReadonlyMap<string, number> {
  const names = new Set(entries.flatMap((entry) => redirectName(entry) ?? []))
  return new Map([...names].sort(compareText).map((name, index) => [name, firstProxyPort + index]))
}

/** One proxy port for each parser or listener and direction. */
function redirectName({ redirect, key }: PolicyEntry): string | undefined {
  return redirect === undefined ? undefined : `${redirect.parser} ${redirect.listener ?? ''} ${key.direction}`
}

type Numbering = { readonly entries: readonly PolicyEntry[]; readonly ports: ReadonlyMap<string, number> }

function withNumbers(world: NodeWorld, endpoint: LocalEndpoint, { entries, ports }: Numbering): EndpointPolicy {
  const { policyMapMax } = world.settings
  const lost = Math.max(0, entries.length - policyMapMax)
  if (lost > 0) tellFull(world, endpoint, entries.length)
  const cookies = new Map<string, number>()
  const rows = (lost > 0 ? entries.slice(0, policyMapMax) : entries).map((entry) => {
    const text = entry.origins
      .map(({ source, rule }) => `${source.object.kind} ${source.object.namespace} ${source.object.name} ${rule.path}`)
      .join()
    const cookie = text === '' ? 0 : (cookies.get(text) ?? cookies.size + 1)
    if (text !== '') cookies.set(text, cookie)
    return { entry, proxyPort: ports.get(redirectName(entry) ?? '') ?? 0, cookie }
  })
  return { endpoint, rows, lost }
}

/** What is outside is what such rules are about. */
function tellOpen({ maker, settings, findings }: NodeWorld, endpoint: PolicyEndpoint): void {
  const identity = settings.policy.isDualStack ? identityNumbers['world-ipv4'] : identityNumbers.world
  for (const direction of ['ingress', 'egress'] as const) {
    for (const { wanted, why } of openRulesOf(maker, endpoint, { direction, identity })) {
      const { object, origin } = wanted.policy.source
      const path = wanted.rule.path
      const isTold = findings.some(
        (one) => one.code === 'maps.policy-open' && one.origin === origin && one.path === path,
      )
      if (isTold) continue
      const message = `${why}: entries of the policy map that come of it are left out`
      findings.push(mapsFinding('maps.policy-open', { message, object, origin, path }))
    }
  }
}

function tellFull({ settings, findings }: NodeWorld, { meta, title }: LocalEndpoint, count: number): void {
  findings.push(
    mapsFinding('maps.policy-map-full', {
      message: `the policies of ${title} want ${count} entries, and its map holds ${settings.policyMapMax}: the agent reports it, and what is beyond is not enforced as written`,
      ...(meta !== undefined && { object: refOf(meta), origin: meta.origin }),
      hint: 'select fewer identities or wider port ranges, or raise bpf-policy-map-max',
    }),
  )
}
