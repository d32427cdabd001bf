/** Interfaces of the datapath: no open moment from link-up on, modes, both ways onto the hook, and word of new ones. */

import { spawn, spawnSync } from 'node:child_process'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { usualSizes } from '#compile/traffic-policy/datapath-maps'
import { openAttacher, openDatapath } from '#kernel/datapath'
import { type Fault, parseFaults, withFaults } from '#kernel/faults'
import { loadNative } from '#kernel/native'
import { insideNamespace } from '#kernel/network-namespace'
import { runPreflight } from '#kernel/preflight'
import { type LinkEvent, listInterfaces, watchLinks } from '#kernel/rtnetlink'
import { createBpffsFolder } from './bpffs-folder'
import {
  allowAll,
  bringUp,
  createPair,
  denyAll,
  fallbacksOf,
  hitsOf,
  hostIp,
  type Lab,
  openLab,
  pings,
  publish,
  workloadIp,
} from './datapath-lab'
import { describeKernel } from './describe-kernel'
import { createNamespaces, endWithUs, inside, removeNamespaces } from './namespace'
import { mustRun, runCommand, waitUntil } from './run-command'

/** What the workload's end was ever given by the host's end. */
function received(workload: string): number {
  const output = mustRun(['ip', '-n', workload, '-s', '-j', 'link', 'show', 'eth0'])
  return Number((JSON.parse(output) as { stats64: { rx: { packets: number } } }[])[0]?.stats64.rx.packets)
}

