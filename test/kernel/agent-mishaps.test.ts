/** What befalls an agent in its life: disks, signals, files of any size, and interfaces that go in the middle of a step. */
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import type { RawRecord } from '#manifests/text/raw-object'
import { agentWorld } from '../agent/agent-world'
import { attachment, binding, echo, policy, rest } from '../agent/traffic-objects'
import { type KernelNode, kernelNode } from './agent-kernel'
import { type AgentFiles, type AgentProcess, agentFiles, spawnAgent, until } from './agent-process'
import { describeKernel } from './describe-kernel'
import { inside } from './namespace'
import { mustRun, runCommand } from './run-command'

const objects = (device: string, generation = 1, rules = [echo]): readonly RawRecord[] => [
  attachment('web', { device }),
  binding('web', { egress: 'ping', ingress: 'ping' }),
  policy('ping', { generation, rules }),
]

describeKernel('mishaps of an agent’s process', () => {
  let node: KernelNode
  let files: AgentFiles
  let agent: AgentProcess
  let folder: string

  beforeAll(() => {
    node = kernelNode()
    files = agentFiles()
    folder = mkdtempSync(join(tmpdir(), 'portolan-mishaps-'))
    node.attach('m1')
  })
  afterEach(async () => {
    agent.child.kill('SIGTERM')
    await agent.ended
  })
  afterAll(() => {
    node.close()
    files.remove()
    rmSync(folder, { recursive: true, force: true })
  })

  const generation = () => files.entry('tenant/web')?.egress?.policy?.generation
  const start = async (...more: readonly string[]): Promise<void> => {
    const own = ['--node', 'n1', '--from', files.from, '--status', files.status, '--bpffs', node.folder]
    agent = spawnAgent([...own, '--mode', 'enforce', '--metrics-listen', '127.0.0.1:0', ...more], {
      namespace: node.host,
    })
    await until('it has started', () => agent.output().includes('mode enforce'), 20_000, agent.output)
  }
  const passes = (): boolean => node.passes('m1', 'egress')

  test.each([
    [
      'full',
      (place: string): void => void runCommand(['sh', '-c', `cat /dev/zero > ${place}/filler 2>/dev/null`]),
      (place: string): void => rmSync(join(place, 'filler')),
      /ENOSPC/,
    ],
    [
      'read-only',
      (place: string): void => void mustRun(['mount', '-o', 'remount,ro', place]),
      (place: string): void => void mustRun(['mount', '-o', 'remount,rw', place]),
      /EROFS/,
    ],
  ] as const)(
    'a status folder that becomes %s: policies are in force all the same, and it is told and made up for',
    async (_, spoil, mend, why) => {
      mkdirSync(files.status, { recursive: true })
      mustRun(['mount', '-t', 'tmpfs', '-o', 'size=64k', 'portolan', files.status])
      files.write(objects('m1'))
      await start()
      await until('it is told', () => generation() === 1 && passes(), 10_000, agent.output)
      spoil(files.status)
      files.write(objects('m1', 2, [rest]))
      await until('it is in force', () => !passes(), 5000, agent.output)
      await until('it is logged', () => why.test(agent.output()), 5000, agent.output)
      expect(agent.output()).toMatch(/the status .*web\.json cannot be written: .*; .*--status/)
      mend(files.status)
      await until('it is written', () => generation() === 2, 8000, agent.output)
      agent.child.kill('SIGTERM')
      expect(await agent.ended).toBe(0)
      mustRun(['umount', files.status])
    },
  )

  test('a bpffs that becomes read-only: what is bound decides on, statuses say why an edit is not in force, and it is made up for', async () => {
    files.write(objects('m1', 20))
    await start()
    await until('it is told', () => generation() === 20, 10_000, agent.output)
    mustRun(['mount', '-o', 'remount,ro', node.folder])
    try {
      files.write(objects('m1', 21, [rest]))
      await until('it is told', () => files.entry('tenant/web')?.egress?.state === 'Failed', 5000, agent.output)
      expect(files.entry('tenant/web')?.egress).toMatchObject({
        policy: { generation: 20 },
        message: expect.stringMatching(/generation 21 cannot be installed: .*read-only.*\(EROFS\)/),
      })
      expect(passes()).toBe(true)
      // A second look, which any interface that goes sets off.
      mustRun(['ip', '-n', node.host, 'link', 'add', 'gone0', 'type', 'veth', 'peer', 'gone1'])
      mustRun(['ip', '-n', node.host, 'link', 'delete', 'gone0'])
      const why = /"msg":"opening the pin .* read-only; mount the bpffs read-write \(EROFS\)"/
      await until('it is logged', () => why.test(agent.output()), 7000, agent.output)
      const entry = files.entry('tenant/web')
      await new Promise((resolve) => setTimeout(resolve, 5500))
      // Tried again, and told once.
      expect(agent.output().match(/a step failed/g)).toHaveLength(2)
      expect(files.entry('tenant/web')).toEqual(entry)
      expect(agent.output()).not.toMatch(/reconciling failed|is gone/)
      const words = ['policy', 'show', 'tenant/web', '--from', files.from, '--node', 'n1', '--bpffs', node.folder]
      const shown = runCommand(inside(node.host, [process.execPath, '--import', 'tsx', 'src/cli/main.ts', ...words]))
      expect(shown.output).toMatch(/snapshot {2}tenant\/ping, generation 20/)
    } finally {
      mustRun(['mount', '-o', 'remount,rw', node.folder])
    }
    await until('it is made up for', () => generation() === 21 && !passes(), 8000, agent.output)
  })

  test('one that ends while its bpffs is read-only does not say that anything opens, and nothing does', async () => {
    files.write(objects('m1', 30, [rest]))
    await start()
    await until('it is told', () => generation() === 30, 10_000, agent.output)
    mustRun(['mount', '-o', 'remount,ro', node.folder])
    agent.child.kill('SIGTERM')
    expect(await agent.ended).toBe(0)
    mustRun(['mount', '-o', 'remount,rw', node.folder])
    expect(agent.output()).toMatch(/read-only; .*; the agent ends, and the pins of its programs are there/)
    expect(agent.output()).not.toMatch(/are open/)
    expect(passes()).toBe(false)
  })

  test('a folder of objects that is removed and put back takes nothing with it, and counts again at once', async () => {
    files.write(objects('m1', 3))
    await start()
    await until('it is told', () => generation() === 3, 10_000, agent.output)
    renameSync(files.from, join(folder, 'away'))
    await until('it is logged', () => /there is no file or folder .*counts on/.test(agent.output()), 5000, agent.output)
    expect([passes(), generation()]).toEqual([true, 3])
    renameSync(join(folder, 'away'), files.from)
    files.write(objects('m1', 4, [rest]))
    await until('it counts', () => generation() === 4 && !passes(), 5000, agent.output)
    rmSync(files.from, { recursive: true })
    writeFileSync(files.from, 'no folder any more')
    await until(
      'it is logged',
      () =>
        /from is a file now, where a folder stood; put the folder back; what was read of it before counts on/.test(
          agent.output(),
        ),
      5000,
      agent.output,
    )
    expect([passes(), generation()]).toEqual([false, 4])
    rmSync(files.from)
    mkdirSync(files.from)
    files.write(objects('m1', 5))
    await until('it counts', () => generation() === 5 && passes(), 8000, agent.output)
  })

  test('200,000 objects in 100 MB are not read: the agent serves what it had, says why, and stays small', async () => {
    files.write(objects('m1', 6))
    await start()
    await until('it is told', () => generation() === 6, 10_000, agent.output)
    const note = 'x'.repeat(330)
    const one = (index: number): string =>
      `---\napiVersion: portolan.dev/v1alpha1\nkind: TrafficPolicy\nmetadata: {namespace: n, name: p-${index}, annotations: {note: ${note}}}\nspec: {rules: [{name: a, action: Allow}]}\n`
    const text = Array.from({ length: 200_000 }, (_, index) => one(index)).join('')
    expect(text.length).toBeGreaterThan(90e6)
    writeFileSync(join(folder, 'huge'), text)
    renameSync(join(folder, 'huge'), join(files.from, 'huge.yaml'))
    await until(
      'it is logged',
      () => /huge\.yaml is not used: .*more than 32 MB; give fewer kinds/.test(agent.output()),
      5000,
      agent.output,
    )
    expect(passes()).toBe(true)
    files.write(objects('m1', 7, [rest]))
    await until('an edit beside it counts', () => generation() === 7 && !passes(), 5000, agent.output)
    const memory = runCommand(['cat', `/proc/${agent.child.pid}/status`]).output
    expect(Number(/VmHWM:\s+(\d+) kB/.exec(memory)?.[1])).toBeLessThan(250_000)
    rmSync(join(files.from, 'huge.yaml'))
  })

  test.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    '%s in the middle of publishing ends it with 0, and the next one goes on',
    async (signal) => {
      files.write(objects('m1', 10))
      await start()
      await until('it is told', () => generation() === 10, 10_000, agent.output)
      for (let edit = 11; edit < 16; edit++)
        files.write(objects('m1', edit, edit % 2 === 0 ? [rest] : [echo, { ...rest, name: `r${edit}` }]))
      agent.child.kill(signal)
      expect(await agent.ended).toBe(0)
      expect(agent.output()).toMatch(new RegExp(`"signal":"${signal}".*the agent ends; what is bound stays`))
      expect(node.pins()).toHaveLength(2)
      await start()
      await until('it is told', () => generation() === 15, 10_000, agent.output)
      expect([passes(), node.pins().length]).toEqual([true, 2])
      expect(agent.output()).not.toMatch(/"level":"error"/)
    },
  )
})

