/** Pods, a node and machines outside, each in a network namespace with a process that answers and connects: real packets for policies. */
import { type ChildProcess, spawn } from 'node:child_process'
import {
  closeSync,
  constants,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  unlinkSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compareText } from '#base/text'
import { flushConnections } from './connections'
import { createNode, type KernelNode } from './kernel-node'
import { endWithUs, inside } from './namespace'
import { mustRun, toolEnvironment, waitUntil } from './run-command'
import { sendFromWire } from './wire'

export type Probe = {
  readonly source: string
  readonly target: string
  readonly protocol: 'TCP' | 'UDP' | 'SCTP'
  readonly port: number
}

/** `open` when an answer came, or for SCTP when the frame arrived; anything else is how it failed. */
export type ProbeResult = string

export type PolicyLaboratory = {
  readonly node: KernelNode
  /** Replaces all rules of the node. */
  readonly load: (script: string) => void
  /** In the order given. */
  readonly send: (probes: readonly Probe[]) => readonly ProbeResult[]
  readonly close: () => void
}

const program = fileURLToPath(new URL('./policy-agent.mjs', import.meta.url))

export type LaboratorySpec = {
  readonly nodeIp: string
  /** Of pods and of machines outside, each behind a link of its own. */
  readonly ips: readonly string[]
  /** What every one of them listens on. */
  readonly ports: readonly number[]
}

