/** Devices of other kinds than a veth pair, and hooks that another program is on already: denied from the first packet, then as published. */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { assemble } from '#compile/bpf/assemble'
import { createAssembler } from '#compile/bpf/assembler'
import { openBpf } from '#kernel/bpf-sys'
import { pin } from '#kernel/bpffs'
import { type Datapath, openDatapath } from '#kernel/datapath'
import { type Fault, withFaults } from '#kernel/faults'
import { createLink, queryHook } from '#kernel/links'
import { loadNative } from '#kernel/native'
import { insideNamespace } from '#kernel/network-namespace'
import { loadProgram } from '#kernel/programs'
import { type BpffsFolder, createBpffsFolder } from './bpffs-folder'
import { allowAll, bringUp, createPair, denyAll, fallbacksOf, hostIp, pings, publish, workloadIp } from './datapath-lab'
import { describeKernel } from './describe-kernel'
import { createNamespaces, inside, removeNamespaces } from './namespace'
import { mustRun, waitUntil } from './run-command'

/** "Let it through": no program after this one is asked. */
function passing() {
  const a = createAssembler()
  a.mov(0, 0)
  a.exit()
  return a.listing
}

describeKernel('devices under the datapath', () => {
  const native = loadNative()
  let folder: BpffsFolder
  let datapath: Datapath

  beforeAll(() => {
    folder = createBpffsFolder()
    datapath = openDatapath({ folder: folder.path })
    datapath.setMode('enforce')
  })
  afterAll(() => {
    datapath.close()
    folder.remove()
  })

  const ip = (namespace: string, ...lines: readonly string[]): void => {
    mustRun(['ip', '-n', namespace, '-batch', '-'], `${lines.join('\n')}\n`)
  }
  const attach = (namespace: string, name: string, side: 'host' | 'workload' = 'workload') =>
    datapath.attach({ name, namespacePath: `/run/netns/${namespace}`, side })

  test('a loopback device decides each packet twice, out and in again, and the answer is of the connection', () => {
    const [alone = ''] = createNamespaces(['alone'])
    const held = attach(alone, 'lo')
    const lab = { datapath, held }
    ip(alone, 'link set lo up')
    expect(pings(alone, '127.0.0.1')).toBe(false)
    publish(lab, 'egress', allowAll)
    publish(lab, 'ingress', denyAll)
    expect(pings(alone, '127.0.0.1')).toBe(false)
    publish(lab, 'ingress', allowAll)
    expect(pings(alone, '127.0.0.1')).toBe(true)
    expect(pings(alone, '::1')).toBe(true)
    expect(fallbacksOf(lab, 'ingress').established).toBeGreaterThan(0n)
    datapath.detach(held)
    removeNamespaces([alone])
  })

  test('a bridge and a macvlan are as any other', () => {
    const { host, workload } = createPair()
    ip(host, 'link add br0 type bridge forward_delay 0', 'link set host0 master br0', 'link set host0 up')
    const bridge = attach(host, 'br0')
    ip(host, `addr add ${hostIp}/24 dev br0`, 'link set br0 up')
    ip(workload, 'link add link eth0 name mac0 type macvlan mode bridge', 'link set eth0 up')
    const macvlan = attach(workload, 'mac0')
    ip(workload, `addr add ${workloadIp}/24 dev mac0`, 'link set mac0 up')
    expect(pings(workload, hostIp)).toBe(false)
    publish({ datapath, held: macvlan }, 'egress', allowAll)
    publish({ datapath, held: macvlan }, 'ingress', denyAll)
    expect(pings(workload, hostIp)).toBe(false)
    publish({ datapath, held: bridge }, 'ingress', allowAll)
    publish({ datapath, held: bridge }, 'egress', denyAll)
    // A neighbour that was not found is not sought again at once.
    waitUntil('an answer comes', () => pings(workload, hostIp), 20_000)
    expect(pings(host, workloadIp)).toBe(false)
    datapath.detach(bridge)
    datapath.detach(macvlan)
    removeNamespaces([host, workload])
  })

  test.each(['ip-0123456789ab', '-4', 'dev', 'a@b', 'häuschen'])('an interface that is called %s', (name) => {
    const { host, workload } = createPair()
    mustRun(['ip', '-n', host, 'link', 'set', 'dev', 'host0', 'name', name])
    const held = attach(host, name, 'host')
    expect(held.name).toBe(name)
    expect(datapath.interfaces().find(({ slot }) => slot === held.slot)).toEqual(held)
    expect(datapath.isAttached(held)).toBe(true)
    datapath.detach(held)
    removeNamespaces([host, workload])
  })

  test('what another program lets through before is decided all the same, and that program runs after', () => {
    const { host, workload } = createPair()
    const bpf = openBpf(native)
    const foreign = loadProgram(bpf, 'foreign', assemble(passing()), () => 0)
    const index = Number(mustRun(inside(host, ['cat', '/sys/class/net/host0/ifindex'])))
    const programs = (): readonly number[] =>
      insideNamespace(native, `/run/netns/${host}`, () => queryHook(bpf, 'ingress', index))
    insideNamespace(native, `/run/netns/${host}`, () => {
      for (const hook of ['ingress', 'egress'] as const) createLink(bpf, hook, foreign.fd, index)
    })
    const before = programs()
    const held = attach(host, 'host0', 'host')
    expect(programs().slice(1)).toEqual(before)
    bringUp(host, workload)
    expect(pings(workload, hostIp)).toBe(false)
    publish({ datapath, held }, 'egress', allowAll)
    publish({ datapath, held }, 'ingress', denyAll)
    expect([pings(workload, hostIp), pings(host, workloadIp)]).toEqual([true, false])
    datapath.detach(held)
    expect(programs()).toEqual(before)
    removeNamespaces([host, workload])
  })

  test('on a kernel without TCX our filter goes before another one of its place', () => {
    const other = createBpffsFolder()
    const path = join(other.path, 'foreign')
    const bpf = openBpf(native)
    pin(bpf, loadProgram(bpf, 'foreign', assemble(passing()), () => 0).fd, path)
    const without = openDatapath({ folder: other.path, native: withFaults(native, new Set<Fault>(['no-tcx'])) })
    without.setMode('enforce')
    const { host, workload } = createPair()
    mustRun(['tc', '-n', host, 'qdisc', 'add', 'dev', 'host0', 'clsact'])
    const place = ['dev', 'host0', 'ingress', 'protocol', 'all', 'prio', '1']
    mustRun(['tc', '-n', host, 'filter', 'add', ...place, 'bpf', 'direct-action', 'object-pinned', path])
    const held = without.attach({ name: 'host0', namespacePath: `/run/netns/${host}`, side: 'host' })
    bringUp(host, workload)
    expect(pings(workload, hostIp)).toBe(false)
    publish({ datapath: without, held }, 'egress', allowAll)
    publish({ datapath: without, held }, 'ingress', denyAll)
    expect([pings(workload, hostIp), pings(host, workloadIp)]).toEqual([true, false])
    without.close()
    removeNamespaces([host, workload])
    other.remove()
  })

  test('where another queueing discipline has the place of clsact, that is said with what to do, and nothing is left', () => {
    const other = createBpffsFolder()
    const without = openDatapath({ folder: other.path, native: withFaults(native, new Set<Fault>(['no-tcx'])) })
    const { host, workload } = createPair()
    mustRun(['tc', '-n', host, 'qdisc', 'add', 'dev', 'host0', 'ingress'])
    const attachHere = () => without.attach({ name: 'host0', namespacePath: `/run/netns/${host}`, side: 'host' })
    expect(attachHere).toThrow(
      /clsact failed: .*; host0 has another queueing discipline .*\(tc qdisc delete dev host0 ingress\)/,
    )
    expect(without.interfaces()).toEqual([])
    mustRun(['tc', '-n', host, 'qdisc', 'delete', 'dev', 'host0', 'ingress'])
    expect(without.isAttached(attachHere())).toBe(true)
    without.close()
    removeNamespaces([host, workload])
    other.remove()
  })
})