describeKernel('interfaces of the datapath', () => {
  let lab: Lab

  beforeAll(() => {
    lab = openLab()
    publish(lab, 'ingress', denyAll)
  })
  afterAll(() => lab.close())

  test('attached before link-up, nothing passes from the first packet on, and without it the first packets do', () => {
    const sendFromLinkUp = (isHeld: boolean): number => {
      const { host, workload } = createPair()
      if (isHeld) {
        lab.datapath.setMode('enforce')
        lab.datapath.attach({ name: 'host0', namespacePath: `/run/netns/${host}`, side: 'host' })
      }
      mustRun(['ip', '-n', workload, 'link', 'set', 'eth0', 'up'])
      const mac = 'lladdr 02:00:00:00:00:02 dev host0 nud permanent'
      const script = `ip addr add ${hostIp}/24 dev host0; ip link set host0 up; ip neigh add ${workloadIp} ${mac};
        ping -n -c 50 -i 0.002 -W 0.1 ${workloadIp} > /dev/null`
      runCommand(inside(host, ['sh', '-c', script]))
      const count = received(workload)
      removeNamespaces([host, workload])
      return count
    }
    expect(sendFromLinkUp(false)).toBeGreaterThanOrEqual(50)
    expect(sendFromLinkUp(true)).toBe(0)
  })

  test('an interface without a policy denies both ways, for that reason, and says so in its denials', () => {
    lab.datapath.setMode('enforce')
    lab.datapath.readDenials(() => {})
    const { host, workload } = createPair()
    const held = lab.datapath.attach({ name: 'host0', namespacePath: `/run/netns/${host}`, side: 'host' })
    bringUp(host, workload)
    expect(pings(workload, hostIp)).toBe(false)
    expect(fallbacksOf({ datapath: lab.datapath, held }, 'egress').policy_unavailable).toBeGreaterThan(0n)
    const reasons = new Set<string>()
    lab.datapath.readDenials((denial) => {
      if (denial.slot === held.slot && denial.token === held.token) reasons.add(`${denial.mode} ${denial.reason}`)
    })
    expect([...reasons]).toEqual(['enforce policy_unavailable'])
    lab.datapath.detach(held)
    expect(lab.datapath.interfaces().map(({ slot }) => slot)).not.toContain(held.slot)
    expect(pings(workload, hostIp)).toBe(true)
    removeNamespaces([host, workload])
  })

  test('audit counts as enforce does and drops nothing; off does neither', () => {
    publish(lab, 'egress', { uid: 'modes', stateful: false, entries: [{ protocol: 'icmp', action: 'deny', rule: 0 }] })
    const counted = (mode: 'off' | 'audit' | 'enforce') => {
      lab.datapath.setMode(mode)
      expect(lab.datapath.mode()).toBe(mode)
      const before = hitsOf(lab, 'egress', 0)
      const passes = pings(lab.workload, hostIp)
      return { passes, hits: hitsOf(lab, 'egress', 0) - before }
    }
    expect(counted('off')).toEqual({ passes: true, hits: 0 })
    expect(counted('audit')).toEqual({ passes: true, hits: 3 })
    expect(counted('enforce')).toEqual({ passes: false, hits: 3 })
  })

  test('attaching again is the same lifetime; an interface made anew under its index is another', () => {
    const { host, workload } = createPair()
    const request = { name: 'host0', namespacePath: `/run/netns/${host}`, side: 'host' } as const
    const first = lab.datapath.attach(request)
    expect(lab.datapath.attach(request)).toEqual(first)
    mustRun(['ip', '-n', host, 'link', 'delete', 'host0'])
    const lines = `link add host0 index ${first.index} type veth peer name eth0 netns ${workload}\n`
    mustRun(['ip', '-n', host, '-batch', '-'], lines)
    expect(lab.datapath.isAttached(first)).toBe(false)
    const second = lab.datapath.attach(request)
    expect(second.index).toBe(first.index)
    expect(second.token).not.toBe(first.token)
    expect(lab.datapath.published({ slot: second.slot, direction: 'egress' })).toBeUndefined()
    expect(lab.datapath.dropGone().gone).not.toContainEqual(second)
    mustRun(['ip', '-n', host, 'link', 'delete', 'host0'])
    expect(lab.datapath.dropGone().gone).toContainEqual(second)
    expect(lab.datapath.interfaces()).not.toContainEqual(second)
    removeNamespaces([host, workload])
  })

  test('the same index in two namespaces is two interfaces, one of them inside the workload', () => {
    const pairs = [createPair(), createPair()]
    lab.datapath.setMode('enforce')
    const held = pairs.map(({ workload }) =>
      lab.datapath.attach({ name: 'eth0', namespacePath: `/run/netns/${workload}`, side: 'workload' }),
    )
    for (const { host, workload } of pairs) bringUp(host, workload)
    expect(held[0]?.index).toBe(held[1]?.index)
    const [one] = held
    if (one === undefined) throw new Error('two were attached')
    publish({ datapath: lab.datapath, held: one }, 'egress', allowAll)
    publish({ datapath: lab.datapath, held: one }, 'ingress', denyAll)
    expect(pairs.map(({ workload }) => pings(workload, hostIp))).toEqual([true, false])
    expect(pairs.map(({ host }) => pings(host, workloadIp))).toEqual([false, false])
    for (const each of held) lab.datapath.detach(each)
    removeNamespaces(pairs.flatMap(({ host, workload }) => [host, workload]))
  })

  test('another process attaches while the agent holds the folder', () => {
    const { host, workload } = createPair()
    const attacher = openAttacher({ folder: lab.folder.path })
    const held = attacher.attach({ name: 'host0', namespacePath: `/run/netns/${host}`, side: 'host' })
    attacher.close()
    lab.datapath.hold()
    lab.datapath.setMode('enforce')
    bringUp(host, workload)
    expect(lab.datapath.interfaces()).toContainEqual(held)
    expect(pings(workload, hostIp)).toBe(false)
    publish({ datapath: lab.datapath, held }, 'egress', allowAll)
    publish({ datapath: lab.datapath, held }, 'ingress', denyAll)
    expect(pings(workload, hostIp)).toBe(true)
    lab.datapath.detach(held)
    removeNamespaces([host, workload])
  })

  test('on a kernel without TCX the same programs are filters of clsact', () => {
    const folder = createBpffsFolder()
    const native = withFaults(loadNative(), new Set<Fault>(['no-tcx']))
    const datapath = openDatapath({ folder: folder.path, native })
    datapath.setMode('enforce')
    const { host, workload } = createPair()
    const held = datapath.attach({ name: 'host0', namespacePath: `/run/netns/${host}`, side: 'host' })
    bringUp(host, workload)
    expect(mustRun(['tc', '-n', host, 'filter', 'show', 'dev', 'host0', 'ingress'])).toMatch(/direct-action/)
    expect(pings(workload, hostIp)).toBe(false)
    publish({ datapath, held }, 'egress', allowAll)
    publish({ datapath, held }, 'ingress', denyAll)
    expect(pings(workload, hostIp)).toBe(true)
    expect(pings(host, workloadIp)).toBe(false)
    expect(datapath.isAttached(held)).toBe(true)
    // By whatever name it goes now.
    mustRun(['ip', '-n', host, 'link', 'set', 'host0', 'down'])
    mustRun(['ip', '-n', host, 'link', 'set', 'host0', 'name', 'host1'])
    expect(datapath.isAttached(held)).toBe(true)
    mustRun(['ip', '-n', host, 'link', 'set', 'host1', 'name', 'host0'])
    mustRun(['ip', '-n', host, 'link', 'set', 'host0', 'up'])
    datapath.detach(held)
    expect(mustRun(['tc', '-n', host, 'filter', 'show', 'dev', 'host0', 'ingress'])).toBe('')
    expect(pings(host, workloadIp)).toBe(true)
    const again = datapath.attach({ name: 'host0', namespacePath: `/run/netns/${host}`, side: 'host' })
    mustRun(['ip', '-n', host, 'link', 'delete', 'host0'])
    const lines = `link add host0 index ${again.index} type veth peer name eth0 netns ${workload}\n`
    mustRun(['ip', '-n', host, '-batch', '-'], lines)
    expect(datapath.isAttached(again)).toBe(false)
    const anew = datapath.attach({ name: 'host0', namespacePath: `/run/netns/${host}`, side: 'host' })
    expect(anew.token).not.toBe(again.token)
    bringUp(host, workload)
    expect(pings(workload, hostIp)).toBe(false)
    datapath.close()
    removeNamespaces([host, workload])
    folder.remove()
  })

  test('moved to another namespace and renamed it keeps its programs and its lifetime, and one slot', () => {
    lab.datapath.setMode('enforce')
    const [host = '', first = '', last = ''] = createNamespaces(['host', 'first', 'last'])
    // So that the index cannot stay what it was.
    const lines = [
      `link add host0 netns ${host} type veth peer name made0 netns ${first}`,
      `link add dummy1 netns ${last} type bridge`,
      `link add dummy2 netns ${last} type bridge`,
    ]
    mustRun(['ip', '-batch', '-'], `${lines.join('\n')}\n`)
    const at = (namespace: string, name: string) =>
      lab.datapath.attach({ name, namespacePath: `/run/netns/${namespace}`, side: 'workload' })
    const held = at(first, 'made0')
    mustRun(['ip', '-n', first, 'link', 'set', 'made0', 'netns', last, 'name', 'eth0'])
    expect(lab.datapath.isAttached(held)).toBe(true)
    expect(lab.datapath.dropGone()).toEqual({ gone: [], hookedAgain: [] })
    bringUp(host, last)
    expect(pings(last, hostIp)).toBe(false)
    const moved = at(last, 'eth0')
    expect(moved).toMatchObject({ slot: held.slot, token: held.token, name: 'eth0' })
    expect(moved.index).not.toBe(held.index)
    publish({ datapath: lab.datapath, held: moved }, 'egress', allowAll)
    publish({ datapath: lab.datapath, held: moved }, 'ingress', denyAll)
    expect([pings(last, hostIp), pings(host, workloadIp)]).toEqual([true, false])
    lab.datapath.detach(moved)
    removeNamespaces([host, first, last])
  })

  test('what another process is attaching right now is not dropped as gone', async () => {
    const { host, workload } = createPair()
    const script = new URL('./killed-at-step.ts', import.meta.url).pathname
    const args = ['--import', 'tsx', script, lab.folder.path, host, '^write interface$', '1', 'slow']
    const child = spawn(process.execPath, args, { stdio: 'inherit' })
    endWithUs(child)
    const ended = new Promise((resolve) => child.once('exit', resolve))
    const before = lab.datapath.interfaces().length
    waitUntil('its row is written', () => lab.datapath.interfaces().length > before, 60_000)
    expect(lab.datapath.dropGone()).toEqual({ gone: [], hookedAgain: [] })
    await ended
    const held = lab.datapath.interfaces().at(-1)
    if (held === undefined) throw new Error('it was attached')
    expect(lab.datapath.isAttached(held)).toBe(true)
    // Who still holds an older lifetime of that slot does not detach this one.
    lab.datapath.detach({ ...held, token: held.token ^ 1n })
    expect(lab.datapath.isAttached(held)).toBe(true)
    lab.datapath.detach(held)
    removeNamespaces([host, workload])
  })

  test('slots of interfaces that are gone are given again, also by no agent; what is there keeps its own', () => {
    const folder = createBpffsFolder()
    const attacher = openAttacher({ folder: folder.path, sizes: { ...usualSizes, slots: 3 } })
    const pairs = [createPair(), createPair(), createPair()]
    const [one, two, three] = pairs.map(
      ({ host }) => ({ name: 'host0', namespacePath: `/run/netns/${host}`, side: 'host' }) as const,
    )
    if (one === undefined || two === undefined || three === undefined) throw new Error('three were made')
    expect([attacher.attach(one).slot, attacher.attach(two).slot]).toEqual([1, 2])
    expect(() => attacher.attach(three)).toThrow(/all 2 slots for interfaces are in use; remove interfaces/)
    mustRun(['ip', '-n', pairs[0]?.host ?? '', 'link', 'delete', 'host0'])
    expect(attacher.attach(three).slot).toBe(1)
    attacher.close()
    removeNamespaces(pairs.flatMap(({ host, workload }) => [host, workload]))
    folder.remove()
  })

  test('an interface that appears is told at once, and one that goes', async () => {
    const [namespace = ''] = createNamespaces(['watched'])
    const events: LinkEvent[] = []
    const native = loadNative()
    const watch = insideNamespace(native, `/run/netns/${namespace}`, () =>
      watchLinks(native, (event) => events.push(event)),
    )
    const told = async (kind: LinkEvent['kind']): Promise<boolean> => {
      for (const end = Date.now() + 5000; Date.now() < end; ) {
        if (events.some((event) => event.kind === kind && 'link' in event && event.link.name === 'new0')) return true
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
      return false
    }
    mustRun(['ip', '-n', namespace, 'link', 'add', 'new0', 'type', 'veth', 'peer', 'name', 'new1'])
    expect(await told('there')).toBe(true)
    const names = insideNamespace(native, `/run/netns/${namespace}`, () =>
      listInterfaces(native).map(({ name }) => name),
    )
    expect(names).toEqual(expect.arrayContaining(['lo', 'new0', 'new1']))
    mustRun(['ip', '-n', namespace, 'link', 'delete', 'new0'])
    expect(await told('gone')).toBe(true)
    watch.close()
    removeNamespaces([namespace])
  })

  test('what is missing is a sentence: no interface, no namespace, no bpffs, no ability, no capability', () => {
    const attach = (name: string, namespacePath: string) => () =>
      lab.datapath.attach({ name, namespacePath, side: 'host' })
    expect(attach('nothing0', `/run/netns/${lab.host}`)).toThrow(/there is no interface nothing0 in .*make it first/)
    expect(attach('host0', '/run/netns/none')).toThrow(/namespace \/run\/netns\/none could not be opened/)
    expect(() => openDatapath({ folder: '/tmp' })).toThrow(/is not on a bpffs; mount one there/)
    expect(() => parseFaults('no-tcx,whatever')).toThrow(/"whatever" is not a fault; known are no-tcx/)
    expect(runPreflight({ folder: lab.folder.path })).toEqual({ ok: true, hooks: 'tcx' })
    const refusing = withFaults(loadNative(), new Set<Fault>(['refused-load']))
    const refused = runPreflight({ native: refusing })
    expect(
      refused.ok ? [] : refused.reasons.map((reason) => /^loading the program .+ failed: the verifier/.test(reason)),
    ).toEqual([true])
    const without = spawnSync(
      'setpriv',
      [
        '--bounding-set=-all',
        '--inh-caps=-all',
        '--reuid=65534',
        '--clear-groups',
        process.execPath,
        '--import',
        'tsx',
        '-e',
        preflightScript,
      ],
      { encoding: 'utf8' },
    )
    expect(without.stdout).toMatch(/run with the capabilities BPF, NET_ADMIN and PERFMON/)
  })
})

const preflightScript =
  "import('#kernel/preflight').then(({ runPreflight }) => console.log(JSON.stringify(runPreflight())))"
