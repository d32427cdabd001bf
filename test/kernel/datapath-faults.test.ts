/** Every single request to the kernel fails once, in opening, attaching and publishing: told in a sentence, nothing half done, and the next try goes through. */
import { readdirSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Failure } from '#base/failure'
import { datapathVersion } from '#compile/traffic-policy/datapath-maps'
import { openBpf } from '#kernel/bpf-sys'
import { openDatapath } from '#kernel/datapath'
import { type Hook, queryHook } from '#kernel/links'
import { loadNative, type Native } from '#kernel/native'
import { insideNamespace } from '#kernel/network-namespace'
import { createBpffsFolder } from './bpffs-folder'
import { allowAll, createPair, denyAll, hostIp, type Lab, openLab, pings, publish, requestOf } from './datapath-lab'
import { describeKernel } from './describe-kernel'
import { inside, removeNamespaces } from './namespace'
import { mustRun } from './run-command'

const errnos = ['EPERM', 'ENOMEM', 'ENOSPC', 'E2BIG'] as const

type Failing = { readonly step: string; readonly nth: number; readonly errno: number }

/** Fails one request of a name, the nth since the last `restart`; notes the names of all. */
function failingNative(native: Native) {
  let failing: Failing | undefined
  const steps: string[] = []
  return {
    native: {
      ...native,
      bpf(command, attributes, size, step = '') {
        // A pin's name is another each time.
        const name = step.replace(/ \/.*\/(tp_[a-z]+).*/, ' $1')
        steps.push(name)
        const isChosen = failing?.step === name && steps.filter((one) => one === name).length === failing.nth
        return isChosen && failing ? -failing.errno : native.bpf(command, attributes, size, step)
      },
    } satisfies Native,
    restart(fails?: Failing): void {
      steps.length = 0
      failing = fails
    },
    steps: (): readonly string[] => [...steps],
  }
}

/** The first and the last request of each name, each with another errno: rows of a table are read one like the other. */
function failuresOf(steps: readonly string[]): readonly Failing[] {
  const names = [...new Set(steps)]
  return names.flatMap((step, index) => {
    const count = steps.filter((one) => one === step).length
    const errno = constants.errno[errnos[index % errnos.length] ?? 'EPERM']
    return (count > 1 ? [1, count] : [1]).map((nth) => ({ step, nth, errno }))
  })
}

describeKernel('requests that the kernel refuses, one by one', () => {
  const native = loadNative()
  const faulty = failingNative(native)
  let lab: Lab

  beforeAll(() => {
    lab = openLab({ native: faulty.native })
    lab.datapath.setMode('enforce')
    publish(lab, 'ingress', denyAll)
  })
  afterAll(() => {
    faulty.restart()
    lab.close()
  })

  const descriptors = (): number => readdirSync('/proc/self/fd').length
  const pinsIn = (folder: string, kind: string): readonly string[] =>
    readdirSync(join(folder, `v${datapathVersion}`, kind)).sort()

  /** The sentence, or why there is none. */
  function failureOf(work: () => unknown): string {
    try {
      work()
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      return error.message
    }
    return 'it did not fail'
  }

  test('a publication: what was bound stays, rows and descriptors too, and the next one goes through', () => {
    const both = (generation: number, action: 'allow' | 'deny') => [
      requestOf(lab.held, 'egress', { uid: 'u', generation, entries: [{ action, rule: 0 }] }),
      requestOf(lab.held, 'ingress', { uid: 'i', generation, entries: [{ action: 'deny', rule: 0 }] }),
    ]
    lab.datapath.publish(both(1, 'allow'))
    faulty.restart()
    lab.datapath.publish(both(2, 'deny'))
    const steps = faulty.steps()
    expect(new Set(steps).size).toBeGreaterThan(6)
    lab.datapath.publish(both(2, 'allow'))
    const bound = () =>
      (['ingress', 'egress'] as const).map((direction) => lab.datapath.published({ slot: lab.held.slot, direction }))
    const state = () => ({
      bound: bound(),
      rows: lab.datapath.freeRows(),
      pins: pinsIn(lab.folder.path, 'tp_snapshots'),
      descriptors: descriptors(),
    })
    for (const failing of failuresOf(steps)) {
      const before = state()
      // The action of one rule changes, so that a row is taken and cleared as well.
      faulty.restart(failing)
      expect(
        failureOf(() => lab.datapath.publish(both(3, 'deny'))),
        failing.step,
      ).toMatch(/\(E[A-Z0-9]+\)/)
      faulty.restart()
      expect(state(), failing.step).toEqual(before)
    }
    expect(pings(lab.workload, hostIp)).toBe(true)
  })

  test('an attachment: no row, no pin, no program is left, and the next one goes through', () => {
    const { host, workload } = createPair()
    const request = { name: 'host0', namespacePath: `/run/netns/${host}`, side: 'host' } as const
    faulty.restart()
    lab.datapath.detach(lab.datapath.attach(request))
    faulty.restart()
    const whole = lab.datapath.attach(request)
    const names = faulty.steps()
    lab.datapath.detach(whole)
    const index = Number(mustRun(inside(host, ['cat', '/sys/class/net/host0/ifindex'])))
    const programs = () =>
      insideNamespace(native, `/run/netns/${host}`, () =>
        (['ingress', 'egress'] as Hook[]).map((hook) => queryHook(openBpf(native), hook, index).length),
      )
    const state = () => ({
      rows: lab.datapath.interfaces(),
      links: pinsIn(lab.folder.path, 'tp_links'),
      programs: programs(),
      descriptors: descriptors(),
    })
    const before = state()
    for (const failing of failuresOf(names)) {
      faulty.restart(failing)
      const told = failureOf(() => lab.datapath.attach(request))
      faulty.restart()
      const what = `${failing.step}, ${failing.nth}: ${told}`
      // Whole or not at all: where only what comes after failed, it is attached.
      if (programs().includes(1)) {
        expect([programs(), state().links.length], what).toEqual([[1, 1], before.links.length + 2])
        lab.datapath.detach(lab.datapath.attach(request))
      } else expect(told, what).toMatch(/\(E[A-Z0-9]+\)/)
      expect(state(), what).toEqual(before)
    }
    const held = lab.datapath.attach(request)
    expect(programs()).toEqual([1, 1])
    lab.datapath.detach(held)
    removeNamespaces([host, workload])
  })

  test('a folder’s first opening: no table is pinned and no descriptor is open, and the next one goes through', () => {
    const folder = createBpffsFolder()
    const first = failingNative(native)
    const open = () => openDatapath({ folder: folder.path, native: first.native })
    open().close()
    const other = createBpffsFolder()
    const openOther = () => openDatapath({ folder: other.path, native: first.native })
    first.restart()
    openOther().close()
    const failures = failuresOf(first.steps())
    folder.remove()
    other.remove()
    expect(failures.length).toBeGreaterThan(20)
    for (const failing of failures) {
      const fresh = createBpffsFolder()
      const before = descriptors()
      first.restart(failing)
      const told = failureOf(() => openDatapath({ folder: fresh.path, native: first.native }).close())
      first.restart()
      expect(descriptors(), `${failing.step}: ${told}`).toBe(before)
      const again = openDatapath({ folder: fresh.path, native: first.native })
      expect(again.mode()).toBe('off')
      again.close()
      fresh.remove()
    }
  })

  test('after all of it the interface decides as before', () => {
    publish(lab, 'egress', allowAll)
    expect(pings(lab.workload, hostIp)).toBe(true)
  })
})
