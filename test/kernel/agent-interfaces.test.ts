/** Interfaces that change their name, place and index under a running agent: each is told by its programs, never by a number. */
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { RawRecord } from '#manifests/text/raw-object'
import { attachment, binding, policy, rest } from '../agent/traffic-objects'
import { type KernelNode, kernelNode } from './agent-kernel'
import { type AgentFiles, type AgentProcess, agentFiles, spawnAgent, until } from './agent-process'
import { describeKernel } from './describe-kernel'
import { createNamespaces, inside, removeNamespaces } from './namespace'
import { mustRun, runCommand } from './run-command'

describeKernel('interfaces that change under an agent', () => {
  let node: KernelNode
  let files: AgentFiles
  let agent: AgentProcess
  let away = ''

  beforeAll(() => {
    node = kernelNode()
    files = agentFiles()
    ;[away = ''] = createNamespaces(['away'])
  })
  afterEach(async () => {
    agent.child.kill('SIGTERM')
    await agent.ended
  })
  afterAll(() => {
    node.close()
    files.remove()
    removeNamespaces([away])
  })

  const start = async (): Promise<void> => {
    const own = ['--node', 'n1', '--from', files.from, '--status', files.status, '--bpffs', node.folder]
    agent = spawnAgent([...own, '--mode', 'enforce', '--metrics-listen', 'none'], { namespace: node.host })
    await until('it has started', () => agent.output().includes('mode enforce'), 20_000, agent.output)
  }
  const objects = (devices: Readonly<Record<string, string>>): readonly RawRecord[] => [
    ...Object.entries(devices).flatMap(([name, device]) => [
      attachment(name, { device }),
      binding(name, { egress: name === 'open' ? 'ping' : 'shut', ingress: 'shut' }),
    ]),
    policy('ping'),
    policy('shut', { rules: [rest] }),
  ]
  const stateOf = (name: string) => files.entry(`tenant/${name}`)?.egress?.state
  const applied = (name: string) => until(name, () => stateOf(name) === 'Applied', 10_000, agent.output)
  const indexOf = (name: string): string => {
    const [link] = JSON.parse(mustRun(['ip', '-n', node.host, '-j', 'link', 'show', name])) as { ifindex: number }[]
    return String(link?.ifindex)
  }
  const move = (name: string, from: string, to: string): void =>
    void mustRun(['ip', '-n', from, 'link', 'set', name, 'netns', to])
  /** As `node.attach` does, but with an index of the caller's choice. */
  const make = (name: string, index: string): void => {
    const { host, workload } = node.addressesOf(name)
    const lines = [
      `link add ${name} index ${index} netns ${node.host} type veth peer name w-${name} netns ${node.workload}`,
    ]
    mustRun(['ip', '-batch', '-'], `${lines.join('\n')}\n`)
    node.attach(name)
    mustRun(['ip', '-n', node.host, '-batch', '-'], `addr add ${host}/24 dev ${name}\nlink set ${name} up\n`)
    mustRun(
      ['ip', '-n', node.workload, '-batch', '-'],
      `addr add ${workload}/24 dev w-${name}\nlink set w-${name} up\n`,
    )
  }

  test('one that takes the index of one that was moved away is not taken for it: it denies until its own policy is there', async () => {
    files.write(objects({ open: 'i1', closed: 'i2' }))
    node.attach('i1')
    await start()
    await applied('open')
    const index = indexOf('i1')
    move('i1', node.host, away)
    make('i2', index)
    await applied('closed')
    expect(node.passes('i2', 'egress')).toBe(false)
    expect(mustRun(['ip', '-n', node.host, 'link', 'show', 'i2'])).toMatch(/state UP/)
    // The one that was moved keeps its programs, its row and its policy.
    expect(stateOf('open')).toBe('Applied')
    node.unlink('i2')
    move('i1', away, node.host)
    const { host } = node.addressesOf('i1')
    mustRun(['ip', '-n', node.host, '-batch', '-'], `addr replace ${host}/24 dev i1\nlink set i1 up\n`)
    await until('the other one is gone', () => stateOf('closed') === 'Pending', 5000, agent.output)
    expect(stateOf('open')).toBe('Applied')
    await until('it answers again', () => node.passes('i1', 'egress'), 5000, agent.output)
    node.unlink('i1')
  })

  test('one made anew by the name of one that was moved away has the policy at once, and the other denies on', async () => {
    files.write(objects({ open: 'i3' }))
    node.attach('i3')
    await start()
    await applied('open')
    move('i3', node.host, away)
    mustRun(['ip', '-n', node.workload, '-batch', '-'], 'addr flush dev w-i3\nlink set w-i3 down name w-old\n')
    make('i3', '240')
    await until('the new one is published', () => node.passes('i3', 'egress'), 8000, agent.output)
    expect(stateOf('open')).toBe('Applied')
    expect(agent.output()).not.toMatch(/cannot be told/)
    node.unlink('i3')
    mustRun(['ip', '-n', away, 'link', 'delete', 'i3'])
  })

  test('policy show knows an interface by the name that it has now', async () => {
    files.write(objects({ open: 'i5' }))
    node.attach('i4')
    mustRun(['ip', '-n', node.host, 'link', 'set', 'i4', 'down', 'name', 'i5', 'up'])
    await start()
    await applied('open')
    const show = (): string => {
      const words = ['policy', 'show', 'tenant/open', '--from', files.from, '--node', 'n1', '--bpffs', node.folder]
      return runCommand(inside(node.host, [process.execPath, '--import', 'tsx', 'src/cli/main.ts', ...words])).output
    }
    expect(show()).toMatch(/^ {2}snapshot {2}tenant\/ping, generation 1/m)
    node.unlink('i5')
  })
})
