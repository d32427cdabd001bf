/** A node's dumped maps against those that the objects imply: what is missing, what is stale, what says something else. */
import type { Finding } from '#base/finding'
import { countOf, listOf } from '#base/text'
import { type FoundKind, type FoundMap, type FoundRow, foundKinds } from '#compile/cilium/found-map'
import { type NodeMaps, nodeMaps } from '#compile/cilium/node-maps'
import { nodeWorld, type WorldOptions } from '#compile/cilium/node-world'
import type { DumpFile } from '#compile/cilium/parse-dump'
import type { Cluster } from '#model/cluster'
import { nodeIps } from '#model/node'
import { type Comparison, compareRows } from './compare-rows'
import { compareAffinity, compareMaglev, type NodeNumbers, readNumbers } from './diff-numbered'
import { diffState } from './diff-state'
import { expectedRows, policyRows } from './expected-maps'
import { diffFinding } from './findings'
import { learnNumbers } from './learn-numbers'
import { numberLabels } from './number-labels'
import { tellPressure } from './tell-pressure'

export type MapsDiff = {
  readonly maps: NodeMaps
  /** Of the comparison alone. */
  readonly findings: readonly Finding[]
  readonly compared: number
}

/** `states` are dumps of connections and translations, which traffic makes. */
export function diffMaps(
  cluster: Cluster,
  found: readonly FoundMap[],
  { states = [], ...options }: WorldOptions & { readonly states?: readonly DumpFile[] },
): MapsDiff {
  const learned = learnNumbers(nodeWorld(cluster, options), found)
  const maps = nodeMaps(cluster, { ...options, learned })
  const numbers = readNumbers(found)
  const findings = [
    ...found.flatMap((map) => tellOtherNode(cluster, map, options.node)),
    ...found.flatMap((map) => [...compareMap(maps, map, numbers), ...tellPressure(maps, map), ...tellEra(maps, map)]),
    ...states.flatMap((file) => diffState(maps, file, numbers)),
  ]
  return { maps, findings: dedupe(findings), compared: found.length + states.length }
}

/** Two commands may show one map. */
function dedupe(findings: readonly Finding[]): readonly Finding[] {
  return [...new Map(findings.map((finding) => [`${finding.code} ${finding.message}`, finding])).values()]
}

function compareMap(maps: NodeMaps, map: FoundMap, numbers: NodeNumbers): readonly Finding[] {
  if (map.kind === 'maglev') return compareMaglev(maps, map, numbers)
  if (map.kind === 'affinityMatch') return compareAffinity(maps, map, numbers)
  if (map.kind === 'identities') return unusedIdentities(maps, map)
  if (map.kind === 'policy') return comparePolicy(maps, map)
  const title = foundKinds[map.kind]
  return compareRows(expectedRows(maps, map.kind), map, { title, ...commentOf(map.kind) })
}

function commentOf(kind: FoundKind): Pick<Comparison, 'codes'> {
  if (kind === 'egress') {
    const code = 'maps-diff.egress-differs'
    return { codes: { differs: code } }
  }
  if (kind === 'backends') return { codes: { missing: 'maps-diff.backend-missing', stale: 'maps-diff.stale-backend' } }
  return {}
}

function comparePolicy(maps: NodeMaps, map: FoundMap): readonly Finding[] {
  const policy = maps.policies.find(({ endpoint }) => endpoint.id === map.endpoint)
  if (map.endpoint === undefined || Number.isNaN(map.endpoint)) {
    const message = 'nothing tells whose policy map this is: name the file after its endpoint, as in policy-get-102.txt'
    return [diffFinding('maps-diff.row-differs', { message, origin: map.origin })]
  }
  if (policy === undefined) {
    const message = `endpoint ${map.endpoint} has a policy map, and no pod of the input on this node has that number`
    return [diffFinding('maps-diff.row-stale', { message, origin: map.origin })]
  }
  const { title } = policy.endpoint
  const rows = map.rows.map((row): FoundRow => ({ ...row, key: numberLabels(maps.world, row.key) }))
  const codes = {
    missing: 'maps-diff.policy-missing',
    stale: 'maps-diff.policy-extra',
    differs: 'maps-diff.row-differs',
  } as const
  return compareRows(policyRows(policy), { ...map, rows }, { title: `the policy map of ${title}`, codes })
}

/** The agents of a cluster keep an identity for a while after its last pod is gone. */
function unusedIdentities({ world }: NodeMaps, map: FoundMap): readonly Finding[] {
  const used = new Set(world.pods.map(({ identity }) => identity))
  const unused = map.rows.filter(({ key }) => {
    const number = Number(key)
    return number >= 256 && number < 0x01000000 && !used.has(number)
  })
  if (unused.length === 0) return []
  const message = `${countOf(unused.length, 'identity', 'identities')} no pod of the input has: ${listOf(unused.map(({ key }) => key))}`
  return [diffFinding('maps-diff.identity-unused', { message, origin: unused[0]?.origin ?? map.origin })]
}

/** Rows of the host are the node's own: a wrong `--node` is told before all that differs for it. */
function tellOtherNode({ nodes, ciliumNodes }: Cluster, map: FoundMap, node: string): readonly Finding[] {
  if (map.kind !== 'ipcache') return []
  const owners = new Map([
    ...[...nodes.values()].flatMap((one) => nodeIps(one).map((ip) => [ip, one.meta.name] as const)),
    ...[...ciliumNodes.values()].flatMap(({ addresses, meta }) =>
      addresses.map(({ address }) => [address, meta.name] as const),
    ),
  ])
  const hosts = map.rows.filter(({ fields }) => fields.identity === '1')
  const names = new Set(hosts.flatMap(({ key }) => owners.get(key.replace(/\/\d+$/, '')) ?? []))
  const [other, second] = names
  if (other === undefined || second !== undefined || names.has(node)) return []
  const message = `the host’s addresses in this dump are those of ${other}, and it is compared with ${node}`
  return [diffFinding('maps-diff.other-node', { message, origin: map.origin, hint: `add --node ${other}` })]
}

function tellEra({ settings }: NodeMaps, { era, origin }: FoundMap): readonly Finding[] {
  const { version } = settings.policy
  if (era === undefined || era === version) return []
  const message = `this dump is laid out as Cilium ${era} does, and ${version} is asked for`
  return [diffFinding('maps-diff.other-version', { message, origin, hint: `add --cilium ${era}` })]
}
