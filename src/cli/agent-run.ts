/** `portolan agent --node N`: the loop of a node, until it is interrupted; what it has bound stays. */
import { resolve, sep } from 'node:path'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { PathMark } from '#agent/agent-options'
import type { RunningAgent } from '#agent/start-agent'
import { Failure } from '#base/failure'
import { parseEndpoint, printIp } from '#base/ip'
import { type EnforcedMode, modeNumbers } from '#compile/traffic-policy/datapath-maps'
import { addBpffsOption, type BpffsOption } from './bpffs-option'
import type { CommandContext, ExitCode } from './command'
import type { Io } from './io'
import { addFromOption, asBoolean } from './options'
import { version } from './version'

type Listen = { readonly address: string; readonly port: number } | 'none'

export type AgentFlags = BpffsOption & {
  readonly node?: string
  readonly from?: readonly string[]
  readonly status?: string
  readonly mode?: EnforcedMode
  readonly trafficPolicy?: boolean
  readonly role: 'node' | 'route-reflector'
  readonly pathMark?: PathMark
  readonly pathPrefixes?: string
  readonly metricsListen: Listen
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent'
}

export function addAgentRun(agent: Command, { io, end }: CommandContext): void {
  addFromOption(agent.option('--node <name>', 'the node that this is; the loop starts with it', asNode))
  agent
    .option('--status <dir>', 'where to write what this node says of its bindings, a file each')
    .addOption(
      new Option('--mode <mode>', 'set the node’s mode at the start (default: it stays what it is)')
        .choices(Object.keys(modeNumbers))
        .env('GALACTIC_CNI_TRAFFIC_POLICY'),
    )
    .addOption(
      new Option('--traffic-policy [true|false]', 'whether policies are installed (default: true on a node)')
        .argParser(asBoolean)
        .preset('true')
        .env('GALACTIC_ROUTER_TRAFFIC_POLICY'),
    )
    .addOption(
      new Option('--role <role>', 'a route reflector forwards no packets and refuses traffic policy')
        .choices(['node', 'route-reflector'])
        .default('node'),
    )
  addBpffsOption(agent)
    .option('--path-mark <mask>', 'the bits of a packet’s mark that hold its path class, such as 0x7000000', asMask)
    .option(
      '--path-prefixes <file>',
      'the networks of each path class by VPC, for packets whose mark tells none; read again when it changes',
    )
    .option('--metrics-listen <ip:port>', 'where metrics are served, or none (default: 127.0.0.1:9179)', asListen)
    .addOption(
      new Option('--log-level <level>', 'least important lines of the log')
        .choices(['debug', 'info', 'warn', 'error', 'silent'])
        .default('info'),
    )
    .action(async (flags: AgentFlags) => {
      end(await runAgent(io, flags))
    })
}

/** As the API server names nodes (RFC 1123). */
function asNode(text: string): string {
  if (text.length <= 253 && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/.test(text)) return text
  throw new InvalidArgumentError(`"${text}" is no node's name: a-z, 0-9, "-" and ".".`)
}

function asListen(text: string): Listen {
  if (text === 'none') return 'none'
  const parsed = parseEndpoint(text.replace(/^localhost:/, '127.0.0.1:'))
  if (parsed?.port !== undefined) return { address: printIp(parsed.ip), port: parsed.port }
  throw new InvalidArgumentError(
    `"${text}" is no address: write IP:PORT such as 127.0.0.1:9179, [IP]:PORT for IPv6, or none.`,
  )
}

/** Bits that stand side by side; 0 takes the setting back. */
function asMask(text: string): PathMark {
  const mask = /^(0x[0-9a-f]{1,8}|\d{1,10})$/i.test(text) ? Number(text) : Number.NaN
  if (mask === 0) return { mask, shift: 0 }
  const shift = 31 - Math.clz32(mask & -mask)
  const isRun = mask <= 0xffffffff && Number.isInteger(Math.log2((mask >>> shift) + 1))
  if (isRun) return { mask, shift }
  throw new InvalidArgumentError(`"${text}" is no run of bits of 32, such as 0x7000000.`)
}

