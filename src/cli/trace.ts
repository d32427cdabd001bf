/** `portolan trace`: where a packet goes in a node's rules, and why. */
import { type Command, Option } from 'commander'
import { dump } from 'js-yaml'
import { Failure } from '#base/failure'
import { type Ip, printEndpoint, printIp } from '#base/ip'
import type { Packet } from '#model/packet'
import type { VerdictKind } from '#model/trace'
import { printTrace } from '#trace/print-trace'
import { traceRuleset } from '#trace/trace-ruleset'
import { recogniseNode } from '#verify/recognise-node'
import { withholdVerdict } from '#verify/withhold-verdict'
import type { CommandContext, ExitCode } from './command'
import type { Io } from './io'
import {
  addObjectOptions,
  addProxyOptions,
  addSlicesOption,
  asInterface,
  asIp,
  asNumber,
  asText,
  collect,
} from './options'
import { printFindings } from './print-findings'
import { type ClusterInput, readClusterInput } from './read-inputs'
import { findCluster, meansCluster } from './read-inputs-objects'
import { addressOf } from './service-address'
import { knownOf, markAssumed, traceAll } from './trace-all'
import { readTraceRules, type TraceRules } from './trace-rules'
import { checkFamily, checkUsage, type IsGiven, packetOf, type TraceOptions } from './trace-usage'

export function addTrace(program: Command, { io, end }: CommandContext): void {
  const command = program
    .command('trace')
    .description(
      'follow a packet through a node’s rules of iptables and nftables: every hop, the verdict, the targets and their shares',
    )
  command
    .addOption(
      new Option(
        '-r, --ruleset <file>',
        'iptables-save or nft list ruleset of a node (or - ), and ipset save; may repeat',
      ).argParser(collect(asText)),
    )
    .option(
      '--to <ip[:port]>',
      'the destination; [ip]:port for IPv6; with --from also NAMESPACE/NAME[:PORT] of a Service',
    )
    .option('--all', 'every destination that the rules translate or refuse, as a table')
    .addOption(
      new Option('--proto <protocol>', 'protocol').choices(['tcp', 'udp', 'sctp', 'icmp', 'icmpv6']).default('tcp'),
    )
    .option('--source <ip[:port]>', 'the source; left out, both sides of each rule that asks for it are shown')
    .option('--in-interface <name>', 'the interface it comes in through', asInterface)
    .option('--out-interface <name>', 'the interface it leaves through', asInterface)
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
  addProxyOptions(addSlicesOption(addObjectOptions(command)))
  command.action(async (options: TraceOptions) => {
    end(await runTrace(io, options, (name) => command.getOptionValueSource(name) === 'cli'))
  })
}

function asMark(text: string): number {
  const value = /^(0x[0-9a-fA-F]{1,8}|\d{1,10})$/.test(text) ? Number(text) : Number.NaN
  if (value <= 0xffffffff) return value
  throw new Failure('usage.bad-argument', `--mark: "${text}" is not a mark; write 0x4000 or a number below 4294967296`)
}

async function runTrace(io: Io, options: TraceOptions, isGiven: IsGiven): Promise<ExitCode> {
  checkUsage(options, isGiven)
  const input = await readInput(io, options)
  if (options.to === undefined) return traceAll(io, { options, input, isGiven })
  const packet = packetOf(options, addressOf(options.to, { options, input }))
  const { family } = packet.destination
  checkFamily(options, family, isGiven)
  return traceOne(io, options, { packet, rules: await readTraceRules(io, options, { input, families: [family] }) })
}

/** Rules of a file need no objects; computed ones rest on them. */
async function readInput(io: Io, options: TraceOptions): Promise<ClusterInput | undefined> {
  if (options.from === undefined && !meansCluster(options)) {
    if (options.ruleset !== undefined) return undefined
    if ((await findCluster(options)) === undefined) throw noRules()
  }
  return readClusterInput(io, options, { command: 'trace' })
}

function noRules(): Failure {
  return new Failure(
    'usage.bad-argument',
    'no rules are named; add --ruleset with the output of iptables-save, or objects to compute them from: --from FILE, or their cluster with --kubeconfig',
  )
}

type One = { readonly packet: Packet; readonly rules: TraceRules }

function traceOne(io: Io, options: TraceOptions, { packet, rules }: One): ExitCode {
  const known = knownOf(rules)
  const { value: traced, findings } = traceRuleset({
    ...known,
    packet,
    ...(options.nodeLocal === true ? { isNodeLocal: true } : {}),
    ...(options.localSource === true ? { isLocalSource: true } : {}),
    ...(options.simulate === undefined ? {} : { simulate: { count: options.simulate, seed: options.seed } }),
  })
  const told = [...rules.findings, ...recogniseNode(rules)]
  const codes = new Set(told.map((finding) => finding.code))
  const family = packet.destination.family
  const value = withholdVerdict(markAssumed(traced, rules.assumed), { ...known, family, codes })
  printFindings(io, [...told, ...findings])
  const title = `${titleOf(packet)}${rules.computed === undefined ? '' : `, in ${rules.computed}`}`
  if (options.output === 'json') io.out(`${JSON.stringify(value, undefined, 2)}\n`)
  else if (options.output === 'yaml') io.out(dump(value))
  else io.out(printTrace(value, { title, isWide: options.output === 'wide' }))
  return codeOf(value.verdict.kind)
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
