/** A bpffs that goes from under a running agent and comes again: what is attached decides on, and is pinned anew as it is. */
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { openBpf } from '#kernel/bpf-sys'
import { mountBpffs } from '#kernel/bpffs'
import { openAttacher } from '#kernel/datapath'
import { foldersOf } from '#kernel/datapath-tables'
import { readNodeMode } from '#kernel/node-mode'
import type { RawRecord } from '#manifests/text/raw-object'
import { type AgentWorld, agentWorld } from '../agent/agent-world'
import { attachment, binding, echo, policy, rest } from '../agent/traffic-objects'
import { type KernelNode, kernelNode } from './agent-kernel'
import { agentFiles, spawnAgent, until } from './agent-process'
import { describeKernel } from './describe-kernel'
import { endWithUs, inside } from './namespace'
import { mustRun, runCommand, sleep } from './run-command'

const objects = (device: string, generation = 1, rules = [echo]): readonly RawRecord[] => [
  attachment('web', { device }),
  binding('web', { egress: 'ping' }),
  policy('ping', { generation, rules }),
]

for (const hooks of ['tcx', 'clsact'] as const)
  describeKernel(`a bpffs that goes and comes again (${hooks})`, () => {
    let node: KernelNode
    let world: AgentWorld
    let count = 0
    let device = ''

    beforeAll(() => {
      node = kernelNode()
    })
    beforeEach(async () => {
      if (hooks === 'clsact') node.faults.add('no-tcx')
      count += 1
      device = `b${count}`
      node.attach(device)
      world = agentWorld(node)
      await world.set(objects(device))
      await world.start({ mode: 'enforce' })
      expect(verdicts()).toEqual({ egress: true, ingress: false })
    })
    afterEach(async () => {
      await world.stop()
      node.faults.clear()
      node.unlink(device)
    })
    afterAll(() => node.close())

    const verdicts = () => ({ egress: node.passes(device, 'egress'), ingress: node.passes(device, 'ingress') })
    /** What the built-in policy denies is sent all the time; tells how much of it arrived, and whether any would without a policy. */
    const sendDenied = (): (() => { readonly arrived: number; readonly arrivesWithout: boolean }) => {
      const { workload } = node.addressesOf(device)
      const [program = '', ...args] = inside(node.host, ['ping', '-n', '-q', '-i', '0.005', '-W', '1', workload])
      const child = spawn(program, args, { stdio: 'ignore' })
      endWithUs(child)
      const before = receivedEchos(node)
      return () => {
        const arrived = receivedEchos(node) - before
        node.setMode('off')
        sleep(100)
        const arrivesWithout = receivedEchos(node) - before > 5
        node.setMode('enforce')
        child.kill('SIGKILL')
        return { arrived, arrivesWithout }
      }
    }
    const unmount = (): void => void mustRun(['umount', '--lazy', node.folder])
    const mount = (): void => mountBpffs(openBpf(), node.folder)
    const egress = () => world.entry('tenant/web')?.egress
    const hits = () =>
      world
        .agent()
        .view()
        .interfaces[0]?.directions.find(({ direction }) => direction === 'egress')?.installed?.rules?.[0]?.hits

    test('unmounted: it decides on, the status says what is lost and what to do, and a mount heals all of it', async () => {
      const denied = sendDenied()
      unmount()
      await world.advance(300)
      expect(egress()).toMatchObject({
        state: 'Applied',
        policy: { generation: 1 },
        message: expect.stringMatching(
          /no bpffs any more.*what is bound decides on while this agent runs.*mount -t bpf bpf .*portolan-bpffs-.*pinned again/,
        ),
      })
      expect(world.entry('tenant/web')?.mode).toBe('Enforce')
      expect(world.agent().trouble()).toMatch(/no bpffs any more/)
      expect(verdicts()).toEqual({ egress: true, ingress: false })
      await world.set(objects(device, 2, [rest]))
      expect(egress()).toMatchObject({
        state: 'Failed',
        policy: { generation: 1 },
        message: expect.stringMatching(/generation 2 cannot be installed: .*no bpffs any more.*mount -t bpf bpf/),
      })
      expect(verdicts()).toEqual({ egress: true, ingress: false })
      await world.set(objects(device))
      const counted = hits()
      expect(readNodeMode({ folder: node.folder })).toMatchObject({
        mode: 'unknown',
        reasons: [expect.stringMatching(/is not on a bpffs.*what a running agent holds decides on; mount one/)],
      })
      mount()
      await world.advance(5)
      expect(egress()).toMatchObject({ state: 'Applied', policy: { generation: 1 } })
      expect(egress()).not.toHaveProperty('message')
      expect(world.agent().trouble()).toBeUndefined()
      expect(node.pins().length).toBe(2)
      await world.stop()
      expect(verdicts()).toEqual({ egress: true, ingress: false })
      const logged = world.logged.length
      await world.start()
      expect(world.logged.slice(logged)).not.toContain('reconciled')
      expect([world.entry('tenant/web')?.mode, hits()]).toEqual(['Enforce', (counted ?? 0n) + 1n])
      expect(denied()).toEqual({ arrived: 0, arrivesWithout: true })
      expect(verdicts()).toEqual({ egress: true, ingress: false })
    })

    test('unmounted and mounted again between two looks: an agent that ends pins everything first', async () => {
      unmount()
      mount()
      await world.stop()
      expect(verdicts()).toEqual({ egress: true, ingress: false })
      expect(node.pins().length).toBe(2)
    })

    test('an agent that must end without its bpffs says what goes with it', async () => {
      unmount()
      await world.stop()
      expect(world.logged.join()).toMatch(
        /no bpffs any more.*the agent ends before that, and programs that TCX links hold go/,
      )
      expect(verdicts().ingress).toBe(hooks === 'tcx')
      mount()
      node.unlink(device)
      node.reopen()
      node.setMode('enforce')
    })

    test('removed: the folder and everything in it are made again at the next pass', async () => {
      const { root } = foldersOf(node.folder)
      const before = readdirSync(root, { recursive: true }).length
      const denied = sendDenied()
      rmSync(root, { recursive: true })
      expect(verdicts()).toEqual({ egress: true, ingress: false })
      await world.advance(300)
      expect(readdirSync(root, { recursive: true }).length).toBe(before)
      expect(verdicts()).toEqual({ egress: true, ingress: false })
      await world.stop()
      expect(verdicts()).toEqual({ egress: true, ingress: false })
      await world.start()
      expect(world.entry('tenant/web')).toMatchObject({ mode: 'Enforce', egress: { state: 'Applied' } })
      expect(denied()).toEqual({ arrived: 0, arrivesWithout: true })
      expect(verdicts()).toEqual({ egress: true, ingress: false })
    })

    test.each(['tp_tables', 'tp_links', 'tp_programs', 'tp_snapshots'])(
      'single pins that are removed (%s): nothing opens, and each is made again',
      async (folder) => {
        const place = join(foldersOf(node.folder).root, folder)
        const before = readdirSync(place).sort()
        for (const name of before) rmSync(join(place, name))
        await world.hear({ mayBeGone: true })
        expect(verdicts()).toEqual({ egress: true, ingress: false })
        await world.advance(300)
        expect(readdirSync(place).sort()).toEqual(before)
        await world.stop()
        expect(verdicts()).toEqual({ egress: true, ingress: false })
      },
    )

    test('an interface that goes while there is no bpffs is heard of, and is no more when it is mounted again', async () => {
      unmount()
      node.unlink(device)
      await world.hear({ name: device, mayBeGone: true })
      expect(egress()?.state).toBe('Pending')
      mount()
      await world.advance(5)
      expect(node.pins()).toEqual([])
      expect(readdirSync(foldersOf(node.folder).links)).toEqual([])
    })

    test('what a CNI chain attached meanwhile on the new mount is taken over, and never open', async () => {
      unmount()
      await world.advance(300)
      mount()
      const other = `${device}o`
      const attacher = openAttacher({ folder: node.folder })
      attacher.startMode('enforce')
      attacher.close()
      node.attachAnew(other)
      expect(node.passes(other, 'egress')).toBe(false)
      await world.set([
        ...objects(device),
        attachment('other', { device: other }),
        binding('other', { egress: 'ping', ingress: 'ping' }),
      ])
      await world.advance(5)
      expect(world.entry('tenant/other')?.egress?.state).toBe('Applied')
      expect([node.passes(other, 'egress'), node.passes(other, 'ingress')]).toEqual([true, true])
      expect(verdicts()).toEqual({ egress: true, ingress: false })
      const left = readdirSync(node.folder).filter((name) => !name.endsWith('.debug'))
      expect(left).toEqual([basename(foldersOf(node.folder).root)])
      node.unlink(other)
    })

    test('what a process that ended in the middle has left aside is taken over at the start, and never open', async () => {
      await world.stop()
      const { root } = foldersOf(node.folder)
      renameSync(root, `${root}-aside-1`)
      const denied = sendDenied()
      expect(verdicts()).toEqual({ egress: true, ingress: false })
      await world.start({ mode: 'enforce' })
      await world.advance(5)
      expect(world.logged.join()).toMatch(/interfaces of another datapath in the same folder are taken over/)
      expect(egress()?.state).toBe('Applied')
      expect(verdicts()).toEqual({ egress: true, ingress: false })
      const left = readdirSync(node.folder).filter((name) => !name.endsWith('.debug'))
      expect(left).toEqual([basename(root)])
      node.reopen()
      expect(denied()).toEqual({ arrived: 0, arrivesWithout: true })
    })

    test('an interface that has programs of a datapath without pins is not attached a second time in silence', async () => {
      unmount()
      mount()
      expect(() => node.attachAnew(device)).toThrow(
        new RegExp(`${device} has programs of another datapath.*pins are gone.*agent.*pins them again`),
      )
      expect(existsSync(foldersOf(node.folder).links) ? readdirSync(foldersOf(node.folder).links) : []).toEqual([])
      expect(verdicts()).toEqual({ egress: true, ingress: false })
      await world.advance(300)
      expect(verdicts()).toEqual({ egress: true, ingress: false })
      expect(egress()).not.toHaveProperty('message')
    })
  })

