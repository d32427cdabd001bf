/** `portolan explain`: one Service layer by layer, and the sentence that says what is wrong. */
import { type Command, Option } from 'commander'
import { dump } from 'js-yaml'
import { Failure } from '#base/failure'
import type { NodeRuleset } from '#explain/explain-input'
import { explainService } from '#explain/explain-service'
import type { Explanation } from '#explain/explanation'
import { type ConntrackTable, parseConntrack } from '#explain/parse-conntrack'
import type { Cluster } from '#model/cluster'
import { readText } from '#sources/read-text'
import { isPartOfRuleset } from '#verify/withhold-verdict'
import type { CommandContext, ExitCode } from './command'
import { filesByNode } from './files-by-node'
import type { Io } from './io'
import { addObjectOptions, addProxyOptions, asText, collect, type ProxyOptions, settingsOf } from './options'
import { asDomain } from './pod-dns'
import { printExplanation } from './print-explanation'
import { printFindings } from './print-findings'
import { readRulesets, requireNode } from './read-inputs'
import { type ObjectFlags, readObjects } from './read-inputs-objects'
import { qualify, requireService } from './service-name'

type ExplainOptions = ObjectFlags &
  ProxyOptions & {
    readonly slices?: 'computed' | 'input'
    readonly ruleset?: readonly string[]
    readonly conntrack?: string
    readonly clusterDomain?: string
    readonly namespace?: string
    readonly output: 'text' | 'wide' | 'json' | 'yaml'
  }

export function addExplain(program: Command, { io, end }: CommandContext): void {
  const command = program
    .command('explain')
    .description(
      'say what is wrong with a Service: name, slices, pods, node rules, connection tracking, traffic policy',
    )
    .argument('<NS/NAME>', 'the Service')
  addProxyOptions(addObjectOptions(command))
    .addOption(
      new Option(
        '--slices <which>',
        'slices that kube-proxy is taken to read: by default those of the input where it has any of the Service, else computed',
      ).choices(['computed', 'input']),
    )
    .addOption(
      new Option(
        '-r, --ruleset <[node=]file>',
        'iptables-save or nft list ruleset of a node (and its ipset save); may repeat. A file named after a node is that node’s',
      ).argParser(collect(asText)),
    )
    .option('--conntrack <file>', 'the output of conntrack -L')
    .option(
      '--cluster-domain <domain>',
      'the zone of cluster DNS (default: that of the Corefile, else cluster.local)',
      asDomain,
    )
    .option('-n, --namespace <name>', 'where a bare NAME is (default: the namespace of the context, else default)')
    .addOption(new Option('-o, --output <format>', 'output').choices(['text', 'wide', 'json', 'yaml']).default('text'))
    .action(async (name: string, options: ExplainOptions) => {
      const isFamilyGiven = command.getOptionValueSource('family') !== 'default'
      end(await runExplain(io, { name, options, isFamilyGiven }))
    })
  describeNode(command)
}

/** Here a node is a choice among those that are looked at. */
function describeNode(command: Command): void {
  const node = command.options.find((option) => option.long === '--node')
  if (node !== undefined) node.description = 'look at this node alone; left out, at every node'
  const family = command.options.find((option) => option.long === '--family')
  if (family !== undefined) family.description = 'look at this address family alone; left out, at those of the Service'
}

type Asked = { readonly name: string; readonly options: ExplainOptions; readonly isFamilyGiven: boolean }

async function runExplain(io: Io, { name, options, isFamilyGiven }: Asked): Promise<ExitCode> {
  qualify(name)
  const { cluster, findings, namespace, isPartial } = await readObjects(io, options, { command: 'explain' })
  const key = qualify(name, options.namespace ?? namespace)
  requireService(cluster, key)
  requireNode(cluster, options.node)
  const service = cluster.services.get(key)
  if (service === undefined) return 2
  const { rulesets, told } = await readNodeRulesets(io, cluster, options)
  const conntrack = options.conntrack === undefined ? undefined : await readConntrack(io, options.conntrack)
  const explanation = explainService({
    cluster,
    service,
    findings,
    settings: settingsOf(options),
    nodeRulesets: rulesets,
    ...(options.slices !== undefined && { slices: options.slices }),
    ...(isFamilyGiven && { families: [options.family] }),
    ...(options.clusterDomain !== undefined && { clusterDomain: options.clusterDomain }),
    ...(options.node !== undefined && { node: options.node }),
    ...(conntrack !== undefined && { conntrack }),
  })
  const repeated = new Set(explanation.findings.map(({ code, message }) => `${code} ${message}`))
  printFindings(
    io,
    [...findings, ...told].filter(({ code, message }) => !repeated.has(`${code} ${message}`)),
  )
  print(io, explanation, options.output)
  const code = codeOf(explanation)
  return code === 0 && isPartial ? 3 : code
}

function readingOf(io: Io): { readonly stdin: Io['stdin']; readonly say: (sentence: string) => void } {
  return { stdin: io.stdin, say: (sentence) => io.err(`${sentence}\n`) }
}

function print(io: Io, explanation: Explanation, output: ExplainOptions['output']): void {
  const { service, sentence, layers, findings } = explanation
  const shape = { service, sentence, layers, findings }
  if (output === 'json') io.out(`${JSON.stringify(shape, undefined, 2)}\n`)
  else if (output === 'yaml') io.out(dump(shape, { noRefs: true }))
  else io.out(printExplanation(explanation, { isWide: output === 'wide', hasColour: io.isTerminal }))
}

/** An error found is bad news; an open question without one is `unknown`. */
function codeOf({ findings, isUndecided }: Explanation): ExitCode {
  if (findings.some(({ severity }) => severity === 'error')) return 1
  return isUndecided ? 3 : 0
}

type Read = {
  readonly rulesets: readonly NodeRuleset[]
  readonly told: Awaited<ReturnType<typeof readRulesets>>['findings']
}

/** Rules after a cut are missing, and so are the elements that `nft -t` leaves out. */
const lacking: ReadonlySet<string> = new Set(['ruleset.cut', 'nft.cut', 'nft.cut-json', 'nft.terse'])

/** Files of one node go together: its iptables variants, its families, its sets. */
async function readNodeRulesets(io: Io, cluster: Cluster, options: ExplainOptions): Promise<Read> {
  const byNode = filesByNode(cluster, options.ruleset ?? [], {
    flag: '--ruleset',
    ...(options.node !== undefined && { node: options.node }),
  })
  const rulesets: NodeRuleset[] = []
  const told: Read['told'][number][] = []
  for (const [node, files] of byNode) {
    if (options.node !== undefined && node !== options.node) continue
    const read = await readRulesets(io, files)
    told.push(...read.findings)
    const { findings, ...rules } = read
    const isPart = rules.nft !== undefined && rules.rulesets.length === 0 && isPartOfRuleset(rules.nft)
    const isIncomplete = isPart || findings.some(({ code }) => lacking.has(code))
    rulesets.push({ ...rules, ...(node !== '' && { node }), files, ...(isIncomplete && { isIncomplete }) })
  }
  return { rulesets, told }
}

async function readConntrack(io: Io, path: string): Promise<ConntrackTable> {
  const text = await readText(path, readingOf(io))
  const table = parseConntrack(text, path === '-' ? 'standard input' : path)
  if (table.entries.length > 0 || table.findings.length === 0) return table
  const name = path === '-' ? 'standard input' : path
  throw new Failure(
    'input.unreadable',
    `${name} holds no tracked connection; it should be the output of conntrack -L (not -o xml)`,
  )
}
