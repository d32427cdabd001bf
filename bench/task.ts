/** One measured step in a process of its own: prints milliseconds and peak memory as JSON. */
import { readFileSync } from 'node:fs'
import { type Ip, parseIp } from '#base/ip'
import { dumpMaps } from '#compile/cilium/dump-maps'
import { defaultMaglevSeed, maglevTable, parseMaglevSeed } from '#compile/cilium/maglev'
import { nodeMaps } from '#compile/cilium/node-maps'
import { selectSlices } from '#compile/endpointslices/select-slices'
import { printSave } from '#compile/iptables/print-save'
import { savedRuleset } from '#compile/iptables/render-iptables'
import { printList } from '#compile/nftables/print-list'
import { rulesetOf } from '#compile/nftables/ruleset'
import { nodeIptables } from '#compile/node/node-iptables'
import { nodeNftables } from '#compile/node/node-nftables'
import { emptyDirectory } from '#flows/directory'
import { directoryOfCluster } from '#flows/directory-of-cluster'
import type { ObservedFlow } from '#flows/observed-flow'
import { gatherFlows, startGathering } from '#generate/gather-flows'
import { generatePolicies } from '#generate/generate-policies'
import { buildCluster } from '#manifests/build-cluster'
import { parseManifestText } from '#manifests/parse-text'
import type { Cluster } from '#model/cluster'
import type { EndpointSlice } from '#model/endpoint-slice'
import type { Pod } from '#model/pod'
import { prepareCilium } from '#trace/cilium/cilium-net'
import { walkCilium } from '#trace/cilium/walk-cilium'
import { journeyWorld } from '#trace/journey/journey-world'
import { walkJourney } from '#trace/journey/walk-journey'
import { decide } from '#trace/policy/decide'
import { kubernetesSemantics } from '#trace/policy/k8s-semantics'
import { classOf, type PolicyWorld, preparePolicies } from '#trace/policy/world'
import { auditFlows, reportAudit, startAudit } from '#verify/policy/audit'
import { buildMatrix } from '#verify/policy/build-matrix'
import { printMatrixText } from '#verify/policy/print-matrix'
import { bigFlows } from './big-flows'

const [step = '', file = ''] = process.argv.slice(2)
const text = readFileSync(file, 'utf8')
const times: Record<string, number> = {}

function timed<T>(name: string, work: () => T): T {
  const start = performance.now()
  const value = work()
  times[name] = performance.now() - start
  return value
}

if (step === 'json') timed('parse', () => JSON.parse(text))
else if (step === 'rules') {
  const raw = timed('parse', () => parseManifestText(text, 'cluster.json').value)
  const cluster = timed('objects', () => buildCluster(raw).value)
  const slices = timed('slices', () => selectSlices(cluster, 'computed').value)
  const settings = { detectLocal: { kind: 'ClusterCIDR', cidrs: ['10.16.0.0/12'] } } as const
  const rules = timed('rules', () => nodeIptables(cluster, slices, { family: 'ipv4', node: 'node-1', settings }).value)
  timed('print', () => printSave(savedRuleset(rules.sync), { date: 'x' }))
  const tables = timed(
    'nftRules',
    () => nodeNftables(cluster, slices, { family: 'ipv4', node: 'node-1', settings }).value,
  )
  timed('nftPrint', () => printList(rulesetOf([tables.table])))
}

if (step === 'maps') {
  const raw = timed('parse', () => parseManifestText(text, 'cluster.json').value)
  const cluster = timed('objects', () => buildCluster(raw).value)
  const slices = timed('slices', () => selectSlices(cluster, 'computed').value)
  const maps = timed('maps', () => nodeMaps(cluster, { node: 'node-1', slices }))
  timed('dump', () => dumpMaps(maps))
  timed('maglev', maglevTables)
  const walks = pathsBetween(cluster, slices)
  walks()
  const count = timed('paths', walks)
  times.path = (times.paths ?? 0) / count
}

/** Of each Service one walk, and so for the first time; the first half warms up. */
if (step === 'journeys') {
  const cluster = buildCluster(parseManifestText(text, 'cluster.json').value).value
  const slices = selectSlices(cluster, 'computed').value
  for (const datapath of ['iptables', 'nftables'] as const) {
    const all = journeysTo(cluster, slices, datapath)
    const half = [...all.slice(all.length / 2)].sort((a, b) => a - b)
    times[datapath] = half[Math.floor(half.length / 2)] ?? Number.NaN
  }
}

if (step === 'policies') {
  const cluster = timed('objects', () => buildCluster(parseManifestText(text, 'policies.json').value).value)
  const world = timed('world', () => preparePolicies(cluster, { semantics: kubernetesSemantics }))
  const { rows } = timed('matrix', () => buildMatrix(world))
  timed('print', () => printMatrixText(rows))
  const verdicts = verdictsOf(world, cluster)
  verdicts()
  timed('verdicts', verdicts)
}

