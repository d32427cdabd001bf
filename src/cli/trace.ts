/** `portolan trace`: where a packet goes in a node's rules, and why. */
import { type Command, Option } from 'commander'
import { dump } from 'js-yaml'
import { Failure } from '#base/failure'
import type { Finding } from '#base/finding'
import { explainBadIp, type Ip, parseEndpoint, printEndpoint, printIp } from '#base/ip'
import { listOf } from '#base/text'
import { parseSave } from '#compile/iptables/parse-save'
import { printSave } from '#compile/iptables/print-save'
import { savedRuleset } from '#compile/iptables/render-iptables'
import { printAssumption } from '#compile/node/assumptions'
import { nodeIptables } from '#compile/node/node-iptables'
import type { Cluster } from '#model/cluster'
import { nodeIps } from '#model/node'
import type { ConnectionState, Packet, PacketProtocol } from '#model/packet'
import type { Trace, VerdictKind } from '#model/trace'
import { printTrace } from '#trace/print-trace'
import { type RulesetTraceInput, traceRuleset } from '#trace/trace-ruleset'
import { recogniseNode } from '#verify/recognise-node'
import { surveyServices } from '#verify/survey-services'
import { withholdVerdict } from '#verify/withhold-verdict'
import type { CommandContext, ExitCode } from './command'
import type { Io } from './io'
import {
  addFromOption,
  addProxyOptions,
  addSlicesOption,
  asIp,
  asNumber,
  asText,
  collect,
  type FromOptions,
  type ProxyOptions,
  settingsOf,
} from './options'
import { printFindings } from './print-findings'
import { printSurvey, surveyCode } from './print-survey'
import { type RulesetInput, readClusterInput, readRulesets, requireNode } from './read-inputs'

type TraceOptions = FromOptions &
  ProxyOptions & {
    readonly ruleset?: readonly string[]
    readonly to?: string
    readonly all?: boolean
    readonly proto: 'tcp' | 'udp' | 'sctp' | 'icmp' | 'icmpv6'
    readonly source?: string
    readonly inInterface?: string
    readonly outInterface?: string
    readonly nodeLocal?: boolean
    readonly localSource?: boolean
    readonly state?: ConnectionState
    readonly mark?: number
    readonly nodeIp?: readonly Ip[]
    readonly simulate?: number
    readonly seed: number
    readonly output: 'text' | 'wide' | 'json' | 'yaml'
  }

export function addTrace(program: Command, { io, end }: CommandContext): void {
  const command = program
    .command('trace')
    .description(
      'follow a packet through a node’s iptables rules: every hop, the verdict, the targets and their shares',
    )
  command
    .addOption(
      new Option('-r, --ruleset <file>', 'iptables-save of a node (or - ), and ipset save; may repeat').argParser(
        collect(asText),
      ),
    )
    .option('--to <ip[:port]>', 'the destination; [ip]:port for IPv6')
    .option('--all', 'every destination that the rules translate or refuse, as a table')
    .addOption(
      new Option('--proto <protocol>', 'protocol').choices(['tcp', 'udp', 'sctp', 'icmp', 'icmpv6']).default('tcp'),
    )
    .option('--source <ip[:port]>', 'the source; left out, both sides of each rule that asks for it are shown')
    .option('--in-interface <name>', 'the interface it comes in through')
    .option('--out-interface <name>', 'the interface it leaves through')
    .option('--node-local', 'the destination is one of this node’s own addresses')
    .option('--local-source', 'a process on the node sends it')
    .addOption(
      new Option('--state <state>', 'connection state').choices([
        'NEW',
        'ESTABLISHED',
        'RELATED',
        'INVALID',
        'UNTRACKED',
      ]),
    )
    .option('--mark <mark>', 'the packet mark it has already, such as 0x4000', asMark)
    .addOption(new Option('--node-ip <ip>', 'an address of this node; may repeat').argParser(collect(asIp)))
    .option('--simulate <count>', 'draw that many connections', asNumber(1, 100_000_000))
    .option('--seed <seed>', 'seed of the draws', asNumber(0, 4294967295), 1)
    .addOption(new Option('-o, --output <format>', 'output').choices(['text', 'wide', 'json', 'yaml']).default('text'))
  addProxyOptions(addSlicesOption(addFromOption(command))).action(async (options: TraceOptions) => {
    end(await runTrace(io, options))
  })
}

