/** One measured step in a process of its own: prints milliseconds and peak memory as JSON. */
import { readFileSync } from 'node:fs'
import { selectSlices } from '#compile/endpointslices/select-slices'
import { printSave } from '#compile/iptables/print-save'
import { savedRuleset } from '#compile/iptables/render-iptables'
import { printList } from '#compile/nftables/print-list'
import { rulesetOf } from '#compile/nftables/ruleset'
import { nodeIptables } from '#compile/node/node-iptables'
import { nodeNftables } from '#compile/node/node-nftables'
import { buildCluster } from '#manifests/build-cluster'
import { parseManifestText } from '#manifests/parse-text'

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

process.stdout.write(JSON.stringify({ times, peakMegabytes: Math.round(process.resourceUsage().maxRSS / 1024) }))