describeKernel('an interface in the middle of publishing', () => {
  test.each([
    ['create tp_snapshot', 'vanishes', (host: string) => ['ip', '-n', host, 'link', 'delete', 'q1']],
    ['fill snapshot', 'vanishes', (host: string) => ['ip', '-n', host, 'link', 'delete', 'q1']],
    ['swap snapshot', 'vanishes', (host: string) => ['ip', '-n', host, 'link', 'delete', 'q1']],
    ['swap snapshot', 'is renamed', (host: string) => ['ip', '-n', host, 'link', 'set', 'q1', 'name', 'q2']],
    [
      'swap snapshot',
      'is moved',
      (host: string, other: string) => ['ip', '-n', host, 'link', 'set', 'q1', 'netns', other],
    ],
  ] as const)(
    'at the step "%s" it %s: nothing of it is left over, and the others are served',
    async (step, what, command) => {
      const node = kernelNode()
      const world = agentWorld(node)
      for (const name of ['q1', 'q9']) node.attach(name)
      const both = (generation: number): RawRecord[] => [
        attachment('web', { device: 'q1' }),
        binding('web', { egress: 'ping', ingress: 'ping' }),
        attachment('other', { device: 'q9' }),
        binding('other', { egress: 'ping', ingress: 'ping' }),
        policy('ping', { generation }),
      ]
      await world.set(both(1))
      await world.start({ mode: 'enforce' })
      let isDone = false
      node.steps.before = (now) => {
        if (isDone || now !== step) return
        isDone = true
        mustRun(command(node.host, node.workload))
      }
      await world.set(both(2))
      expect(isDone).toBe(true)
      node.steps.before = undefined
      await world.hear({ name: 'q1', mayBeGone: true })
      expect(world.entry('tenant/other')?.egress).toMatchObject({ state: 'Applied', policy: { generation: 2 } })
      expect(node.passes('q9', 'egress')).toBe(true)
      const isGone = what === 'vanishes'
      expect(node.pins()).toHaveLength(isGone ? 2 : 4)
      expect(world.entry('tenant/web')?.egress?.state).toBe(isGone ? 'Pending' : 'Applied')
      expect(world.logged.join()).not.toMatch(/this is a bug/)
      if (what === 'is renamed') {
        const { workload } = node.addressesOf('q1')
        expect(runCommand(inside(node.host, ['ping', '-n', '-c', '1', '-W', '1', workload])).ok).toBe(true)
      }
      await world.stop()
      node.close()
    },
  )
})