export function startLaboratory({ nodeIp, ips, ports }: LaboratorySpec): PolicyLaboratory {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-policies-'))
  const node = createNode({
    links: ips.map((ip, at) => ({ name: `pod${at}`, addresses: [], routes: [`${ip}/32`] })),
    localAddresses: [`${nodeIp}/32`],
    // Refusals are many, and each must be heard.
    sysctls: { 'net.ipv4.icmp_ratemask': '0' },
  })
  for (const [at, ip] of ips.entries()) settle(node, at, ip)
  const agents = new Map<string, Agent>()
  const namespaces = [node.namespace, ...node.links.map(({ peerNamespace }) => peerNamespace)]
  for (const [at, ip] of [nodeIp, ...ips].entries()) {
    agents.set(ip, startAgent(folder, { name: `agent${at}`, namespace: namespaces[at] ?? '', ports }))
  }
  for (const { name } of agents.values()) {
    waitUntil(`${name} listens`, () => existsSync(join(folder, `${name}-ready.json`)))
  }
  const linkOf = (ip: string): string => `pod${ips.indexOf(ip)}`
  let job = 0
  return {
    node,
    load: (script) => {
      mustRun(inside(node.namespace, ['nft', '-f', '-']), `flush ruleset\n${script}\n${witness}`)
      flushConnections(node)
    },
    send: (probes) => {
      job += 1
      const results = new Map<Probe, ProbeResult>()
      sendSockets({ folder, agents, job }, probes, results)
      sendFrames({ node, linkOf }, probes, results)
      return probes.map((probe) => results.get(probe) ?? 'not sent')
    },
    close: () => {
      for (const { child, pipe } of agents.values()) {
        child.kill('SIGKILL')
        closeSync(pipe)
      }
      node.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The far end of a link gets the address, and a way back over the node. */
function settle(node: KernelNode, at: number, ip: string): void {
  const link = node.links[at]
  if (link === undefined) throw new Error(`the node has no link for ${ip}`)
  const gateway = '169.254.250.1'
  const lines = [
    'link set lo up',
    `addr add ${ip}/32 dev peer`,
    `neigh add ${gateway} lladdr ${link.mac} dev peer nud permanent`,
    `route add default via ${gateway} dev peer onlink src ${ip}`,
  ]
  mustRun(['ip', '-n', link.peerNamespace, '-batch', '-'], lines.join('\n'))
}

type Agent = { readonly name: string; readonly child: ChildProcess; readonly pipe: number }
type AgentSpec = { readonly name: string; readonly namespace: string; readonly ports: readonly number[] }

/** A named pipe is written to at once, while this process waits for the answers. */
function startAgent(folder: string, { name, namespace, ports }: AgentSpec): Agent {
  const path = join(folder, `${name}.pipe`)
  mustRun(['mkfifo', path])
  const pipe = openSync(path, constants.O_RDWR)
  const [command = '', ...args] = inside(namespace, [process.execPath, program, folder, name, JSON.stringify(ports)])
  const child = spawn(command, args, { stdio: [pipe, 'ignore', 'inherit'], env: toolEnvironment })
  endWithUs(child)
  return { name, child, pipe }
}

type Post = { readonly folder: string; readonly agents: ReadonlyMap<string, Agent>; readonly job: number }

function sendSockets({ folder, agents, job }: Post, probes: readonly Probe[], results: Map<Probe, ProbeResult>): void {
  const waiting: { readonly path: string; readonly own: readonly Probe[]; readonly name: string }[] = []
  for (const [ip, { name, pipe }] of agents) {
    const own = probes.filter(({ source, protocol }) => source === ip && protocol !== 'SCTP')
    if (own.length === 0) continue
    const sent = own.map(({ protocol, target, port }) => ({ protocol, address: target, port }))
    writeSync(pipe, `${JSON.stringify({ id: job, probes: sent })}\n`)
    waiting.push({ path: join(folder, `${name}-${job}.json`), own, name })
  }
  for (const { path, own, name } of waiting) {
    waitUntil(`${name} has tried ${own.length} connections`, () => existsSync(path), 30_000)
    const answers: readonly ProbeResult[] = JSON.parse(readFileSync(path, 'utf8'))
    unlinkSync(path)
    for (const [at, probe] of own.entries()) results.set(probe, answers[at] ?? 'not sent')
  }
}

type Wire = { readonly node: KernelNode; readonly linkOf: (ip: string) => string }

/** Notes, by its source port, every SCTP packet that came, and every one that was let through. */
const witness = `table ip witness {
  set came { type inet_service; flags dynamic; size 65535; }
  set passed { type inet_service; flags dynamic; size 65535; }
  chain first { type filter hook prerouting priority -400; meta l4proto sctp add @came { sctp sport }; }
  chain last { type filter hook postrouting priority 400; meta l4proto sctp add @passed { sctp sport }; }
  chain own { type filter hook input priority 400; meta l4proto sctp add @passed { sctp sport }; }
}`

/** The kernel need not have SCTP: an INIT goes out as a frame, and the node's last hook tells whether it passed. */
function sendFrames({ node, linkOf }: Wire, probes: readonly Probe[], results: Map<Probe, ProbeResult>): void {
  const frames = probes.filter(({ protocol }) => protocol === 'SCTP')
  if (frames.length === 0) return
  // Neighbours from one sender go out together, which is much faster.
  const own = frames.toSorted((a, b) => compareText(a.source, b.source))
  const portOf = (at: number): number => 20_000 + at
  sendFromWire(
    node,
    own.map(({ source, target, port }, at) => ({
      id: at + 1,
      packet: {
        from: linkOf(source),
        protocol: 'sctp',
        source,
        sourcePort: portOf(at),
        destination: target,
        destinationPort: port,
      },
    })),
  )
  waitUntil(`${own.length} SCTP packets have come`, () => readSet(node, 'came').size === own.length)
  const passed = readSet(node, 'passed')
  for (const [at, probe] of own.entries()) results.set(probe, passed.has(portOf(at)) ? 'open' : 'lost')
}

function readSet(node: KernelNode, name: string): ReadonlySet<number> {
  const output = mustRun(inside(node.namespace, ['nft', '-j', 'list', 'set', 'ip', 'witness', name]))
  const listed = JSON.parse(output).nftables as readonly { readonly set?: { readonly elem?: readonly unknown[] } }[]
  return new Set(listed.flatMap(({ set }) => (set?.elem ?? []).map(Number)))
}
