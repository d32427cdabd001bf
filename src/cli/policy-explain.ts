/** `portolan policy explain`: what a traffic policy does with one packet, by independent deciders that must agree. */
import { existsSync } from 'node:fs'
import { type Command, Option } from 'commander'
import { Failure } from '#base/failure'
import type { Finding } from '#base/finding'
import { type Ip, printIp } from '#base/ip'
import { printPrefix } from '#base/prefix'
import { countOf, listOf } from '#base/text'
import { type CompiledPolicy, compilePolicy, describeProblems } from '#compile/traffic-policy/compile-policy'
import { type Direction, type EntryProtocol, type PathClass, pathClasses } from '#compile/traffic-policy/entry'
import { explainPacket, type PartialPacket } from '#compile/traffic-policy/explain-packet'
import { keyOf } from '#model/meta'
import type { TrafficPolicy } from '#model/traffic-policy'
import { pathWords } from '#model/traffic-policy-schema'
import { type OpenDeciders, openKernelDecider } from './ask-kernel'
import type { CommandContext, ExitCode } from './command'
import type { Io } from './io'
import { addObjectOptions, asIp, asNamespace, asNumber } from './options'
import { printFindings } from './print-findings'
import { type PolicyExplanation, printPolicyExplanation } from './print-policy-explanation'
import { findCluster, meansCluster, type ObjectFlags, type Objects, readObjects } from './read-inputs-objects'

type ExplainOptions = ObjectFlags & {
  readonly policy: string
  readonly namespace?: string
  readonly path?: (typeof pathWords)[number]
  readonly pathPrefixes?: string
  readonly vpc?: number
  readonly direction?: Direction
  readonly src: Ip
  readonly dst: Ip
  readonly proto: EntryProtocol | number
  readonly sport?: number
  readonly dport?: number
  readonly icmpType?: number
  readonly icmpCode?: number
  readonly fragment?: boolean
  readonly output: 'text' | 'json'
}

/** What a test may put in the place of the parts that must agree, to see that disagreement is told. */
export type ExplainParts = {
  readonly compile?: (policy: TrafficPolicy) => ReturnType<typeof compilePolicy>
  /** Deciders that the machine offers beside ours; the kernel is one where it may be asked. */
  readonly openDeciders?: (io: Io, compiled: CompiledPolicy) => Promise<OpenDeciders>
}

export function addPolicyExplain(policy: Command, context: CommandContext): void {
  addPolicyExplainWith(policy, context, {})
}

export function addPolicyExplainWith(policy: Command, { io, end }: CommandContext, parts: ExplainParts): void {
  const command = policy
    .command('explain')
    .description('say what a traffic policy does with a packet that opens a connection, and by which rule')
    .requiredOption(
      '--policy <NS/NAME|file>',
      'the TrafficPolicy: of the objects given by --from, of the cluster, or alone in a file',
    )
  addObjectOptions(command)
    .option(
      '-n, --namespace <name>',
      'where a bare NAME is (default: the namespace of the context, else default)',
      asNamespace,
    )
    .addOption(
      new Option('--path <class>', 'how the packet came; left out, unclassified')
        .choices([...pathWords])
        .conflicts('pathPrefixes'),
    )
    .option('--path-prefixes <file>', 'the networks of each path class by VPC, as the agent reads them')
    .option('--vpc <number>', 'the VPC of the interface, for --path-prefixes', asNumber(1, 0xffffffff))
    .addOption(
      new Option('--direction <direction>', 'whether --src or --dst is the far end, for --path-prefixes').choices([
        'ingress',
        'egress',
      ]),
    )
    .requiredOption('--src <ip>', 'source address, as the interface sees it', asIp)
    .requiredOption('--dst <ip>', 'destination address, as the interface sees it', asIp)
    .requiredOption('--proto <protocol>', 'tcp, udp, sctp, icmp, icmpv6, or a number', asProtocol)
    .option('--sport <port>', 'source port; left out, any', asNumber(1, 65535))
    .option('--dport <port>', 'destination port; left out, any', asNumber(1, 65535))
    .option('--icmp-type <number>', 'ICMP type; left out, any', asNumber(0, 255))
    .option('--icmp-code <number>', 'ICMP code; left out, any', asNumber(0, 255))
    .option('--fragment', 'it is a later fragment, whose ports or ICMP type cannot be told')
    .addOption(new Option('-o, --output <format>', 'output').choices(['text', 'json']).default('text'))
    .action(async (options: ExplainOptions) => {
      end(await runPolicyExplain(io, options, parts))
    })
}

const numbers = new Map<number, EntryProtocol>([
  [6, 'tcp'],
  [17, 'udp'],
  [132, 'sctp'],
  [1, 'icmp'],
  [58, 'icmpv6'],
])

