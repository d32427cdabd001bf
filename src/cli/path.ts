/** `portolan path`: one packet's whole way through the cluster, node by node, and its answer's way back. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { Failure } from '#base/failure'
import { parseEndpoint, printEndpoint, printIp } from '#base/ip'
import { type CiliumVersion, ciliumVersions, defaultCiliumVersion } from '#model/cilium-version'
import type { Cluster } from '#model/cluster'
import type { Leg, Walk, WalkInner, WalkProtocol } from '#model/walk'
import { readText } from '#sources/read-text'
import { drawWalk } from '#trace/draw-walk'
import { tellUnmetBackend } from '#trace/journey/unmet-backend'
import { printWalk, walkJson } from '#trace/print-walk'
import type { CommandContext, ExitCode } from './command'
import type { Io } from './io'
import { asDevices } from './maps-options'
import { addObjectOptions, addSlicesOption, asNamespace, asNumber, asText, collect, type FromOptions } from './options'
import { type Datapath, datapaths, type GivenState, type PathAsked, type Walker } from './path-asked'
import { type PathEnds, readEnds } from './path-ends'
import { addJourneyOptions, type JourneyOptions, readKubeProxy } from './path-kube-proxy'
import { printFindings } from './print-findings'
import { type ClusterInput, readClusterInput, requireNode } from './read-inputs'
import { ciliumAgents, ciliumPolicies, ciliumRoutes } from './read-inputs-kinds'
import type { ObjectsWanted } from './read-inputs-objects'

type PathOptions = FromOptions &
  JourneyOptions & {
    readonly datapath: Datapath
    readonly port?: string
    readonly proto: WalkProtocol
    readonly sport: number
    readonly node?: string
    readonly backend?: string
    readonly cilium: CiliumVersion
    readonly device?: PathAsked['devices']
    readonly reply?: boolean
    readonly about?: WalkInner
    readonly state?: readonly string[]
    readonly flow?: string
    readonly namespace?: string
    readonly time?: string
    readonly output: 'text' | 'wide' | 'json' | 'mermaid' | 'hubble'
  }

/** Each datapath's walker, loaded when it is asked for. Walkers of kube-proxy's nodes hang here. */
const walkers: Readonly<Record<Datapath, () => Promise<Walker>>> = {
  cilium: async () => (await import('./path-cilium')).walkPathOfCilium,
  iptables: loadJourney,
  nftables: loadJourney,
}

async function loadJourney(): Promise<Walker> {
  const { walkKubeProxy } = await import('./path-journey')
  return walkKubeProxy
}

export function addPath(program: Command, { io, end }: CommandContext): void {
  const command = program
    .command('path')
    .description('walk a packet through the cluster: every hook, look-up, decision and rewrite, node by node')
    .argument('[SOURCE]', 'NS/POD, NS/KIND/NAME, node/NAME, an address, or internet')
    .argument('[TARGET[:PORT]]', 'the same, or NS/svc/NAME')
  addJourneyOptions(addSlicesOption(addObjectOptions(command)))
    .addOption(new Option('--datapath <which>', 'what the nodes run').choices([...datapaths]).default('cilium'))
    .option('--port <port>', 'the number or name of the port; of ICMP the type, or type/code')
    .addOption(
      new Option('--proto <protocol>', 'tcp, udp, sctp, icmp or icmpv6').argParser(asProtocol).default('TCP', 'tcp'),
    )
    .option('--sport <port>', 'the source port; of ICMP the identifier', asNumber(0, 65535), usualPort)
    .option('--node <name>', 'the node at which a packet from outside comes in')
    .option('--backend <ip:port>', 'the backend to follow, where the datapath chooses at random', asBackend)
    .addOption(
      new Option('--cilium <version>', 'names, layouts and semantics of this version')
        .choices([...ciliumVersions])
        .default(defaultCiliumVersion),
    )
    .option(
      '--device <node:name=ip[,ip]>',
      'addresses of a device of a node, beyond what its Node object tells; may repeat',
      asNodeDevice,
    )
    .option('--reply', 'walk the answer back, too')
    .option(
      '--about <packet>',
      'the packet that an error of ICMP is about, as in tcp,192.168.1.10:34567,8.8.8.8:443',
      asInner,
    )
    .addOption(
      new Option(
        '--state <[node=]file>',
        'rows of connection tracking and NAT: cilium-dbg bpf ct|nat list, conntrack -L; may repeat',
      ).argParser(collect(asText)),
    )
    .option('--flow <file>', 'explain recorded flows instead: hubble observe -o json')
    .option('--time <time>', 'the time that -o hubble writes (default: now)', asTime)
    .option(
      '-n, --namespace <name>',
      'where a bare NAME is (default: the namespace of the context, else default)',
      asNamespace,
    )
    .addOption(
      new Option('-o, --output <format>', 'output; hubble: the flows that Hubble would print')
        .choices(['text', 'wide', 'json', 'mermaid', 'hubble'])
        .default('text'),
    )
    .action(async (source: string | undefined, target: string | undefined, options: PathOptions) => {
      end(await runPath(io, [source, target], options))
    })
}

