/** Tables whose pins went while no agent ran: nothing is made beside what the programs use, and nothing is let through. */
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { datapathMaps, datapathVersion, usualSizes } from '#compile/traffic-policy/datapath-maps'
import { openBpf } from '#kernel/bpf-sys'
import { type Datapath, openAttacher, openDatapath } from '#kernel/datapath'
import { queryHook } from '#kernel/links'
import { loadNative } from '#kernel/native'
import { insideNamespace } from '#kernel/network-namespace'
import { createBpffsFolder } from './bpffs-folder'
import { allowAll, createPair, denyAll, hitsOf, hostIp, type Lab, openLab, pings, publish } from './datapath-lab'
import { describeKernel } from './describe-kernel'
import { inside, removeNamespaces } from './namespace'
import { mustRun } from './run-command'

const names = Object.values(datapathMaps(usualSizes)).map(({ name }) => name)
const needed = ['tp_config', 'tp_interfaces']

describeKernel('tables that lost their pins', () => {
  const native = loadNative()
  let lab: Lab | undefined
  let datapath: Datapath | undefined
  afterEach(() => {
    datapath?.close()
    datapath = undefined
    if (lab === undefined) return
    removeNamespaces([lab.host, lab.workload])
    lab.folder.remove()
    lab = undefined
  })

  /** Enforced, with pings out and none in; its process is gone, and so is that table's pin. */
  const lose = (table: string): Lab => {
    lab = openLab()
    lab.datapath.setMode('enforce')
    publish(lab, 'egress', allowAll)
    publish(lab, 'ingress', denyAll)
    lab.datapath.close()
    rmSync(join(lab.folder.path, `v${datapathVersion}`, 'tp_tables', table))
    return lab
  }
  const programsOn = (host: string): readonly number[] => {
    const index = Number(mustRun(inside(host, ['cat', '/sys/class/net/host0/ifindex'])))
    return insideNamespace(native, `/run/netns/${host}`, () =>
      (['ingress', 'egress'] as const).map((hook) => queryHook(openBpf(native), hook, index).length),
    )
  }

  test.each(names.filter((name) => !needed.includes(name)))(
    '%s: the next agent makes the datapath anew, and denies until it publishes',
    (table) => {
      const { folder, host, workload } = lose(table)
      datapath = openDatapath({ folder: folder.path })
      expect(datapath.mode()).toBe('enforce')
      const [held] = datapath.interfaces()
      if (held === undefined) throw new Error('it was taken over')
      expect(programsOn(host)).toEqual([1, 1])
      expect(readdirSync(folder.path).filter((name) => /^v\d/.test(name))).toEqual([`v${datapathVersion}`])
      expect(pings(workload, hostIp)).toBe(false)
      const now = { datapath, held }
      publish(now, 'egress', allowAll)
      publish(now, 'ingress', denyAll)
      expect(pings(workload, hostIp)).toBe(true)
      expect(hitsOf(now, 'egress', 0)).toBeGreaterThan(0)
      publish(now, 'egress', { ...denyAll, generation: 2 })
      expect(pings(workload, hostIp)).toBe(false)
    },
  )

  test.each(needed)('%s: refused with what to do, and what is bound decides on', (table) => {
    const { folder, workload } = lose(table)
    for (const open of [openDatapath, openAttacher]) {
      expect(() => open({ folder: folder.path })).toThrow(
        new RegExp(`has lost ${table}, which the programs of its interfaces use.*; make the interfaces anew`),
      )
    }
    expect(pings(workload, hostIp)).toBe(true)
  })

  test('who attaches in between makes a datapath beside it, which the next agent takes over with the rest', () => {
    const { folder, workload } = lose('tp_bound')
    const other = createPair()
    const attacher = openAttacher({ folder: folder.path })
    expect(attacher.mode()).toBe('enforce')
    attacher.attach({ name: 'host0', namespacePath: `/run/netns/${other.host}`, side: 'host' })
    attacher.close()
    expect(pings(workload, hostIp)).toBe(true)
    datapath = openDatapath({ folder: folder.path })
    expect(datapath.interfaces()).toHaveLength(2)
    expect(pings(workload, hostIp)).toBe(false)
    removeNamespaces([other.host, other.workload])
  })

  test('while its agent runs nobody makes others', () => {
    const running = openLab()
    const tables = join(running.folder.path, `v${datapathVersion}`, 'tp_tables')
    rmSync(join(tables, 'tp_bound'))
    expect(() => openAttacher({ folder: running.folder.path })).toThrow(/lost tp_bound, and another agent writes to it/)
    expect(existsSync(join(tables, 'tp_bound'))).toBe(false)
    running.close()
  })

  test('where nothing is attached only the mode is kept', () => {
    const folder = createBpffsFolder()
    const first = openDatapath({ folder: folder.path })
    first.setMode('audit')
    first.close()
    rmSync(join(folder.path, `v${datapathVersion}`, 'tp_tables', 'tp_bound'))
    const again = openDatapath({ folder: folder.path })
    expect(again.mode()).toBe('audit')
    const { host, workload } = createPair()
    const held = again.attach({ name: 'host0', namespacePath: `/run/netns/${host}`, side: 'host' })
    publish({ datapath: again, held }, 'egress', allowAll)
    expect(again.published({ slot: held.slot, direction: 'egress' })?.snapshot?.policyUid).toBe('egress-policy')
    again.close()
    removeNamespaces([host, workload])
    folder.remove()
  })
})