function asProtocol(text: string): EntryProtocol | number {
  const word = text.toLowerCase()
  for (const name of numbers.values()) if (name === word) return name
  const number = /^\d{1,3}$/.test(text) ? Number(text) : 256
  if (number <= 255) return numbers.get(number) ?? number
  throw new Failure(
    'usage.bad-argument',
    `--proto ${text} is no protocol; write ${listOf([...numbers.values()])}, or a number from 0 to 255`,
  )
}

async function runPolicyExplain(io: Io, options: ExplainOptions, parts: ExplainParts): Promise<ExitCode> {
  const found = await findPath(options)
  const packet = packetOf(options, found?.path)
  const { policy, findings } = await readPolicy(io, options)
  const { spec } = policy
  const name = keyOf(policy.meta)
  const compilation = (parts.compile ?? compilePolicy)(policy)
  if (compilation.kind === 'refused' || spec === undefined) {
    const problems = compilation.kind === 'refused' ? compilation.problems : policy.problems
    throw new Failure('usage.bad-argument', `TrafficPolicy ${name} does not compile:\n${describeProblems(problems)}`)
  }
  printFindings(io, findings)
  const { compiled } = compilation
  const { deciders: others, close } = await (parts.openDeciders ?? openKernelDecider)(io, compiled)
  const outcome = explainPacket(packet, { spec, compiled, others })
  close()
  const explanation: PolicyExplanation = {
    policy: name,
    path: found === undefined ? packet.path : `${found.path} (${found.why})`,
    rules: spec.rules.map((rule) => rule.name),
    compiledEntries: compiled.entries.length,
    outcome,
  }
  io.out(printPolicyExplanation(explanation, options.output))
  if (outcome.kind === 'disagreed') {
    io.err(
      `portolan: this is a bug of Portolan: its deciders disagree about ${printIp(packet.source)} to ${printIp(packet.destination)}\n` +
        'Please report it with the policy, the command line and the answers above.\n',
    )
  }
  noteLink(io, packet)
  return codeOf(explanation)
}

function codeOf({ outcome }: PolicyExplanation): ExitCode {
  if (outcome.kind === 'disagreed') return 4
  if (outcome.kind === 'open') return 3
  const verdicts = new Set(outcome.decisions.map(({ verdict }) => verdict))
  return verdicts.size > 1 ? 3 : verdicts.has('allow') ? 0 : 1
}

type FoundPath = { readonly path: PathClass; readonly why: string }

/** As the datapath finds it of a packet whose mark tells none. */
async function findPath({ pathPrefixes, vpc, direction, src, dst }: ExplainOptions): Promise<FoundPath | undefined> {
  if (pathPrefixes === undefined) {
    const flag = vpc !== undefined ? '--vpc' : direction !== undefined ? '--direction' : undefined
    if (flag !== undefined) throw usage(`${flag} is for --path-prefixes; add that with its file, or leave ${flag} out`)
    return undefined
  }
  if (vpc === undefined || direction === undefined) {
    throw usage(
      '--path-prefixes gives a class by the interface’s VPC and the far end of the packet; add --vpc NUMBER and --direction ingress|egress',
    )
  }
  const { readPathPrefixes, findPathPrefix } = await import('#enforce/path-prefixes')
  const { readText } = await import('#sources/read-text')
  const reading = readPathPrefixes(await readText(pathPrefixes))
  if (reading.kind === 'refused') {
    throw usage(`--path-prefixes ${pathPrefixes} cannot be used:\n${describeProblems(reading.problems)}`)
  }
  const remote = direction === 'ingress' ? src : dst
  const found = findPathPrefix(reading.prefixes, vpc, remote)
  if (found === undefined) return { path: pathClasses[0], why: `no network of VPC ${vpc} holds ${printIp(remote)}` }
  return { path: found.path, why: `${printPrefix(found.prefix)} of VPC ${vpc}` }
}