/** The source port, or the identifier, of what tells none. */
const usualPort = 43210

const protocols: Readonly<Record<string, WalkProtocol>> = {
  tcp: 'TCP',
  udp: 'UDP',
  sctp: 'SCTP',
  icmp: 'ICMP',
  icmpv6: 'ICMPv6',
}

function asProtocol(text: string): WalkProtocol {
  const protocol = Object.hasOwn(protocols, text.toLowerCase()) ? protocols[text.toLowerCase()] : undefined
  if (protocol !== undefined) return protocol
  throw new InvalidArgumentError(`"${text}" is none of ${Object.keys(protocols).join(', ')}.`)
}

function asNodeDevice(text: string, earlier: PathAsked['devices'] | undefined): PathAsked['devices'] {
  const [, node, rest] = /^([a-z0-9.-]+):(.+)$/.exec(text) ?? []
  if (node === undefined || rest === undefined) {
    throw new InvalidArgumentError('write NODE:NAME=ADDRESS[,ADDRESS], as in node-gw:eth1=192.0.2.5.')
  }
  return new Map([...(earlier ?? []), [node, asDevices(rest, earlier?.get(node))]])
}

function asBackend(text: string): string {
  const { ip, port } = parseEndpoint(text) ?? {}
  if (ip === undefined || port === undefined || port === 0)
    throw new InvalidArgumentError(`"${text}" is no backend; write ADDRESS:PORT, as in 10.244.1.20:8080.`)
  return printEndpoint(printIp(ip), port)
}

/** With commas, or as rows of connection tracking are written; of ICMP the identifier is a port, at either end. */
function asInner(text: string): WalkInner {
  const shape = /^(\w+)(?:[ ,]+(?:IN|OUT))?[ ,]+([^\s,]+?) *(?:->|→|,) *(\S+)$/i
  const [, word = '', from = '', to = ''] = shape.exec(text.trim()) ?? []
  const [source, destination] = [parseEndpoint(from), parseEndpoint(to)]
  const isEcho = /^icmp/i.test(word)
  const isWhole = isEcho || (source?.port !== undefined && destination?.port !== undefined)
  if (source === undefined || destination === undefined || !isWhole) {
    throw new InvalidArgumentError(
      'write PROTOCOL,ADDRESS:PORT,ADDRESS:PORT, as in tcp,192.168.1.10:34567,8.8.8.8:443, or icmp,ADDRESS:IDENTIFIER,ADDRESS.',
    )
  }
  const protocol = asProtocol(word)
  const [sourcePort = 0, port = 0] = [source.port, destination.port]
  const ends = { protocol, source: source.ip, destination: destination.ip }
  return isEcho ? { ...ends, sourcePort: sourcePort || port || usualPort, port: 0 } : { ...ends, sourcePort, port }
}

/** RFC 3339, as Hubble writes times. */
function asTime(text: string): string {
  const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/.test(text)
  if (isTime && !Number.isNaN(Date.parse(text))) return text
  throw new InvalidArgumentError(`"${text}" is no time; write one such as 2026-03-02T09:14:05Z.`)
}

type Words = readonly [string | undefined, string | undefined]

