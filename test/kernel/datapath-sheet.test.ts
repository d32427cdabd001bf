/** The sheet's cases about publications, counters and pins, each with its number, on a datapath with real packets. */
import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { hasSameContent } from '#compile/traffic-policy/build-snapshot'
import { datapathVersion, snapshotShape, usualSizes } from '#compile/traffic-policy/datapath-maps'
import type { Action, Entry } from '#compile/traffic-policy/entry'
import { openBpf } from '#kernel/bpf-sys'
import { openPin, pin } from '#kernel/bpffs'
import { openDatapath } from '#kernel/datapath'
import { type Fault, withFaults } from '#kernel/faults'
import { closeMap, createMap } from '#kernel/maps'
import { loadNative } from '#kernel/native'
import { createBpffsFolder } from './bpffs-folder'
import {
  allowAll,
  bringUp,
  createPair,
  denyAll,
  hitsOf,
  hostIp,
  type Lab,
  openLab,
  pings,
  publish,
  requestOf,
  type TestPolicy,
} from './datapath-lab'
import { describeKernel } from './describe-kernel'
import { removeNamespaces } from './namespace'
import { mustRun, runCommand } from './run-command'

type Rule = { readonly name: string; readonly action: Action; readonly match: Omit<Entry, 'action' | 'rule'> }

const echo: Rule = { name: 'http', action: 'allow', match: { protocol: 'icmp', icmpType: 8 } }
const other: Rule = { name: 'other', action: 'deny', match: { protocol: 'sctp' } }

/** Each packet is asked, so that one ping of three is three hits. */
const replies: TestPolicy = { ...allowAll, uid: 'replies', stateful: false }

