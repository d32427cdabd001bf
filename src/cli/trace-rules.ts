/** The rules that `portolan trace` walks: read from files, or computed from objects. */
import type { Finding } from '#base/finding'
import { type Family, familyOf, printIp } from '#base/ip'
import { parseSave } from '#compile/iptables/parse-save'
import { printSave } from '#compile/iptables/print-save'
import { savedRuleset } from '#compile/iptables/render-iptables'
import { printAssumption } from '#compile/node/assumptions'
import { nodeIptables } from '#compile/node/node-iptables'
import type { ProxySettings } from '#compile/services/proxy-settings'
import type { Cluster } from '#model/cluster'
import type { EndpointSlice } from '#model/endpoint-slice'
import { nodeIps } from '#model/node'
import { findStaleEndpoints } from '#verify/find-stale-endpoints'
import { verifyFinding } from '#verify/findings'
import type { Io } from './io'
import { settingsOf } from './options'
import { type ClusterInput, type RulesetInput, readRulesets, requireNode } from './read-inputs'
import type { TraceOptions } from './trace-usage'

export type TraceRules = Omit<RulesetInput, 'findings'> & {
  readonly nodeIps: readonly string[]
  readonly findings: readonly Finding[]
  readonly assumed: readonly string[]
  /** What the rules are, when they were computed: a trace's title says so. */
  readonly computed?: string
}

/** With files and objects, the objects tell the node's addresses and which endpoints there are. */
export async function readTraceRules(
  io: Io,
  options: TraceOptions,
  { input, families }: { readonly input: ClusterInput | undefined; readonly families: readonly Family[] },
): Promise<TraceRules> {
  const given = (options.nodeIp ?? []).map(printIp)
  const read = options.ruleset === undefined ? undefined : await readRulesets(io, options.ruleset)
  if (input === undefined) return { ...(read ?? noRules), nodeIps: given, assumed: [] }
  requireNode(input.cluster, options.node)
  const node = takeNode(input.cluster, options.node)
  const own = [...given, ...ipsOf(input.cluster, node.name)]
  if (read === undefined) return { ...computeRules(input, { options, families, node }), nodeIps: own }
  const stale = findStaleEndpoints(read, input.slices)
  return {
    ...read,
    nodeIps: own,
    findings: [...input.findings, ...node.findings, ...read.findings, ...stale],
    assumed: [],
  }
}

const noRules: RulesetInput = { rulesets: [], signs: new Set(), sets: new Map(), findings: [] }

type Taken = { readonly name: string | undefined; readonly findings: readonly Finding[] }

/** The only node of an input is the one that is meant. */
function takeNode(cluster: Cluster, name: string | undefined): Taken {
  const [only, second] = cluster.nodes.keys()
  if (name !== undefined || only === undefined || second !== undefined) return { name, findings: [] }
  const message = `no node was named: taken for ${only}, the only one of the input`
  return { name: only, findings: [verifyFinding('trace.only-node', message)] }
}

type Computing = { readonly options: TraceOptions; readonly families: readonly Family[]; readonly node: Taken }

function computeRules(
  { cluster, slices, findings: told }: ClusterInput,
  { options, families, node }: Computing,
): Omit<TraceRules, 'nodeIps'> {
  const results = families.map((family) => computeFamily(cluster, slices, { options, family, node }))
  const findings = new Map<string, Finding>()
  for (const finding of [...told, ...node.findings, ...results.flatMap((result) => result.findings)]) {
    findings.set(JSON.stringify(finding), finding)
  }
  return {
    rulesets: results.flatMap((result) => result.rulesets),
    signs: new Set(),
    sets: new Map(),
    findings: [...findings.values()],
    assumed: [...new Set(results.flatMap((result) => result.assumed))],
    computed: `rules computed for ${node.name === undefined ? 'a node without endpoints of its own' : `node ${node.name}`}; lines are those of \`portolan iptables\``,
  }
}

type One = { readonly options: TraceOptions; readonly family: Family; readonly node: Taken }

function computeFamily(cluster: Cluster, slices: readonly EndpointSlice[], { options, family, node }: One) {
  const { value, findings } = nodeIptables(cluster, slices, {
    family,
    settings: settingsOf(options),
    ...(node.name === undefined ? {} : { node: node.name }),
  })
  const assumed = value.assumptions.map(printAssumption)
  // `portolan iptables` prints a line for each assumption before the rules.
  const text = `${'#\n'.repeat(assumed.length)}${printSave(savedRuleset(value.sync), { date: 'x' })}`
  const parsed = parseSave(text, 'computed rules')
  const unknown = value.plan.ports.length === 0 ? [] : noteDetection(value.plan.settings, family)
  return { rulesets: parsed.rulesets, assumed, findings: [...findings, ...parsed.findings, ...unknown] }
}

/** kube-proxy masquerades what comes from outside the pod range: without one it cannot tell, and masquerades nothing. */
function noteDetection({ detectLocal, masqueradeAll }: ProxySettings, family: Family): readonly Finding[] {
  if (masqueradeAll || detectLocal.kind !== 'ClusterCIDR') return []
  if (detectLocal.cidrs.some((cidr) => familyOf(cidr) === family)) return []
  const message =
    'the range of pod addresses is not known: whether traffic to ClusterIPs from outside of it is masqueraded cannot be told'
  return [verifyFinding('trace.no-cluster-cidr', message, 'say --cluster-cidr, as kube-proxy has it')]
}

function ipsOf(cluster: Cluster, name: string | undefined): readonly string[] {
  const node = name === undefined ? undefined : cluster.nodes.get(name)
  return node === undefined ? [] : nodeIps(node)
}