function asMark(text: string): number {
  const value = /^(0x[0-9a-fA-F]{1,8}|\d{1,10})$/.test(text) ? Number(text) : Number.NaN
  if (value <= 0xffffffff) return value
  throw new Failure('usage.bad-argument', `--mark: "${text}" is not a mark; write 0x4000 or a number below 4294967296`)
}

async function runTrace(io: Io, options: TraceOptions): Promise<ExitCode> {
  checkUsage(options)
  const packet = options.to === undefined ? undefined : packetOf(options, options.to)
  const {
    rules,
    nodeIps: own,
    findings,
    assumed = [],
  } = await readRules(io, options, packet?.destination.family ?? options.family)
  const known = {
    rulesets: rules.rulesets,
    ...(rules.nft === undefined ? {} : { nft: rules.nft }),
    sets: rules.sets,
    ...(own.length === 0 ? {} : { nodeIps: own }),
  }
  const told = [...findings, ...rules.findings, ...recogniseNode(rules)]
  if (packet === undefined) {
    const rows = surveyServices(known)
    printFindings(io, told)
    printSurvey(io, rows, options.output)
    return surveyCode(rows)
  }
  return traceOne(io, options, { ...known, packet, told, assumed })
}

type One = Pick<RulesetTraceInput, 'rulesets' | 'nft' | 'sets' | 'nodeIps'> & {
  readonly packet: Packet
  readonly told: readonly Finding[]
  readonly assumed: readonly string[]
}

function traceOne(io: Io, options: TraceOptions, { packet, told, assumed, ...known }: One): ExitCode {
  const { value: traced, findings } = traceRuleset({
    ...known,
    packet,
    ...(options.nodeLocal === true ? { isNodeLocal: true } : {}),
    ...(options.localSource === true ? { isLocalSource: true } : {}),
    ...(options.simulate === undefined ? {} : { simulate: { count: options.simulate, seed: options.seed } }),
  })
  const codes = new Set(told.map((finding) => finding.code))
  const family = packet.destination.family
  const value = withholdVerdict(markAssumed(traced, assumed), { ...known, family, codes })
  printFindings(io, [...told, ...findings])
  if (options.output === 'json') io.out(`${JSON.stringify(value, undefined, 2)}\n`)
  else if (options.output === 'yaml') io.out(dump(value))
  else io.out(printTrace(value, { title: titleOf(packet), isWide: options.output === 'wide' }))
  return codeOf(value.verdict.kind)
}

/** An answer from computed rules says which of their Services rest on assumed values. */
function markAssumed(trace: Trace, assumed: readonly string[]): Trace {
  if (assumed.length === 0) return trace
  const reason = { code: 'trace.assumed', sentence: `the rules rest on assumed values: ${listOf(assumed, 5)}` }
  const [first, ...rest] = trace.verdict.because
  return { ...trace, verdict: { ...trace.verdict, because: [first, ...rest, reason] } }
}

function codeOf(kind: VerdictKind): ExitCode {
  if (kind === 'allowed') return 0
  return kind === 'unknown' ? 3 : 1
}

function titleOf(packet: Packet): string {
  const place = (ip: Ip, port: number | undefined): string =>
    port === undefined ? printIp(ip) : printEndpoint(printIp(ip), port)
  const from = packet.source === undefined ? '' : ` from ${place(packet.source, packet.sourcePort)}`
  return `${packet.protocol}${from} to ${place(packet.destination, packet.destinationPort)}`
}

function checkUsage(options: TraceOptions): void {
  const usage = (sentence: string): Failure => new Failure('usage.bad-argument', sentence)
  if (options.ruleset === undefined && options.from === undefined) {
    throw usage(
      'no rules are named; add --ruleset with the output of iptables-save, or --from with objects to compute them from',
    )
  }
  if ((options.to === undefined) === (options.all !== true)) {
    throw usage('say either which packet with --to IP:PORT, or all of them with --all')
  }
  if (options.localSource === true && options.inInterface !== undefined) {
    throw usage(
      '--local-source is a process of the node: its packets come in through no interface; leave --in-interface out',
    )
  }
}