async function runPath(io: Io, words: Words, options: PathOptions): Promise<ExitCode> {
  const { flow } = options
  const [source, target] = words
  if (flow === undefined && (source === undefined || target === undefined)) {
    throw new Failure('usage.bad-argument', 'say who sends to whom: portolan path SOURCE TARGET:PORT')
  }
  if (flow !== undefined && source !== undefined) {
    throw new Failure('usage.bad-argument', '--flow tells who sends to whom; leave SOURCE and TARGET out')
  }
  const input = await readClusterInput(io, options, { command: 'path', ...notAsked(options.datapath) })
  requireNode(input.cluster, options.node)
  for (const node of options.device?.keys() ?? []) requireNode(input.cluster, node, '--device')
  const asked: Omit<PathAsked, 'question'> = {
    cluster: input.cluster,
    slices: input.slices,
    datapath: options.datapath,
    cilium: options.cilium,
    state: await readStates(io, input.cluster, options.state ?? []),
    devices: options.device ?? new Map(),
    ...(options.datapath !== 'cilium' && { kubeProxy: await readKubeProxy(io, input.cluster, options) }),
  }
  if (flow !== undefined) {
    const { runPathFlows } = await import('./path-flow')
    return runPathFlows(io, asked, { flow, output: options.output, time: timeOf(options), findings: input.findings })
  }
  const ends = endsOf(input, [source ?? '', target ?? ''], options)
  const walk = (await walkers[options.datapath]())({ ...asked, question: ends.question })
  printFindings(io, [...input.findings, ...walk.findings, ...tellUnmetBackend(walk, options.backend)])
  if (options.output === 'hubble') await printAsHubble(io, walk, { asked, time: timeOf(options) })
  else printAnswer(io, walk, { options, title: `${source} → ${target}`, notes: ends.notes })
  return worstOf(walk)
}

/** kube-proxy's nodes know nothing of Cilium, whose policies are told of. */
function notAsked(datapath: Datapath): Pick<ObjectsWanted, 'spared' | 'without'> {
  if (datapath === 'cilium') return {}
  const without = [...ciliumAgents, ...ciliumRoutes, 'ConfigMap/cilium-config', 'ConfigMap/ip-masq-agent']
  return { without, spared: ciliumPolicies }
}

function timeOf({ time }: PathOptions): string {
  return time ?? new Date().toISOString()
}

type AsHubble = { readonly asked: Omit<PathAsked, 'question'>; readonly time: string }

async function printAsHubble(io: Io, walk: Walk, { asked, time }: AsHubble): Promise<void> {
  const { prepareWalker } = await import('./path-walkers')
  const { hubbleRows, printHubbleRows } = await import('#flows/print-hubble')
  const { describe } = await prepareWalker(asked)
  io.out(printHubbleRows(hubbleRows(walk, { describe, time })))
}

function endsOf(
  { cluster, namespace }: ClusterInput,
  [source, target]: readonly [string, string],
  options: PathOptions,
): PathEnds {
  return readEnds(cluster, {
    source,
    target,
    protocol: options.proto,
    sourcePort: options.sport,
    namespace: options.namespace ?? namespace,
    isReplyWanted: options.reply === true,
    ...(options.port !== undefined && { port: options.port }),
    ...(options.node !== undefined && { entryNode: options.node }),
    ...(options.backend !== undefined && { backend: options.backend }),
    ...(options.about !== undefined && { about: options.about }),
  })
}

async function readStates(io: Io, cluster: Cluster, paths: readonly string[]): Promise<readonly GivenState[]> {
  const states: GivenState[] = []
  for (const path of paths) {
    const [, node, own] = /^([a-z0-9.-]+)=(.+)$/i.exec(path) ?? []
    requireNode(cluster, node, '--state')
    const file = own ?? path
    const text = await readText(file, { stdin: io.stdin, say: (sentence) => io.err(`${sentence}\n`) })
    states.push({ file, text, ...(node !== undefined && { node }) })
  }
  return states
}

type Printing = { readonly options: PathOptions; readonly title: string; readonly notes: readonly string[] }

function printAnswer(io: Io, walk: Walk, { options, title, notes }: Printing): void {
  if (options.output === 'json') io.out(`${JSON.stringify(walkJson(walk), undefined, 2)}\n`)
  else if (options.output === 'mermaid') io.out(drawWalk(walk))
  else io.out(printWalk(walk, { title, notes, isWide: options.output === 'wide', hasColour: io.isTerminal }))
}

/** The answer is as good as its worse half. */
function worstOf({ request, reply }: Walk): ExitCode {
  const codes = [request, reply].flatMap((leg) => (leg === undefined ? [] : [codeOf(leg)]))
  if (codes.includes(1)) return 1
  return codes.includes(3) ? 3 : 0
}

function codeOf({ verdict: { kind } }: Leg): ExitCode {
  if (kind === 'unknown') return 3
  return kind === 'allowed' ? 0 : 1
}
