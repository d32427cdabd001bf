/** Rules that kube-proxy would write now are no drift, whatever the Service and its settings are. */
import { expect, test } from 'vitest'
import type { Family } from '#base/ip'
import { selectSlices } from '#compile/endpointslices/select-slices'
import { parseSave } from '#compile/iptables/parse-save'
import { printSave } from '#compile/iptables/print-save'
import { savedRuleset } from '#compile/iptables/render-iptables'
import { parseNftList } from '#compile/nftables/parse-list'
import { printList } from '#compile/nftables/print-list'
import { rulesetOf } from '#compile/nftables/ruleset'
import { nodeIptables } from '#compile/node/node-iptables'
import { nodeNftables } from '#compile/node/node-nftables'
import type { Cluster } from '#model/cluster'
import { clusterOfSketch } from '../../test/random/cluster-objects'
import { nodeName } from '../../test/random/node-layout'
import { type ClusterSketch, randomCluster, smallerClusters } from '../../test/random/random-cluster'
import type { NodeRuleset } from './explain-input'
import { explainService } from './explain-service'

const seed = 20260411

/** One Service a cluster: two with one address would be a conflict of the cluster, and no drift of the node. */
function sketches(family: Family, count: number): readonly ClusterSketch[] {
  return Array.from({ length: count }, (_, at) => {
    const sketch = randomCluster(seed + at, family)
    return smallerClusters(sketch)[0] ?? sketch
  })
}

function iptablesOf(cluster: Cluster, { family, settings }: ClusterSketch): NodeRuleset {
  const slices = selectSlices(cluster, 'computed').value
  const { sync } = nodeIptables(cluster, slices, { family, settings, node: nodeName }).value
  const { rulesets, signs } = parseSave(printSave(savedRuleset(sync), { date: 'x' }), 'node.save')
  return { node: nodeName, files: ['node.save'], rulesets, sets: new Map(), signs }
}

function nftablesOf(cluster: Cluster, { family, settings }: ClusterSketch): NodeRuleset {
  const slices = selectSlices(cluster, 'computed').value
  const { table } = nodeNftables(cluster, slices, { family, settings, node: nodeName }).value
  const nft = parseNftList(printList(rulesetOf([table])), 'node.nft').ruleset
  return { node: nodeName, files: ['node.nft'], rulesets: [], nft, sets: new Map(), signs: new Set() }
}

/** What the layers of rules and traffic policy find that is not of the Service itself. */
function driftIn(cluster: Cluster, sketch: ClusterSketch, ruleset: NodeRuleset): readonly string[] {
  const [service] = cluster.services.values()
  if (service === undefined) return ['no Service']
  const { settings } = sketch
  const told = { cluster, service, findings: [], settings, nodeRulesets: [ruleset] }
  return explainService(told)
    .layers.filter(({ layer }) => layer === 'rules' || layer === 'traffic-policy')
    .flatMap(({ findings }) => findings)
    .filter(({ code }) => !ofService.has(code))
    .map(({ code, message, evidence }) => `${code}: ${message}; ${evidence.join('; ')}`)
}

/** True of such a Service by what it asks for. */
const ofService = new Set([
  'explain.no-local-endpoint',
  'explain.local-nodes',
  'explain.answers-differ-by-source',
  'explain.node-port-shadows-host',
  'explain.client-address-lost',
  'explain.cascade',
])

test.each(['ipv4', 'ipv6'] as const)('iptables rules of a random %s Service are no drift', (family) => {
  for (const sketch of sketches(family, 40)) {
    const cluster = clusterOfSketch(sketch)
    expect(driftIn(cluster, sketch, iptablesOf(cluster, sketch)), `seed ${sketch.seed}`).toEqual([])
  }
})

test.each(['ipv4', 'ipv6'] as const)('nftables rules of a random %s Service are no drift', (family) => {
  for (const sketch of sketches(family, 40)) {
    const cluster = clusterOfSketch(sketch)
    expect(driftIn(cluster, sketch, nftablesOf(cluster, sketch)), `seed ${sketch.seed}`).toEqual([])
  }
})