async function runAgent(io: Io, flags: AgentFlags): Promise<ExitCode> {
  const { node, role, trafficPolicy = role === 'node' } = flags
  if (node === undefined) {
    throw new Failure('usage.bad-argument', 'no node is named; add --node with its name, or see portolan agent --help')
  }
  if (role === 'route-reflector' && trafficPolicy) {
    throw new Failure(
      'usage.bad-argument',
      'a route reflector forwards no packets, so that there is nothing to enforce; leave out --traffic-policy (or GALACTIC_ROUTER_TRAFFIC_POLICY), or --role route-reflector',
    )
  }
  const { openLog } = await import('#broker/log')
  const log = openLog(io.err, flags.logLevel)
  const interrupted = interruption()
  const agent = trafficPolicy ? await startPolicy(io, { ...flags, node }, log) : idleAgent(node)
  try {
    const metrics = await serveMetrics(flags.metricsListen, agent)
    const work = trafficPolicy ? `traffic policy in mode ${agent.view().mode}` : 'traffic policy is off'
    const place = metrics === undefined ? '' : `; metrics on ${metrics.url}/metrics`
    io.out(`portolan agent ${version} on ${node}: ${work}${place}\n`)
    const signal = await interrupted
    log.info({ signal }, 'the agent ends; what is bound stays')
    await metrics?.stop()
    return 0
  } finally {
    await agent.stop()
  }
}

type Agent = Pick<RunningAgent, 'view' | 'trouble' | 'stop'>

function idleAgent(node: string): Agent {
  return {
    view: () => ({ node, mode: 'unknown', interfaces: [], counterReadErrors: 0 }),
    trouble: () => undefined,
    stop: async () => {},
  }
}

/** A node's own share of a large cluster is far less; 100 MB would be parsed for a minute, with nothing else done. */
const mostObjectBytes = 32e6

type Log = ReturnType<typeof import('#broker/log').openLog>

async function startPolicy(io: Io, flags: AgentFlags & { readonly node: string }, log: Log): Promise<Agent> {
  const { node, from = [], status, bpffs: folder, mode, pathMark, pathPrefixes } = flags
  await checkPaths(from, status)
  if (pathPrefixes !== undefined) await checkPrefixes(pathPrefixes)
  const { startAgent } = await import('#agent/start-agent')
  const { systemClock } = await import('#agent/agent-clock')
  const { noStatus, statusFiles } = await import('#agent/status-sink')
  const { modeOfKernel, openKernelDatapath, watchInterfaces } = await import('#agent/kernel-datapath')
  const { pathPrefixFile } = await import('#agent/path-prefix-keeper')
  const { watchFiles } = await import('#sources/watch-files')
  const { nativeOf } = await import('#kernel/faults')
  const faults = process.env.PORTOLAN_FAULTS ?? ''
  if (faults !== '') log.warn({ faults }, 'faults are injected by PORTOLAN_FAULTS')
  const place = { folder, native: () => nativeOf(faults) }
  return startAgent({
    node,
    objects: watchFiles(from, { stdin: io.stdin, mostBytes: mostObjectBytes }),
    status: status === undefined ? noStatus : statusFiles(status, node),
    open: () => openKernelDatapath(place),
    modeWithout: () => modeOfKernel(place),
    ...(mode !== undefined && { mode }),
    ...(pathMark !== undefined && { pathMark }),
    ...(pathPrefixes !== undefined && { pathPrefixes: pathPrefixFile(pathPrefixes) }),
    interfaces: watchInterfaces(place, log),
    clock: systemClock,
    log,
  })
}

/** A path that is not there at the start is a slip; one that goes later is waited for. */
async function checkPaths(from: readonly string[], status: string | undefined): Promise<void> {
  if (from.length === 0) {
    throw new Failure('usage.bad-argument', 'no objects are named; add --from with a file or folder of policies')
  }
  const { kindOfPath } = await import('#sources/read-text')
  for (const path of from) {
    if (path === '-') continue
    const isFolder = (await kindOfPath(path)) === 'folder'
    if (!isFolder || status === undefined) continue
    if (`${resolve(status)}${sep}`.startsWith(`${resolve(path)}${sep}`)) {
      throw new Failure(
        'usage.bad-argument',
        `--status ${status} lies in ${path}, from which objects are read; give it a folder elsewhere`,
      )
    }
  }
}

/** At the start a file that is wrong is a slip; one that is spoilt later is told, and what was read before counts on. */
async function checkPrefixes(path: string): Promise<void> {
  const { readText } = await import('#sources/read-text')
  const { readPathPrefixes } = await import('#enforce/path-prefixes')
  const { describeProblems } = await import('#compile/traffic-policy/compile-policy')
  const reading = readPathPrefixes(await readText(path))
  if (reading.kind === 'prefixes') return
  throw new Failure(
    'usage.bad-argument',
    `--path-prefixes ${path} cannot be used:\n${describeProblems(reading.problems)}`,
  )
}

async function serveMetrics(listen: Listen | undefined, { view, trouble }: Agent) {
  if (listen === 'none') return undefined
  const { startMetrics } = await import('#agent/metrics-server')
  return startMetrics({ view, trouble, version, ...(listen !== undefined && { listen }) })
}

function interruption(): Promise<string> {
  return new Promise((done) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => done(signal))
  })
}
