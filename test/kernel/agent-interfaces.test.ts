/** Interfaces that change their name, place and index under a running agent: each is told by its programs, never by a number. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { openBpf } from '#kernel/bpf-sys'
import { withPin } from '#kernel/bpffs'
import { foldersOf } from '#kernel/datapath-tables'
import { detachLink } from '#kernel/links'
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

  const start = async (environment = {}): Promise<void> => {
    rmSync(files.status, { recursive: true, force: true })
    const own = ['--node', 'n1', '--from', files.from, '--status', files.status, '--bpffs', node.folder]
    const argv = [...own, '--mode', 'enforce', '--metrics-listen', 'none']
    agent = spawnAgent(argv, { namespace: node.host, environment })
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
  /** One way, whether or not an answer comes back. */
  const reaches = (name: string, direction: 'ingress' | 'egress'): boolean => {
    const end = direction === 'egress' ? node.host : node.workload
    const before = echoesAt(end)
    node.passes(name, direction)
    return echoesAt(end) > before
  }
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

  test.each([
    ['ingress', 'egress', 'ingress'],
    ['egress', 'ingress', 'egress'],
  ] as const)(
    'where another hand takes off the link of the %s hook, the next look puts it back, and the other hook is never open',
    async (hook, direction, other) => {
      files.write(objects({ closed: 'i7' }))
      const { slot } = node.attach('i7')
      await start()
      await applied('closed')
      withPin(openBpf(), join(foldersOf(node.folder).links, `${slot}-${hook}`), (fd) => detachLink(openBpf(), fd))
      // The agent may have looked already: whatever comes or goes makes it.
      expect(reaches('i7', other)).toBe(false)
      node.attach('i8')
      await until('it is told', () => /and they are put back/.test(agent.output()), 2000, agent.output)
      expect([reaches('i7', direction), reaches('i7', other)]).toEqual([false, false])
      expect(stateOf('closed')).toBe('Applied')
      for (const name of ['i7', 'i8']) node.unlink(name)
    },
  )

  test.each([
    ['a filter of one hook', 'filter del dev i6 ingress prio 1'],
    ['that of the other hook', 'filter del dev i6 egress prio 1'],
    ['the clsact queueing discipline', 'qdisc del dev i6 clsact'],
  ])('where another hand takes off %s, it is put back at once, and what was denied is denied', async (_, line) => {
    node.faults.add('no-tcx')
    files.write(objects({ closed: 'i6' }))
    node.attach('i6')
    await start({ PORTOLAN_FAULTS: 'no-tcx' })
    await applied('closed')
    const goes = () => [reaches('i6', 'egress'), reaches('i6', 'ingress')]
    expect(goes()).toEqual([false, false])
    mustRun(inside(node.host, ['tc', ...line.split(' ')]))
    await until('it is told', () => /and they are put back; .*find out who/.test(agent.output()), 2000, agent.output)
    await until('it is published', () => stateOf('closed') === 'Applied', 2000, agent.output)
    expect(goes()).toEqual([false, false])
    files.write([...objects({ closed: 'i6' }).slice(0, 2), policy('shut')])
    await until('an edit is in force', () => goes().every(Boolean), 4000, agent.output)
    node.unlink('i6')
    await until('it is gone', () => stateOf('closed') === 'Pending', 4000, agent.output)
    node.faults.clear()
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

/** Echo requests that this end was ever given. */
function echoesAt(namespace: string): number {
  const lines = mustRun(inside(namespace, ['cat', '/proc/net/snmp'])).split('\n')
  const [names = [], values = []] = lines.filter((line) => line.startsWith('Icmp:')).map((line) => line.split(' '))
  return Number(values[names.indexOf('InEchos')])
}