function packetOf(options: ExplainOptions, found: PathClass | undefined): PartialPacket {
  const { src: source, dst: destination, proto: protocol, fragment = false } = options
  const { sport, dport, icmpType, icmpCode } = options
  if (source.family !== destination.family) {
    throw usage(`--src ${printIp(source)} and --dst ${printIp(destination)} are of two families; give both of one`)
  }
  if ((protocol === 'icmp' && source.family === 'ipv6') || (protocol === 'icmpv6' && source.family === 'ipv4')) {
    const other = protocol === 'icmp' ? 'icmpv6' : 'icmp'
    throw usage(`--proto ${protocol} is not of the family of ${printIp(source)}; write --proto ${other}`)
  }
  const isIcmp = protocol === 'icmp' || protocol === 'icmpv6'
  const hasPorts = typeof protocol === 'string' && !isIcmp && !fragment
  const given = [
    { flag: '--sport', value: sport, fits: hasPorts },
    { flag: '--dport', value: dport, fits: hasPorts },
    { flag: '--icmp-type', value: icmpType, fits: isIcmp && !fragment },
    { flag: '--icmp-code', value: icmpCode, fits: isIcmp && !fragment },
  ]
  const wrong = given.find(({ value, fits }) => value !== undefined && !fits)
  if (wrong !== undefined) {
    const what = fragment ? 'a later fragment (--fragment)' : `a packet of --proto ${protocol}`
    throw usage(`${wrong.flag} says what ${what} has not; leave it out`)
  }
  if (icmpCode !== undefined && icmpType === undefined) throw usage('--icmp-code is of a type; add --icmp-type')
  const [unclassified] = pathClasses
  return {
    source,
    destination,
    protocol,
    path: found ?? options.path ?? unclassified,
    ...(sport !== undefined && { sourcePort: sport }),
    ...(dport !== undefined && { destinationPort: dport }),
    ...(icmpType !== undefined && { icmpType }),
    ...(icmpCode !== undefined && { icmpCode }),
    ...(fragment && { isLaterFragment: true }),
  }
}

function usage(sentence: string): Failure {
  return new Failure('usage.bad-argument', sentence)
}

type PolicyInput = { readonly policy: TrafficPolicy; readonly findings: readonly Finding[] }

/** Findings about other objects are of no matter here. */
async function readPolicy(io: Io, options: ExplainOptions): Promise<PolicyInput> {
  const { policy: name } = options
  const isFile = await namesFile(options)
  const { cluster, findings, namespace } = isFile ? await readFile(io, name) : await readNamed(io, options)
  const policies = cluster.trafficPolicies
  const key = qualify(name, options.namespace ?? namespace)
  const found = isFile ? [...policies.values()] : [policies.get(key)].filter((one) => one !== undefined)
  const [policy, ...more] = found
  if (policy === undefined) throw noPolicy(isFile ? name : key, isFile, [...policies.keys()])
  if (more.length > 0) {
    const names = listOf([...policies.keys()].sort())
    throw usage(
      `${name} holds ${countOf(found.length, 'TrafficPolicy', 'TrafficPolicies')}: ${names}; name one: --from ${name} --policy NS/NAME`,
    )
  }
  // What is refused is told by the compiler, in one sentence with the rest.
  return { policy, findings: findings.filter((finding) => isAbout(finding, policy) && finding.severity !== 'error') }
}

const policyName = /^(?:[a-z0-9-]+\/)?[a-z0-9.-]+$/

/** What is named alone is a file where there is one, or where it can be nothing else. */
async function namesFile({ policy, from, namespace, ...cluster }: ExplainOptions): Promise<boolean> {
  if (from !== undefined || meansCluster(cluster)) return false
  if (policy === '-' || existsSync(policy) || !policyName.test(policy)) return true
  return namespace === undefined && (await findCluster(cluster)) === undefined
}

function qualify(name: string, namespace: string): string {
  return name.includes('/') ? name : `${namespace}/${name}`
}

/** A name tells which namespace of a cluster is asked. */
function readNamed(io: Io, options: ExplainOptions): Promise<Objects> {
  const { policy, namespace } = options
  const onlyNamespace = (usual: string): string | undefined => qualify(policy, namespace ?? usual).split('/')[0]
  return readObjects(io, options, { command: 'policy explain', onlyNamespace })
}

async function readFile(io: Io, name: string): Promise<Objects> {
  try {
    return await readObjects(io, { from: [name] }, { command: 'policy explain' })
  } catch (error) {
    if (!(error instanceof Failure) || !policyName.test(name)) throw error
    throw new Failure(
      error.code,
      `${error.message}; or, if a policy's name is meant, add --from with the cluster's objects, or --kubeconfig`,
      error,
    )
  }
}

function isAbout({ object }: Finding, { meta }: TrafficPolicy): boolean {
  return object?.kind === meta.kind && object.namespace === meta.namespace && object.name === meta.name
}

function noPolicy(name: string, isFile: boolean, known: readonly string[]): Failure {
  if (isFile) return new Failure('usage.not-found', `${name} holds no TrafficPolicy; give --policy a file with one`)
  const those = known.length === 0 ? 'the input has none' : `the input has ${listOf([...known].sort())}`
  return new Failure('usage.not-found', `no TrafficPolicy is named "${name}": ${those}; write NAMESPACE/NAME`)
}

const linkTypes = [130, 131, 132, 133, 134, 135, 136, 143]

function noteLink(io: Io, { protocol, icmpType }: PartialPacket): void {
  if (protocol !== 'icmpv6' || icmpType === undefined || !linkTypes.includes(icmpType)) return
  io.err('note: on its link, neighbour discovery and multicast listening pass before any rule is asked\n')
}