describeKernel('the sheet’s cases of publications, counters and pins', () => {
  const active = new Set<Fault>()
  let lab: Lab
  let generation = 0

  beforeAll(() => {
    lab = openLab({ native: withFaults(loadNative(), active) })
    lab.datapath.setMode('enforce')
    publish(lab, 'ingress', replies)
  })
  afterEach(() => active.clear())
  afterAll(() => lab.close())

  function bind(uid: string, rules: readonly Rule[]): void {
    generation += 1
    const request = requestOf(lab.held, 'egress', { uid, generation, stateful: false, entries: [] })
    lab.datapath.publish([
      {
        ...request,
        policy: {
          ...request.policy,
          rules: rules.map(({ name, action }) => ({ name, action })),
          entries: rules.map(({ action, match }, rule) => ({ ...match, action, rule })),
        },
      },
    ])
  }
  const egress = () => ({ slot: lab.held.slot, direction: 'egress' }) as const
  const count = (rule: number): number => hitsOf(lab, 'egress', rule)

  test('37 to 40 and 45: a row belongs to policy, name and action; where a rule stands and what it matches is no matter', () => {
    bind('u1', [echo])
    expect(pings(lab.workload, hostIp)).toBe(true)
    expect(count(0)).toBe(3)
    bind('u1', [{ ...echo, match: { protocol: 'icmp' } }])
    expect(count(0), '37: the match is edited').toBe(3)
    bind('u1', [other, echo])
    expect([count(0), count(1)], '45: another rule comes before it').toEqual([0, 3])
    bind('u1', [{ ...echo, name: 'web-http' }, other])
    expect([count(0), count(1)], '38: renamed').toEqual([0, 0])
    bind('u1', [echo])
    expect(count(0), '38: and renamed back').toBe(0)
    expect(pings(lab.workload, hostIp)).toBe(true)
    bind('u1', [{ ...echo, action: 'deny' }])
    expect(count(0), '39: the action is flipped').toBe(0)
    bind('u1', [echo])
    expect(pings(lab.workload, hostIp)).toBe(true)
    bind('u2', [echo])
    expect(count(0), '40: another policy with equal rules').toBe(0)
  })

  test('41: an interface made anew has a new token, inherits nothing and counts from zero', () => {
    const { host, workload } = createPair()
    const request = { name: 'host0', namespacePath: `/run/netns/${host}`, side: 'host' } as const
    const first = lab.datapath.attach(request)
    bringUp(host, workload)
    publish({ ...lab, held: first }, 'egress', allowAll)
    publish({ ...lab, held: first }, 'ingress', denyAll)
    expect(pings(workload, hostIp)).toBe(true)
    expect(hitsOf({ ...lab, held: first }, 'egress', 0)).toBe(1)
    mustRun(['ip', '-n', host, 'link', 'delete', 'host0'])
    const line = `link add host0 index ${first.index} type veth peer name eth0 netns ${workload}\n`
    mustRun(['ip', '-n', host, '-batch', '-'], line)
    const second = lab.datapath.attach(request)
    bringUp(host, workload)
    expect([second.index, second.token === first.token]).toEqual([first.index, false])
    expect(pings(workload, hostIp)).toBe(false)
    publish({ ...lab, held: second }, 'egress', allowAll)
    expect(hitsOf({ ...lab, held: second }, 'egress', 0)).toBe(0)
    lab.datapath.detach(second)
    removeNamespaces([host, workload])
  })

  test('42 and 43: after a restart the content bound is told, so that equal content is adopted and other is not', () => {
    bind('u3', [echo])
    expect(pings(lab.workload, hostIp)).toBe(true)
    lab.datapath.close()
    const again = openDatapath({ folder: lab.folder.path, native: withFaults(loadNative(), active) })
    lab = { ...lab, datapath: again }
    const found = again.published(egress())?.snapshot
    expect(found).toMatchObject({ token: lab.held.token, policyUid: 'u3', generation })
    expect(count(0)).toBe(3)
    if (found === undefined) throw new Error('it was read')
    expect(hasSameContent(found, { ...found, rules: found.rules.map((rule) => ({ ...rule, counterRow: 99 })) })).toBe(
      true,
    )
    expect(hasSameContent(found, { ...found, entries: [...found.entries, ...found.entries] })).toBe(false)
  })

  test('44: a row that cannot be read is none, not zero', () => {
    expect(lab.datapath.readRule(1 << 24)).toBeUndefined()
    expect(lab.datapath.readRule(0)).toBeDefined()
  })

  test('48 and 49: stray pins go at the first sweep, and then only five minutes after the sweep before', () => {
    const bpf = openBpf()
    const pins = join(lab.folder.path, `v${datapathVersion}`, 'tp_snapshots')
    const stray = (): void => {
      const map = createMap(bpf, snapshotShape())
      pin(bpf, map.fd, join(pins, 'stray'))
      closeMap(map)
    }
    stray()
    expect([lab.datapath.sweepWhenDue(1000), existsSync(join(pins, 'stray'))]).toEqual([1, false])
    stray()
    expect(lab.datapath.sweepWhenDue(61_000)).toBe(0)
    expect(lab.datapath.sweepWhenDue(300_999)).toBe(0)
    expect(existsSync(join(pins, 'stray'))).toBe(true)
    expect(lab.datapath.sweepWhenDue(301_000)).toBe(1)
    expect(existsSync(join(pins, 'stray'))).toBe(false)
    expect(pings(lab.workload, hostIp)).toBe(true)
  })

  test('47 and 50: a pin of the right name that holds another snapshot is no matching pin, and verdicts stay', () => {
    bind('u4', [echo])
    const pins = join(lab.folder.path, `v${datapathVersion}`, 'tp_snapshots')
    const [mine = '', others = ''] = ['egress', 'ingress'].map((way) =>
      readdirSync(pins).find((name) => name.includes(way)),
    )
    lab.datapath.close()
    rmSync(join(pins, mine))
    renameSync(join(pins, others), join(pins, mine))
    const again = openDatapath({ folder: lab.folder.path, native: withFaults(loadNative(), active) })
    lab = { ...lab, datapath: again }
    expect(again.published(egress())).toEqual({ ...egress(), mapId: expect.any(Number) })
    expect(again.published({ ...egress(), direction: 'ingress' })?.snapshot?.policyUid).toBe('replies')
    expect(pings(lab.workload, hostIp)).toBe(true)
    bind('u4', [echo])
    expect(again.published(egress())?.snapshot?.policyUid).toBe('u4')
    publish(lab, 'ingress', replies)
    again.sweep()
    const bpf = openBpf()
    for (const name of readdirSync(pins)) expect(openPin(bpf, join(pins, name))).toBeGreaterThan(0)
    expect(readdirSync(pins)).toHaveLength(2)
  })

  test('17: a swap of many that fails after the first leaves every one of them as it was', () => {
    bind('u5', [echo])
    const before = (['ingress', 'egress'] as const).map((direction) =>
      lab.datapath.published({ ...egress(), direction }),
    )
    const rows = lab.datapath.freeRows()
    active.add('half-swap')
    const both = [requestOf(lab.held, 'egress', denyAll), requestOf(lab.held, 'ingress', allowAll)]
    expect(() => lab.datapath.publish(both)).toThrow(/not enough memory/)
    active.clear()
    expect(
      (['ingress', 'egress'] as const).map((direction) => lab.datapath.published({ ...egress(), direction })),
    ).toEqual(before)
    expect(lab.datapath.freeRows()).toBe(rows)
    expect(lab.datapath.sweep()).toBe(0)
    expect(pings(lab.workload, hostIp)).toBe(true)
    expect(count(0)).toBe(3)
  })

  test.each([
    ['the row is written', '^write interface$', 1],
    ['one hook of two is attached', '^attach$', 2],
    ['its link is pinned', '^pin .*tp_links', 1],
    ['a snapshot is made', '^create tp_snapshot$', 3],
    ['it is filled', '^fill snapshot$', 2],
    ['it is pinned', '^pin .*tp_snapshots', 2],
    ['it is bound', '^swap snapshot$', 2],
  ])('killed right after %s, what is attached denies, and the next process finishes the work', (_, step, nth) => {
    const folder = createBpffsFolder()
    const { host, workload } = createPair()
    const script = new URL('./killed-at-step.ts', import.meta.url).pathname
    const killed = runCommand([process.execPath, '--import', 'tsx', script, folder.path, host, step, String(nth)])
    expect(killed.ok ? 'it ended by itself' : killed.message).toMatch(/ended by SIGKILL/)
    const datapath = openDatapath({ folder: folder.path })
    datapath.setMode('enforce')
    datapath.sweep()
    const held = datapath.attach({ name: 'host0', namespacePath: `/run/netns/${host}`, side: 'host' })
    expect(datapath.interfaces()).toEqual([held])
    bringUp(host, workload)
    expect(pings(workload, hostIp)).toBe(step.includes('swap'))
    datapath.publish([requestOf(held, 'ingress', denyAll), requestOf(held, 'egress', { ...allowAll, generation: 3 })])
    expect(pings(workload, hostIp)).toBe(true)
    expect(readdirSync(join(folder.path, `v${datapathVersion}`, 'tp_snapshots'))).toHaveLength(2)
    expect(readdirSync(join(folder.path, `v${datapathVersion}`, 'tp_links')).sort()).toEqual([
      `${held.slot}-egress`,
      `${held.slot}-ingress`,
    ])
    expect(datapath.freeRows()).toBe(usualSizes.counterRows - 2)
    datapath.close()
    removeNamespaces([host, workload])
    folder.remove()
  })
})
