/** Publishing: whole or not at all, under load, out of rows, with faults at each step, and over the death of its process. */
import { spawn } from 'node:child_process'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { datapathVersion, snapshotShape, usualSizes } from '#compile/traffic-policy/datapath-maps'
import type { Entry } from '#compile/traffic-policy/entry'
import { openBpf } from '#kernel/bpf-sys'
import { pin } from '#kernel/bpffs'
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
  fallbacksOf,
  hitsOf,
  hostIp,
  type Lab,
  openLab,
  pings,
  publish,
  requestOf,
  type TestPolicy,
  workloadIp,
} from './datapath-lab'
import { describeKernel } from './describe-kernel'
import { endWithUs, inside, removeNamespaces } from './namespace'
import { runCommand, sleep } from './run-command'

const never: Entry = { protocol: 'sctp', destinationPorts: { from: 9, to: 9 }, action: 'deny', rule: 0 }

describeKernel('publishing into the datapath', () => {
  const active = new Set<Fault>()
  let lab: Lab

  beforeAll(() => {
    lab = openLab({ native: withFaults(loadNative(), active) })
    lab.datapath.setMode('enforce')
    publish(lab, 'ingress', denyAll)
  })
  afterEach(() => active.clear())
  afterAll(() => lab.close())

  test('18: 400 swaps under 100,000 packets: none is decided by a mixture of two policies, and both are met', async () => {
    // One matches early, the other late: who begins in the late one and ends in the early one matches nothing.
    const early: TestPolicy = {
      uid: 'early',
      stateful: false,
      entries: Array.from({ length: 64 }, (_, rule) => (rule === 2 ? { action: 'allow', rule } : { ...never, rule })),
    }
    const late: TestPolicy = {
      uid: 'late',
      stateful: false,
      entries: Array.from({ length: 64 }, (_, rule) => (rule === 60 ? { action: 'allow', rule } : { ...never, rule })),
    }
    publish(lab, 'egress', early)
    const before = fallbacksOf(lab, 'egress')
    const [program = '', ...args] = inside(lab.workload, [
      process.execPath,
      new URL('./udp-blast.mjs', import.meta.url).pathname,
      hostIp,
      '9',
      '100000',
    ])
    const blast = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    endWithUs(blast)
    let isOver = false
    blast.on('exit', () => {
      isOver = true
    })
    let swaps = 0
    const hits = { early: 0, late: 0 }
    while (swaps < 400 || !isOver) {
      const isLate = swaps % 2 === 0
      // What was bound counts on until the swap, and its rows are read right after it.
      const rows = lab.datapath.published({ slot: lab.held.slot, direction: 'egress' })?.snapshot?.rules ?? []
      publish(lab, 'egress', isLate ? late : early)
      hits[isLate ? 'early' : 'late'] += Number(
        lab.datapath.readRule(rows[isLate ? 2 : 60]?.counterRow ?? 0)?.hits ?? 0n,
      )
      swaps += 1
      await new Promise((resolve) => setTimeout(resolve, 1))
    }
    hits[swaps % 2 === 0 ? 'early' : 'late'] += hitsOf(lab, 'egress', swaps % 2 === 0 ? 2 : 60)
    const after = fallbacksOf(lab, 'egress')
    expect(after.no_match).toBe(before.no_match)
    expect(after.policy_unavailable).toBe(before.policy_unavailable)
    expect(Math.min(hits.early, hits.late)).toBeGreaterThan(100)
    expect(hits.early + hits.late).toBeGreaterThan(99_000)
  })

  test.each(['failed-count', 'failed-create', 'failed-fill', 'failed-pin', 'failed-swap'] as const)(
    'a publication with the fault %s leaves what was bound, and a retry has a new number',
    (fault) => {
      publish(lab, 'egress', { ...allowAll, generation: 1 })
      expect(pings(lab.workload, hostIp)).toBe(true)
      const place = { slot: lab.held.slot, direction: 'egress' } as const
      const before = lab.datapath.published(place)?.snapshot
      const rows = lab.datapath.freeRows()
      active.add(fault)
      expect(() => publish(lab, 'egress', { ...denyAll, uid: 'egress-policy', generation: 2 })).toThrow(/failed: .+\(E/)
      active.clear()
      expect(lab.datapath.published(place)?.snapshot).toEqual(before)
      expect(lab.datapath.freeRows()).toBe(rows)
      expect(lab.datapath.sweep()).toBe(0)
      expect(pings(lab.workload, hostIp)).toBe(true)
      publish(lab, 'egress', { ...allowAll, generation: 2 })
      const after = lab.datapath.published(place)?.snapshot
      expect(after?.publication).toBe((before?.publication ?? 0) + 2)
      expect(after?.rules).toEqual(before?.rules)
    },
  )

  test('a rule keeps its count while its policy, name and action stay, and no longer', () => {
    const icmp: Entry = { protocol: 'icmp', action: 'allow', rule: 0 }
    publish(lab, 'egress', { uid: 'counted', entries: [icmp] })
    expect(pings(lab.workload, hostIp)).toBe(true)
    expect(hitsOf(lab, 'egress', 0)).toBe(1)
    publish(lab, 'egress', { uid: 'counted', generation: 2, entries: [{ ...icmp, icmpType: 8 }] })
    expect(hitsOf(lab, 'egress', 0)).toBe(1)
    publish(lab, 'egress', { uid: 'counted', generation: 3, entries: [{ ...icmp, action: 'deny' }] })
    expect(hitsOf(lab, 'egress', 0)).toBe(0)
    publish(lab, 'egress', { uid: 'other', entries: [icmp] })
    expect(hitsOf(lab, 'egress', 0)).toBe(0)
  })

  test('when counter rows run out an update is refused whole, and fewer rules go through again', () => {
    const small = openLab({ sizes: { ...usualSizes, counterRows: 8 } })
    const rules = (count: number): TestPolicy => ({
      uid: 'many',
      entries: Array.from({ length: count }, (_, rule) => ({ action: 'allow', rule })),
    })
    small.datapath.setMode('enforce')
    publish(small, 'egress', rules(6))
    publish(small, 'ingress', { uid: 'few', entries: [{ action: 'deny', rule: 0 }] })
    expect(pings(small.workload, hostIp)).toBe(true)
    expect(() => publish(small, 'egress', rules(9))).toThrow(/3 counter rows are needed and 1 of 8 are free/)
    expect(() => publish(small, 'egress', { ...rules(6), uid: 'another' })).toThrow(/6 counter rows are needed/)
    expect(pings(small.workload, hostIp)).toBe(true)
    expect(small.datapath.freeRows()).toBe(1)
    publish(small, 'egress', rules(7))
    expect(small.datapath.freeRows()).toBe(0)
    small.close()
  })

  test('a second writer of the folder is refused while the first one lives', () => {
    expect(() => openDatapath({ folder: lab.folder.path })).toThrow(/another agent writes to .*; stop it/)
  })

  test('a program that the kernel refuses to load opens no datapath', () => {
    const folder = createBpffsFolder()
    const native = withFaults(loadNative(), new Set<Fault>(['refused-load']))
    expect(() => openDatapath({ folder: folder.path, native })).toThrow(/loading the program .+ failed: the verifier/)
    expect(readdirSync(join(folder.path, `v${datapathVersion}`, 'tp_tables'))).toEqual([])
    folder.remove()
  })

  test('killed while traffic flows, it enforces as before, and its next process counts on from there', async () => {
    const folder = createBpffsFolder()
    const { host, workload } = createPair()
    const owner = new URL('./datapath-owner.ts', import.meta.url).pathname
    const child = spawn(process.execPath, ['--import', 'tsx', owner, folder.path, host], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    endWithUs(child)
    await new Promise((resolve) => child.stdout.once('data', resolve))
    bringUp(host, workload)
    expect(pings(workload, hostIp)).toBe(true)
    const [program = '', ...args] = inside(workload, ['ping', '-n', '-i', '0.02', '-c', '150', '-W', '1', hostIp])
    const stream = spawn(program, args, { stdio: ['ignore', 'pipe', 'ignore'] })
    let output = ''
    stream.stdout.on('data', (bytes) => {
      output += String(bytes)
    })
    const streamed = new Promise((resolve) => stream.once('exit', resolve))
    sleep(300)
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await ended
    expect(pings(workload, hostIp)).toBe(true)
    expect(pings(host, workloadIp)).toBe(false)
    await streamed
    expect(output).toMatch(/150 packets transmitted, 150 received, 0% packet loss/)
    const again = openDatapath({ folder: folder.path })
    const [held] = again.interfaces()
    expect(held?.name).toBe('host0')
    const found = { datapath: again, held: held ?? lab.held }
    const hits = hitsOf(found, 'egress', 0)
    expect(hits).toBe(3)
    expect(again.mode()).toBe('enforce')
    expect(again.sweep()).toBe(0)
    expect(pings(workload, hostIp)).toBe(true)
    expect(hitsOf(found, 'egress', 0)).toBe(hits + 1)
    again.publish([
      requestOf(found.held, 'egress', { uid: 'icmp', generation: 2, entries: [{ action: 'allow', rule: 0 }] }),
    ])
    expect(hitsOf(found, 'egress', 0)).toBe(hits + 1)
    again.close()
    removeNamespaces([host, workload])
    folder.remove()
  })

  test('what is bound and lost its pin goes on unread until it is published anew, and a stray pin is swept', () => {
    const other = openLab()
    other.datapath.setMode('enforce')
    publish(other, 'egress', allowAll)
    publish(other, 'ingress', denyAll)
    const place = { slot: other.held.slot, direction: 'egress' } as const
    const pins = join(other.folder.path, `v${datapathVersion}`, 'tp_snapshots')
    for (const name of readdirSync(pins).filter((one) => one.includes('egress'))) rmSync(join(pins, name))
    other.datapath.close()
    const bpf = openBpf()
    const stray = createMap(bpf, snapshotShape())
    pin(bpf, stray.fd, join(pins, 'stray'))
    closeMap(stray)
    const again = openDatapath({ folder: other.folder.path })
    expect(again.published(place)?.mapId).toBeGreaterThan(0)
    expect(again.published(place)?.snapshot).toBeUndefined()
    expect(again.published({ ...place, direction: 'ingress' })?.snapshot?.policyUid).toBe('deny-all')
    expect(pings(other.workload, hostIp)).toBe(true)
    expect([again.sweep(), again.sweep()]).toEqual([1, 0])
    expect(pings(other.workload, hostIp)).toBe(true)
    again.publish([requestOf(other.held, 'egress', allowAll)])
    expect(again.published(place)?.snapshot?.policyUid).toBe('egress-policy')
    expect(readdirSync(pins)).toHaveLength(2)
    again.close()
    removeNamespaces([other.host, other.workload])
    other.folder.remove()
  })

  test('with its bpffs unmounted what is bound stays, nothing new is half published, and it says why', () => {
    const other = openLab()
    other.datapath.setMode('enforce')
    publish(other, 'egress', allowAll)
    publish(other, 'ingress', denyAll)
    expect(runCommand(['umount', other.folder.path]).ok).toBe(false)
    expect(runCommand(['umount', '--lazy', other.folder.path]).ok).toBe(true)
    expect(pings(other.workload, hostIp)).toBe(true)
    expect(() => publish(other, 'egress', { ...denyAll, uid: 'egress-policy' })).toThrow(
      /is no bpffs any more.+mount -t bpf bpf .+pinned again/,
    )
    expect(pings(other.workload, hostIp)).toBe(true)
    expect(pings(other.host, workloadIp)).toBe(false)
    other.close()
  })
})
