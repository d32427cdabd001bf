/** `portolan agent` as a process: files, interfaces and modes that change, its death under traffic, and where it cannot enforce. */
import { spawn } from 'node:child_process'
import { chmodSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { RawRecord } from '#manifests/text/raw-object'
import { type AgentWorld, agentWorld } from '../agent/agent-world'
import { attachment, binding, echo, policy, rest } from '../agent/traffic-objects'
import { type KernelNode, kernelNode } from './agent-kernel'
import { type AgentFiles, type AgentProcess, agentFiles, type ProcessOptions, spawnAgent, until } from './agent-process'
import { createBpffsFolder } from './bpffs-folder'
import { bringUp, createPair, hostIp, pings } from './datapath-lab'
import { describeKernel } from './describe-kernel'
import { endWithUs, inside, removeNamespaces } from './namespace'
import { runCommand } from './run-command'

const web = (device: string): readonly RawRecord[] => [
  attachment('web', { device }),
  binding('web', { egress: 'ping', ingress: 'ping' }),
]

describeKernel('an agent’s process', () => {
  let node: KernelNode
  let files: AgentFiles
  const running: AgentProcess[] = []

  beforeAll(() => {
    node = kernelNode()
    files = agentFiles()
  })
  afterEach(async () => {
    for (const one of running.splice(0)) {
      one.child.kill('SIGTERM')
      await one.ended
    }
  })
  afterAll(() => {
    node.close()
    files.remove()
  })

  const start = (more: readonly string[] = [], options: ProcessOptions = {}): AgentProcess => {
    const own = ['--node', 'n1', '--from', files.from, '--status', files.status, '--metrics-listen', '127.0.0.1:0']
    const agent = spawnAgent([...own, '--bpffs', node.folder, ...more], { namespace: node.host, ...options })
    running.push(agent)
    return agent
  }
  const state = () => files.entry('tenant/web')?.egress

  test('interfaces, files and modes: each change is in force at once, a second agent is refused, SIGTERM leaves all', async () => {
    files.write([...web('p1'), policy('ping')])
    const agent = start(['--mode', 'enforce'])
    await until('the agent has started', () => agent.output().includes('traffic policy in mode enforce'))
    await until('the entry is written', () => state()?.state === 'Pending')
    node.attach('p1')
    expect(await until('what was attached is published', () => state()?.state === 'Applied')).toBeLessThan(4000)
    expect([node.passes('p1', 'egress'), node.passes('p1', 'ingress')]).toEqual([true, true])
    files.write([...web('p1'), policy('ping', { generation: 2, rules: [rest] })])
    expect(await until('the edit is applied', () => state()?.policy?.generation === 2)).toBeLessThan(1000)
    expect(node.passes('p1', 'egress')).toBe(false)
    files.write([...web('p1'), policy('ping', { generation: 3 })])
    await until('the edit is applied', () => state()?.policy?.generation === 3)
    expect(node.passes('p1', 'egress')).toBe(true)

    const second = start()
    expect(await second.ended).toBe(2)
    expect(second.output()).toMatch(
      /^portolan: another agent writes to .*; stop it, or give this one a folder of its own$/m,
    )

    const [, url = ''] = /metrics on (\S+)/.exec(agent.output()) ?? []
    const scraped = runCommand(
      inside(node.host, [process.execPath, '-e', `fetch('${url}').then(async (r) => console.log(await r.text()))`]),
    )
    expect(scraped, agent.output()).toMatchObject({ ok: true })
    expect(scraped.output).toMatch(/^portolan_traffic_policy_mode\{mode="enforce"\} 1$/m)
    expect(scraped.output).toMatch(/rule_hits_total\{.*attachment="web".*direction="egress".*rule="echo".*\} 1$/m)

    node.unlink('p1')
    await until('the interface that went is told', () => state()?.state === 'Pending', 4000)
    node.attach('p1')
    await until('the new one is published', () => state()?.state === 'Applied', 4000)
    agent.child.kill('SIGTERM')
    expect(await agent.ended).toBe(0)
    expect(agent.output()).toMatch(/the agent ends; what is bound stays/)
    expect(node.passes('p1', 'egress')).toBe(true)
  })

  test('in a network namespace that it does not hear of, one made anew by the same name has the policy at once', async () => {
    files.write([...web('p7'), policy('ping')])
    const agent = start(['--mode', 'enforce'], { namespace: undefined })
    const isStarted = (): boolean => agent.output().includes('traffic policy in mode enforce')
    await until('the agent has started', isStarted, 20_000, agent.output)
    node.attach('p7')
    await until('what was attached is published', () => state()?.state === 'Applied', 4000, agent.output)
    node.unlink('p7')
    // Of another index, as the kernel gives it: nobody takes the new one for the old.
    const { host, workload } = node.addressesOf('p7')
    const lines = [
      ['link', 'add', 'p7', 'index', '250', 'netns', node.host, 'type', 'veth', 'peer', 'w-p7', 'netns', node.workload],
      ['-n', node.host, 'addr', 'add', `${host}/24`, 'dev', 'p7'],
      ['-n', node.workload, 'addr', 'add', `${workload}/24`, 'dev', 'w-p7'],
      ['-n', node.host, 'link', 'set', 'p7', 'up'],
      ['-n', node.workload, 'link', 'set', 'w-p7', 'up'],
    ]
    for (const line of lines) expect(runCommand(['ip', ...line])).toMatchObject({ ok: true })
    node.attach('p7')
    await until('the new one is published', () => node.passes('p7', 'egress'), 10_000, agent.output)
    expect(state()?.state).toBe('Applied')
    node.unlink('p7')
  })

  test('killed while traffic flows, it enforces as before; the next one adopts what is bound, counts and all', async () => {
    files.write([...web('p1'), policy('ping', { generation: 5 })])
    node.attach('p1')
    const first = start(['--mode', 'enforce'])
    await until(
      'the agent has started',
      () => state()?.policy?.generation === 5 && first.output().includes('mode enforce'),
      20_000,
      first.output,
    )
    const { host } = node.addressesOf('p1')
    const [program = '', ...args] = inside(node.workload, ['ping', '-n', '-i', '0.02', '-c', '300', '-W', '1', host])
    const stream = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'] })
    endWithUs(stream)
    let told = ''
    stream.stdout.on('data', (bytes) => {
      told += String(bytes)
    })
    const streamed = new Promise((resolve) => stream.once('close', resolve))
    const pins = node.pins()
    const written = JSON.stringify(files.entry('tenant/web'))
    first.child.kill('SIGKILL')
    expect(await first.ended).toBe('SIGKILL')
    expect(node.passes('p1', 'egress')).toBe(true)
    const again = start()
    await until('it has started again', () => again.output().includes('traffic policy in mode enforce'))
    await streamed
    expect(told).toMatch(/300 packets transmitted, 300 received, 0% packet loss/)
    expect(node.pins()).toEqual(pins)
    expect(again.output()).not.toMatch(/"published"/)
    expect(JSON.stringify(files.entry('tenant/web'))).toBe(written)
  })

  test('without capabilities everything but enforcement works, and says why', async () => {
    files.write([
      ...web('p1'),
      policy('ping', { rules: [{ ...echo, name: 'Bad Name' }] }),
      binding('late', { egress: 'no' }),
    ])
    for (const path of [join(files.from, '..'), files.from]) chmodSync(path, 0o777)
    const status = join(files.from, '..', 'status-of-nobody')
    const nobody = ['setpriv', '--reuid=65534', '--clear-groups', '--bounding-set=-all', '--inh-caps=-all']
    const agent = spawnAgent(
      [
        '--node',
        'n1',
        '--from',
        files.from,
        '--status',
        status,
        '--bpffs',
        '/nowhere',
        '--mode',
        'enforce',
        '--metrics-listen',
        '127.0.0.1:0',
      ],
      { namespace: node.host, before: nobody },
    )
    running.push(agent)
    await until(
      'the agent has started',
      () => agent.output().includes('traffic policy in mode unsupported'),
      20_000,
      agent.output,
    )
    expect(agent.output()).toMatch(
      /the datapath cannot be opened: .*not permitted; run with the capabilities BPF, NET_ADMIN and/,
    )
    const path = join(status, 'portolan-agent-n1/trafficpolicybindings/tenant/web.json')
    await until('the entry is written', () => existsSync(path), 20_000, agent.output)
    const [entry] = JSON.parse(readFileSync(path, 'utf8')).status.nodes
    expect(entry).toMatchObject({
      mode: 'Unsupported',
      ingress: { state: 'Failed', message: expect.stringMatching(/Bad Name/) },
    })
  })

  test.each([
    ['no-memory', /there is not enough memory/],
    ['refused-load', /the verifier/],
  ])('a kernel that cannot (%s) is told in the status, and the agent goes on', async (fault, why) => {
    files.write([...web('p1'), policy('ping')])
    const agent = start(['--mode', 'audit'], { environment: { PORTOLAN_FAULTS: fault } })
    await until('the entry tells it', () => why.test(state()?.message ?? ''), 20_000, agent.output)
    expect(files.entry('tenant/web')).toMatchObject({ mode: 'Unsupported', egress: { state: 'Failed' } })
    expect(agent.output()).toMatch(new RegExp(`"faults":"${fault}"`))
  })

  test('34: on a kernel that cannot, what is asked for is Unsupported, and traffic that nothing is attached to is forwarded', async () => {
    const pair = createPair()
    bringUp(pair.host, pair.workload)
    const other = agentFiles()
    const folder = createBpffsFolder()
    other.write([...web('host0'), policy('ping', { rules: [rest] })])
    const argv = ['--node', 'n1', '--from', other.from, '--status', other.status, '--bpffs', folder.path]
    const options = { namespace: pair.host, environment: { PORTOLAN_FAULTS: 'refused-load' } }
    const refused = spawnAgent(['attach', 'host0', '--mode', 'enforce', '--bpffs', folder.path], options)
    expect(await refused.ended, refused.output()).toBe(2)
    const agent = spawnAgent([...argv, '--mode', 'enforce', '--metrics-listen', 'none'], options)
    running.push(agent)
    await until('it is told', () => other.entry('tenant/web')?.mode === 'Unsupported', 20_000, agent.output)
    expect(other.entry('tenant/web')?.egress).toMatchObject({
      state: 'Failed',
      message: expect.stringMatching(/verifier/),
    })
    expect(pings(pair.workload, hostIp)).toBe(true)
    running.splice(0)
    agent.child.kill('SIGTERM')
    await agent.ended
    removeNamespaces([pair.host, pair.workload])
    folder.remove()
    other.remove()
  })

  test('16: a route reflector refuses traffic policy, also by the environment, and runs without', async () => {
    const refused = start(['--role', 'route-reflector'], { environment: { GALACTIC_ROUTER_TRAFFIC_POLICY: 'true' } })
    expect(await refused.ended).toBe(2)
    expect(refused.output()).toMatch(/^portolan: a route reflector forwards no packets/m)
    const before = node.pins()
    const idle = start(['--role', 'route-reflector'])
    await until('it has started', () => idle.output().includes('traffic policy is off'), 20_000, idle.output)
    expect(node.pins()).toEqual(before)
  })

  test('an interface that is renamed is the attachment’s that names it now', async () => {
    files.write([...web('p8'), policy('ping', { generation: 4 })])
    const agent = start(['--mode', 'enforce'])
    node.attach('p8')
    await until('it is published', () => state()?.policy?.generation === 4, 20_000, agent.output)
    expect(runCommand(inside(node.host, ['ip', 'link', 'set', 'p8', 'name', 'p9'])).ok).toBe(true)
    await until('the old name is nobody’s', () => state()?.state === 'Pending', 4000, agent.output)
    expect(state()?.message).toMatch(/interface p8 is not attached/)
    files.write([...web('p9'), policy('ping', { generation: 4 })])
    await until('the new name is known', () => state()?.state === 'Applied', 4000, agent.output)
    expect(agent.output().match(/"published":2/g)).toHaveLength(1)
    runCommand(inside(node.host, ['ip', 'link', 'del', 'p9']))
  })
})

describeKernel('policies that change under load', () => {
  let node: KernelNode
  let world: AgentWorld

  beforeAll(async () => {
    node = kernelNode({ counterRows: 1000 })
    world = agentWorld(node)
    node.attach('p1')
  })
  afterAll(async () => {
    await world.stop()
    node.close()
  })

  test('edited, rebound and removed: nothing is denied that both allow, and nothing passes that both deny', async () => {
    const rules = (count: number) => [
      ...Array.from({ length: count }, (_, index) => ({ ...rest, name: `r${index}`, match: { protocols: ['SCTP'] } })),
      echo,
    ]
    const bound = (name: string, generation: number) => [
      attachment('web', { device: 'p1' }),
      binding('web', { egress: name, ingress: name, generation }),
      policy('one', { generation, rules: rules(generation % 7) }),
      policy('two', { generation, rules: rules(generation % 5) }),
    ]
    await world.set(bound('one', 1))
    await world.start({ mode: 'enforce' })
    const { host } = node.addressesOf('p1')
    const ping = load(node, ['ping', '-n', '-q', '-i', '0.005', '-c', '600', '-W', '1', host])
    const blast = load(node, [
      process.execPath,
      new URL('./udp-blast.mjs', import.meta.url).pathname,
      host,
      '9',
      '60000',
    ])
    const before = receivedUdp(node)
    let generation = 1
    while (!ping.isOver() || !blast.isOver()) {
      generation += 1
      await world.set(bound(generation % 3 === 0 ? 'two' : 'one', generation))
      expect(world.entry('tenant/web')?.egress?.state).toBe('Applied')
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    expect(generation).toBeGreaterThan(30)
    expect(ping.output()).toMatch(/600 packets transmitted, 600 received, 0% packet loss/)
    expect(receivedUdp(node) - before).toBe(0)
    await world.set(bound('lost', generation + 1))
    expect(node.passes('p1', 'egress')).toBe(false)
    await world.set(bound('one', generation + 2))
    expect(node.passes('p1', 'egress')).toBe(true)
    // What was denied was sent: without a policy it arrives.
    node.setMode('off')
    const open = load(node, [process.execPath, new URL('./udp-blast.mjs', import.meta.url).pathname, host, '9', '1000'])
    await until('the packets are sent', open.isOver)
    expect(receivedUdp(node) - before).toBeGreaterThan(500)
  })
})

describeKernel('path classes', () => {
  test('a packet’s mark gives it a path class, by which a rule takes it or not', async () => {
    const node = kernelNode()
    const world = agentWorld(node)
    node.attach('p1')
    const rules = [{ ...echo, match: { protocols: ['ICMP'], paths: ['Private'] } }]
    await world.set([...web('p1'), policy('ping', { rules })])
    await world.start({ mode: 'enforce', pathMark: { mask: 0x7000000, shift: 24 } })
    const { workload } = node.addressesOf('p1')
    const passes = (mark: string): boolean =>
      runCommand(inside(node.host, ['ping', '-n', '-c', '1', '-W', '0.2', '-m', mark, workload])).ok
    // Private is the first class, Internet the second.
    expect([passes('16777216'), passes('33554432'), passes('0')]).toEqual([true, false, false])
    await world.stop()
    node.close()
  })
})

describeKernel('a kernel before TCX', () => {
  test('interfaces that are attached by clsact are published to, adopted, and dropped when they go', async () => {
    const node = kernelNode()
    node.faults.add('no-tcx')
    const world = agentWorld(node)
    node.attach('p1')
    await world.set([...web('p1'), policy('ping')])
    await world.start({ mode: 'enforce' })
    expect(node.passes('p1', 'egress')).toBe(true)
    const pins = node.pins()
    await world.stop()
    await world.start()
    expect([node.pins(), node.passes('p1', 'egress')]).toEqual([pins, true])
    node.unlink('p1')
    await world.hear({ name: 'p1', mayBeGone: true })
    expect([world.entry('tenant/web')?.egress?.state, node.pins()]).toEqual(['Pending', []])
    await world.stop()
    node.close()
  })
})

function load(node: KernelNode, command: readonly string[]) {
  const [program = '', ...args] = inside(node.workload, command)
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  endWithUs(child)
  let output = ''
  let isOver = false
  child.stdout.on('data', (bytes) => {
    output += String(bytes)
  })
  child.once('close', () => {
    isOver = true
  })
  return { output: () => output, isOver: () => isOver }
}

/** Datagrams that reached the host's end, whether or not anybody listens. */
function receivedUdp(node: KernelNode): number {
  const lines = runCommand(inside(node.host, ['cat', '/proc/net/snmp'])).output.split('\n')
  const [, numbers = ''] = lines.filter((line) => line.startsWith('Udp:'))
  const [, received = 0, nobody = 0] = numbers.split(' ').map(Number)
  return received + nobody
}