for (const hooks of ['tcx', 'clsact'] as const)
  describeKernel(`an agent that ends without its bpffs (${hooks})`, () => {
    test('the next one says that mode and interfaces are gone, and what still has programs; nothing is off in silence', async () => {
      const node = kernelNode()
      const files = agentFiles()
      if (hooks === 'clsact') node.faults.add('no-tcx')
      node.attach('m1')
      files.write(objects('m1'))
      const environment = hooks === 'clsact' ? { PORTOLAN_FAULTS: 'no-tcx' } : {}
      const argv = ['--node', 'n1', '--from', files.from, '--status', files.status, '--bpffs', node.folder]
      const start = (...more: string[]) =>
        spawnAgent([...argv, '--metrics-listen', 'none', ...more], { namespace: node.host, environment })
      const egress = () => files.entry('tenant/web')?.egress
      const first = start('--mode', 'enforce')
      await until('it is published', () => egress()?.state === 'Applied', 20_000, first.output)
      mustRun(['umount', '--lazy', node.folder])
      first.child.kill('SIGKILL')
      await first.ended
      mountBpffs(openBpf(), node.folder)
      const next = start()
      await until('the status tells', () => egress()?.state === 'Pending', 20_000, next.output)
      expect(files.entry('tenant/web')?.mode).toBe('Off')
      // The log's line comes after the status is written.
      const lost = /nothing is decided: the datapath is new.*enforce, is gone.*portolan agent mode enforce/
      await until('the log tells', () => lost.test(next.output()), 20_000, next.output)
      if (hooks === 'clsact') {
        // Filters outlive the agent, with the tables they read.
        expect(egress()?.message).toMatch(/m1 has programs of another datapath.*make the interface anew/)
        expect(() => node.attachAnew('m1')).toThrow(/m1 has programs of another datapath/)
        expect([node.passes('m1', 'egress'), node.passes('m1', 'ingress')]).toEqual([true, false])
      } else {
        expect(egress()?.message).toMatch(/m1 is not attached to the datapath yet; attach it/)
      }
      next.child.kill('SIGTERM')
      expect(await next.ended).toBe(0)
      node.close()
      files.remove()
    })
  })

/** Echo requests that reached the workload. */
function receivedEchos(node: KernelNode): number {
  const lines = runCommand(inside(node.workload, ['cat', '/proc/net/snmp'])).output.split('\n')
  const [names = '', numbers = ''] = lines.filter((line) => line.startsWith('Icmp:'))
  return Number(numbers.split(' ')[names.split(' ').indexOf('InEchos')])
}