function packetOf(options: TraceOptions, to: string): Packet {
  const destination = parsePlace('--to', to)
  const source = options.source === undefined ? undefined : parsePlace('--source', options.source)
  const isIcmp = options.proto === 'icmp' || options.proto === 'icmpv6'
  if (!isIcmp && destination.port === undefined) {
    throw new Failure(
      'usage.bad-argument',
      `--to ${to} names no port; write ${printEndpoint(printIp(destination.ip), 80)}, or --proto icmp for a ping`,
    )
  }
  if (source !== undefined && source.ip.family !== destination.ip.family) {
    throw new Failure(
      'usage.bad-argument',
      `--source ${options.source} and --to ${to} are of different address families`,
    )
  }
  const protocol: PacketProtocol = isIcmp ? (destination.ip.family === 'ipv4' ? 'icmp' : 'icmpv6') : options.proto
  return {
    destination: destination.ip,
    protocol,
    ...(isIcmp || destination.port === undefined ? {} : { destinationPort: destination.port }),
    ...(source === undefined ? {} : { source: source.ip }),
    ...(source?.port === undefined ? {} : { sourcePort: source.port }),
    ...(options.inInterface === undefined ? {} : { inInterface: options.inInterface }),
    ...(options.outInterface === undefined ? {} : { outInterface: options.outInterface }),
    ...(options.mark === undefined ? {} : { mark: options.mark }),
    ...(options.state === undefined ? {} : { state: options.state }),
    ...(isIcmp ? { icmp: { type: protocol === 'icmp' ? 8 : 128, code: 0 } } : {}),
  }
}

function parsePlace(flag: string, text: string): { readonly ip: Ip; readonly port?: number } {
  const parsed = parseEndpoint(text)
  if (parsed !== undefined) return parsed
  const address = /^\[([^\]]*)\]/.exec(text)?.[1] ?? (text.split(':').length === 2 ? (text.split(':')[0] ?? '') : text)
  const port = /^(?:\[[^\]]*\]|[^:]*):(.*)$/.exec(text)?.[1]
  const isPortBad = port !== undefined && !(/^\d+$/.test(port) && Number(port) <= 65535) && !text.includes('::')
  const why = isPortBad ? `"${port}" is not a port from 0 to 65535` : explainBadIp(address)
  throw new Failure('usage.bad-argument', `${flag} ${text}: ${why}; write IP:PORT, or [IP]:PORT for IPv6`)
}

type Rules = {
  readonly rules: RulesetInput
  readonly nodeIps: readonly string[]
  readonly findings: readonly Finding[]
  readonly assumed?: readonly string[]
}

/** Rules come from files, or are computed from objects; with both, the objects tell the node's addresses alone. */
async function readRules(io: Io, options: TraceOptions, family: 'ipv4' | 'ipv6'): Promise<Rules> {
  const given = (options.nodeIp ?? []).map(printIp)
  const read = options.ruleset === undefined ? undefined : await readRulesets(io, options.ruleset)
  if (options.from === undefined) return { rules: read ?? noRules, nodeIps: given, findings: [] }
  const input = await readClusterInput(io, options)
  requireNode(input.cluster, options.node)
  const own = [...given, ...ipsOf(input.cluster, options.node)]
  if (read !== undefined) return { rules: read, nodeIps: own, findings: input.findings }
  const { value, findings } = nodeIptables(input.cluster, input.slices, {
    family,
    settings: settingsOf(options),
    ...(options.node === undefined ? {} : { node: options.node }),
  })
  const computed = parseSave(printSave(savedRuleset(value.sync), { date: 'x' }), 'computed rules')
  const assumed = value.assumptions.map(printAssumption)
  return { rules: { ...computed, sets: new Map() }, nodeIps: own, findings: [...input.findings, ...findings], assumed }
}

const noRules: RulesetInput = { rulesets: [], signs: new Set(), sets: new Map(), findings: [] }

function ipsOf(cluster: Cluster, name: string | undefined): readonly string[] {
  const node = name === undefined ? undefined : cluster.nodes.get(name)
  return node === undefined ? [] : nodeIps(node)
}
