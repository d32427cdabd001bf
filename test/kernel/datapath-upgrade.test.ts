/** A new version meets what an earlier one left: its own folder, renamed, stands for the earlier version's. */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { datapathVersion } from '#compile/traffic-policy/datapath-maps'
import { openBpf } from '#kernel/bpf-sys'
import { type Datapath, openAttacher, openDatapath } from '#kernel/datapath'
import { type Fault, withFaults } from '#kernel/faults'
import { queryHook } from '#kernel/links'
import { loadNative, type Native } from '#kernel/native'
import { insideNamespace, namespaceInode, ownNamespace } from '#kernel/network-namespace'
import { takeWriterLock } from '#kernel/writer-lock'
import { allowAll, denyAll, hostIp, type Lab, openLab, pings, publish } from './datapath-lab'
import { describeKernel } from './describe-kernel'
import { endWithUs, inside, removeNamespaces } from './namespace'
import { mustRun, waitUntil } from './run-command'

describeKernel('a datapath that an earlier version left', () => {
  const native = loadNative()
  let lab: Lab | undefined
  let datapath: Datapath | undefined
  afterEach(() => {
    datapath?.close()
    datapath = undefined
    if (lab === undefined) return
    removeNamespaces([lab.host, lab.workload])
    lab.folder.remove()
  })

  /** Enforced with both directions allowed; the lab's own datapath is closed. */
  const openOlder = (by: Native = native): Lab & { readonly older: string } => {
    lab = openLab({ native: by })
    lab.datapath.setMode('enforce')
    publish(lab, 'ingress', allowAll)
    publish(lab, 'egress', { entries: [{ protocol: 'udp', action: 'deny', rule: 0 }, ...allowAll.entries] })
    lab.datapath.close()
    const older = join(lab.folder.path, 'v1')
    renameSync(join(lab.folder.path, `v${datapathVersion}`), older)
    return { ...lab, older }
  }
  const programsOn = (host: string): readonly number[] =>
    insideNamespace(native, `/run/netns/${host}`, () =>
      (['ingress', 'egress'] as const).map((hook) => queryHook(openBpf(native), hook, indexOf(host)).length),
    )
  const indexOf = (host: string): number =>
    (JSON.parse(mustRun(['ip', '-n', host, '-j', 'link', 'show', 'host0'])) as { ifindex: number }[])[0]?.ifindex ?? 0

  test.each([
    ['TCX', []],
    ['clsact', ['no-tcx']],
  ] as const)('by %s its interfaces and mode are taken over: denied until a policy is published', (_, faults) => {
    const by = withFaults(native, new Set<Fault>(faults))
    const { folder, older, host, workload, held } = openOlder(by)
    expect(pings(workload, hostIp)).toBe(true)
    const stream = startStream(host, workload)
    datapath = openDatapath({ folder: folder.path, native: by })
    const { sent, passed } = stream.end()
    expect(sent).toBeGreaterThan(100)
    expect(passed).toBe(0)
    expect(datapath.mode()).toBe('enforce')
    const [now] = datapath.interfaces()
    expect(now).toMatchObject({ name: 'host0', side: held.side, index: held.index, namespace: held.namespace })
    expect(now?.token).not.toBe(held.token)
    expect(programsOn(host)).toEqual(faults.length === 0 ? [1, 1] : [0, 0])
    expect(now === undefined || datapath.isAttached(now)).toBe(true)
    expect(existsSync(older)).toBe(false)
    expect(pings(workload, hostIp)).toBe(false)
    for (const direction of ['ingress', 'egress'] as const)
      publish({ datapath, held: now ?? held }, direction, allowAll)
    expect(pings(workload, hostIp)).toBe(true)
    publish({ datapath, held: now ?? held }, 'egress', denyAll)
    expect(pings(workload, hostIp)).toBe(false)
  })

  test('what is gone is not taken over, and what was half made is no hindrance', () => {
    const { folder, older, host } = openOlder()
    mustRun(['ip', '-n', host, 'link', 'delete', 'host0'])
    datapath = openDatapath({ folder: folder.path })
    expect(datapath.interfaces()).toEqual([])
    expect(existsSync(older)).toBe(false)
    datapath.close()
    mkdirSync(join(older, 'tp_tables'), { recursive: true })
    datapath = openDatapath({ folder: folder.path })
    expect(existsSync(older)).toBe(false)
  })

  test('one that was renamed and moved is found by its program; in a namespace without a name it keeps it', () => {
    const { folder, older, host, workload } = openOlder()
    const nameless = spawn('unshare', ['--net', 'sleep', '600'], { stdio: 'ignore' })
    endWithUs(nameless)
    const pid = String(nameless.pid)
    const there = `/proc/${pid}/ns/net`
    try {
      waitUntil('the namespace is there', () => namespaceInode(there) !== namespaceInode(ownNamespace))
      mustRun(['ip', '-n', host, 'link', 'set', 'host0', 'netns', pid])
      datapath = openDatapath({ folder: folder.path })
      expect(datapath.interfaces()).toEqual([])
      expect(readdirSync(join(older, 'tp_links'))).toHaveLength(2)
      for (const change of [
        ['host0', 'name', 'moved0'],
        ['moved0', 'netns', workload],
      ])
        mustRun(['nsenter', `--net=${there}`, 'ip', 'link', 'set', ...change])
      datapath.close()
      datapath = openDatapath({ folder: folder.path })
      expect(datapath.interfaces().map(({ name }) => name)).toEqual(['moved0'])
      expect(existsSync(older)).toBe(false)
    } finally {
      nameless.kill()
    }
  })

  test('while its agent runs the new one is refused, and nothing is made or changed', () => {
    const { folder, older, host, workload } = openOlder()
    const lock = takeWriterLock(native, older)
    expect(() => openDatapath({ folder: folder.path })).toThrow(/another agent writes to .*\/v1; stop it/)
    lock.release()
    expect(existsSync(join(folder.path, `v${datapathVersion}`))).toBe(false)
    expect(programsOn(host)).toEqual([1, 1])
    expect(pings(workload, hostIp)).toBe(true)
  })

  test('what a CNI chain attaches before the new agent has started is under the mode that the node had', () => {
    const { folder, older } = openOlder()
    const attacher = openAttacher({ folder: folder.path })
    expect(attacher.mode()).toBe('enforce')
    attacher.setMode('audit')
    attacher.close()
    datapath = openDatapath({ folder: folder.path })
    expect(datapath.mode()).toBe('audit')
    expect(existsSync(older)).toBe(false)
  })
})

/** UDP of the workload, which its policy denies, as much as there can be: what was sent, and what came behind the hook. */
function startStream(host: string, workload: string) {
  mustRun(
    inside(host, ['nft', '-f', '-']),
    `table netdev behind {
      counter passed { }
      chain first { type filter hook ingress device "host0" priority 0; meta l4proto udp counter name "passed"; }
    }\n`,
  )
  const sentBy = (): number => Number(mustRun(inside(workload, ['cat', '/sys/class/net/eth0/statistics/tx_packets'])))
  const before = sentBy()
  const script = new URL('./udp-blast.mjs', import.meta.url).pathname
  const [program = '', ...args] = inside(workload, [process.execPath, script, hostIp, '9', '10000000'])
  const child = spawn(program, args, { stdio: 'ignore' })
  endWithUs(child)
  waitUntil('it is sending', () => sentBy() > before + 10)
  return {
    end() {
      child.kill('SIGKILL')
      const listed = mustRun(inside(host, ['nft', 'list', 'counter', 'netdev', 'behind', 'passed']))
      return { sent: sentBy() - before, passed: Number(/packets (\d+)/.exec(listed)?.[1]) }
    },
  }
}
