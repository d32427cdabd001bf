/** The agent's rows of the performance table: a node of 100 interfaces taken over, one edit in force, and an idle hour's share. */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openAttacher } from '#kernel/datapath'
import type { RawRecord } from '#manifests/text/raw-object'
import { attachment, binding, policy } from '../test/agent/traffic-objects'
import { createBpffsFolder } from '../test/kernel/bpffs-folder'
import { createNamespaces, endWithUs, inside, removeNamespaces } from '../test/kernel/namespace'
import { mustRun, waitUntil } from '../test/kernel/run-command'
import type { Row } from './bench-datapath'

const interfaces = 100
const names = Array.from({ length: interfaces }, (_, index) => `bench${index}`)

export type AgentBench = { readonly rounds: number; readonly idleSeconds: number; readonly folder: string }

type Agent = { readonly child: ChildProcess; readonly log: () => string }

export async function benchAgent({ rounds, idleSeconds, folder }: AgentBench): Promise<readonly Row[]> {
  const bpffs = createBpffsFolder()
  const [host = ''] = createNamespaces(['bench'])
  const [from, status] = [join(folder, 'agent-from'), join(folder, 'agent-status')]
  mkdirSync(from)
  try {
    attachAll(bpffs.path, host)
    writeFileSync(join(from, 'objects.json'), JSON.stringify(objectsOf('big')))
    writePolicy(from, 1)
    const agent = startAgent(host, ['--from', from, '--status', status, '--bpffs', bpffs.path, '--mode', 'enforce'])
    waitUntil('all are applied', () => names.every((name) => stateOf(status, name) === 'Applied'), 60_000)
    await new Promise((resolve) => setTimeout(resolve, 200))
    const took = timeOf(agent, 'reconciled') - timeOf(agent, 'the datapath is open')
    const edits = Array.from({ length: 4 * rounds }, (_, index) => measureEdit(from, status, index + 2))
    const idle = await measureIdle(agent, idleSeconds)
    agent.child.kill('SIGTERM')
    const row = (what: string, value: string, goal: string, memory = ''): Row => [what, value, '', '', goal, memory]
    const median = edits.sort((one, other) => one - other)[Math.floor(edits.length / 2)] ?? Number.NaN
    return [
      row(
        `agent: ${interfaces} interfaces × 64 rules, both directions, from objects to in force`,
        `${took} ms`,
        '2000 ms',
      ),
      row('agent: one edited policy in force and told, after its file changed', `${median.toFixed(0)} ms`, '100 ms'),
      row(
        'agent: share of a core with nothing to do',
        `${(100 * idle.share).toFixed(2)} %`,
        '1 %',
        `${idle.megabytes} MB`,
      ),
    ]
  } finally {
    removeNamespaces([host])
    bpffs.remove()
  }
}

function attachAll(folder: string, host: string): void {
  mustRun(['ip', '-n', host, '-batch', '-'], ['lo', ...names].map((name) => linkLines(name)).join('\n'))
  const attacher = openAttacher({ folder })
  for (const name of names) attacher.attach({ name, namespacePath: `/run/netns/${host}`, side: 'host' })
  attacher.close()
}

function linkLines(name: string): string {
  return name === 'lo' ? 'link set lo up' : `link add ${name} type veth peer name ${name}-peer`
}

/** One of them has a policy of its own, which is edited. */
function objectsOf(shared: string): readonly RawRecord[] {
  const rules = Array.from({ length: 64 }, (_, index) => ({
    name: `rule-${index}`,
    action: 'Allow' as const,
    match: { protocols: ['UDP'], destinationPorts: [{ from: 1000 + index }] },
  }))
  const bound = names.flatMap((name, index) => {
    const wanted = index === 0 ? 'edited' : shared
    return [attachment(name, { device: name }), binding(name, { egress: wanted, ingress: wanted })]
  })
  return [...bound, policy(shared, { rules })]
}

function writePolicy(from: string, generation: number): void {
  writeFileSync(join(from, 'beside'), JSON.stringify(policy('edited', { generation })))
  renameSync(join(from, 'beside'), join(from, 'edited.json'))
}

function startAgent(host: string, argv: readonly string[]): Agent {
  const own = ['bin/portolan.js', 'agent', '--node', 'n1', '--metrics-listen', '127.0.0.1:0']
  const [program = '', ...args] = inside(host, [process.execPath, ...own, ...argv])
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  endWithUs(child)
  let log = ''
  child.stderr.on('data', (bytes) => {
    log += String(bytes)
  })
  return { child, log: () => log }
}

function timeOf({ log }: Agent, message: string): number {
  const line = log()
    .split('\n')
    .find((one) => one.includes(`"msg":"${message}"`))
  return line === undefined ? Number.NaN : Date.parse(JSON.parse(line).time)
}

type Entry = { readonly egress?: { readonly state: string; readonly policy?: { readonly generation: number } } }

function entryOf(status: string, name: string): Entry | undefined {
  try {
    const text = readFileSync(join(status, 'portolan-agent-n1/trafficpolicybindings/tenant', `${name}.json`), 'utf8')
    return JSON.parse(text).status.nodes[0]
  } catch {
    return undefined
  }
}

function stateOf(status: string, name: string): string | undefined {
  return entryOf(status, name)?.egress?.state
}

/** Until the status tells it, which is after it is in force. */
function measureEdit(from: string, status: string, generation: number): number {
  const start = performance.now()
  writePolicy(from, generation)
  waitUntil('the edit is told', () => entryOf(status, 'bench0')?.egress?.policy?.generation === generation)
  return performance.now() - start
}

async function measureIdle({ child }: Agent, seconds: number): Promise<{ share: number; megabytes: number }> {
  const ticks = (): number => {
    const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    return Number(fields[11]) + Number(fields[12])
  }
  const before = ticks()
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  const share = (ticks() - before) / 100 / seconds
  const resident = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]
  return { share, megabytes: Math.round(Number(resident) / 1024) }
}