if (step === 'flows') {
  const cluster = buildCluster(parseManifestText(text, 'policies.json').value).value
  let audit = startAudit(preparePolicies(cluster, { semantics: kubernetesSemantics }), directoryOfCluster(cluster))
  overFlows('audit', (flows) => {
    audit = auditFlows(audit, flows)
  })
  timed('report', () => reportAudit(audit))
}

if (step === 'generate') {
  const gathering = startGathering(emptyDirectory)
  overFlows('gather', (flows) => gatherFlows(gathering, flows))
  timed('generate', () => generatePolicies(gathering, { kind: 'networkpolicy', choice: {} }))
}

/** Making the rows is not counted. */
function overFlows(name: string, take: (flows: readonly ObservedFlow[]) => void): void {
  let total = 0
  for (const flows of bigFlows(1_000_000)) {
    const start = performance.now()
    take(flows)
    total += performance.now() - start
  }
  times[name] = total
}

/** A thousand Services of ten backends each, none of which two share. */
function maglevTables(): void {
  const options = { size: 16381, seed: parseMaglevSeed(defaultMaglevSeed) ?? new Uint8Array(12) }
  for (let service = 0; service < 1000; service++) {
    const backends = Array.from({ length: 10 }, (_, at) => {
      const id = 10 * service + at
      return { id, address: `10.${16 + (id >> 16)}.${(id >> 8) & 255}.${id & 255}:8080/TCP`, weight: 100 }
    })
    maglevTable(backends, options)
  }
}

/** Every pod of one node to ten of another, each with its answer; loads both nodes' maps. */
function pathsBetween(cluster: Cluster, slices: readonly EndpointSlice[]): () => number {
  const net = prepareCilium(cluster, { slices })
  const on = (name: string): readonly Pod[] => [...cluster.pods.values()].filter(({ nodeName }) => nodeName === name)
  const ipOf = ({ podIPs }: Pod): Ip => parseIp(podIPs[0] ?? '') ?? { family: 'ipv4', words: [0] }
  const [sources, targets] = [on('node-1'), on('node-2').slice(0, 10)]
  return () => {
    let count = 0
    for (const pod of sources) {
      for (const target of targets) {
        walkCilium(net, {
          source: { ip: ipOf(pod), pod, node: 'node-1' },
          destination: { ip: ipOf(target), pod: target, node: 'node-2' },
          protocol: 'TCP',
          sourcePort: 43210,
          port: 8080,
          isReplyWanted: true,
        })
        count++
      }
    }
    return count
  }
}

/** Milliseconds of a pod to each Service and back, its rules of the sending node computed for it. */
function journeysTo(
  cluster: Cluster,
  slices: readonly EndpointSlice[],
  datapath: 'iptables' | 'nftables',
): readonly number[] {
  const settings = { detectLocal: { kind: 'ClusterCIDR', cidrs: ['10.16.0.0/12'] } } as const
  const world = journeyWorld({ cluster, slices, datapath, settings, seed: 1 })
  const pods = [...cluster.pods.values()].filter(({ nodeName }) => nodeName === 'node-1')
  const any: Ip = { family: 'ipv4', words: [0] }
  return [...cluster.services.values()].map(({ clusterIPs }, index) => {
    const pod = pods[index % pods.length]
    const start = performance.now()
    walkJourney(world, {
      source: { ip: parseIp(pod?.podIPs[0] ?? '') ?? any, ...(pod !== undefined && { pod }), node: 'node-1' },
      destination: { ip: parseIp(clusterIPs[0] ?? '') ?? any },
      protocol: 'TCP',
      sourcePort: 43210,
      port: 80,
      isReplyWanted: true,
    })
    return performance.now() - start
  })
}

/** A million single verdicts, over pods and ports in turn. */
function verdictsOf(world: PolicyWorld, cluster: Cluster): () => number {
  const ids = [...cluster.pods.values()].map((pod) => classOf(world, { kind: 'pod', pod }).id)
  return () => {
    let allowed = 0
    for (let at = 0; at < 1_000_000; at++) {
      const source = ids[at % ids.length] ?? 0
      const target = ids[(at * 7 + 3) % ids.length] ?? 0
      const protocol = at % 2 === 0 ? 'TCP' : 'UDP'
      if (decide(world, { source, target, protocol, port: 8000 + (at % 200) }) === 'allowed') allowed++
    }
    return allowed
  }
}

process.stdout.write(JSON.stringify({ times, peakMegabytes: Math.round(process.resourceUsage().maxRSS / 1024) }))
