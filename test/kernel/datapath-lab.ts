/** A workload behind a veth pair: the host's end is held by a datapath, the other end is the workload's. */

import type { Direction, Entry } from '#compile/traffic-policy/entry'
import type { FallbackCounts } from '#kernel/counter-rows'
import { type Datapath, type DatapathOptions, type HeldInterface, openDatapath } from '#kernel/datapath'
import { type BpffsFolder, createBpffsFolder } from './bpffs-folder'
import { createNamespaces, inside, removeNamespaces } from './namespace'
import { mustRun, runCommand } from './run-command'

export const hostIp = '10.9.0.1'
export const workloadIp = '10.9.0.2'
export const hostIp6 = 'fd09::1'
export const workloadIp6 = 'fd09::2'

export type Lab = {
  readonly folder: BpffsFolder
  readonly datapath: Datapath
  readonly host: string
  readonly workload: string
  readonly held: HeldInterface
  readonly close: () => void
}

export function openLab(options: Omit<DatapathOptions, 'folder'> = {}): Lab {
  const folder = createBpffsFolder()
  const datapath = openDatapath({ ...options, folder: folder.path })
  const { host, workload } = createPair()
  const held = datapath.attach({ name: 'host0', namespacePath: `/run/netns/${host}`, side: 'host' })
  bringUp(host, workload)
  const close = (): void => {
    datapath.close()
    removeNamespaces([host, workload])
    folder.remove()
  }
  return { folder, datapath, host, workload, held, close }
}

/** The two ends, down and without addresses. */
export function createPair(): { readonly host: string; readonly workload: string } {
  const [host = '', workload = ''] = createNamespaces(['host', 'workload'])
  mustRun(['ip', 'link', 'add', 'host0', 'netns', host, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', workload])
  return { host, workload }
}

export function bringUp(host: string, workload: string): void {
  const ends = [
    { namespace: host, device: 'host0', addresses: [`${hostIp}/24`, `${hostIp6}/64`] },
    { namespace: workload, device: 'eth0', addresses: [`${workloadIp}/24`, `${workloadIp6}/64`] },
  ]
  for (const { namespace, device, addresses } of ends) {
    const lines = [
      `link set lo up`,
      ...addresses.map((address) => `addr add ${address} dev ${device}${address.includes(':') ? ' nodad' : ''}`),
      `link set ${device} up`,
    ]
    mustRun(['ip', '-n', namespace, '-batch', '-'], lines.join('\n'))
  }
}

export type TestPolicy = {
  readonly uid?: string
  readonly generation?: number
  readonly stateful?: boolean
  readonly entries: readonly Entry[]
}

/** Rules are named by their numbers. */
export function requestOf(held: HeldInterface, direction: Direction, policy: TestPolicy) {
  const count = Math.max(-1, ...policy.entries.map(({ rule }) => rule)) + 1
  return {
    slot: held.slot,
    token: held.token,
    direction,
    policy: {
      uid: policy.uid ?? `${direction}-policy`,
      generation: policy.generation ?? 1,
      stateful: policy.stateful ?? true,
      entries: policy.entries,
      rules: Array.from({ length: count }, (_, rule) => ({
        name: `rule-${rule}`,
        action: policy.entries.find((entry) => entry.rule === rule)?.action ?? ('deny' as const),
      })),
    },
  }
}

export function publish(lab: Pick<Lab, 'datapath' | 'held'>, direction: Direction, policy: TestPolicy): void {
  lab.datapath.publish([requestOf(lab.held, direction, policy)])
}

export function hitsOf(lab: Pick<Lab, 'datapath' | 'held'>, direction: Direction, rule: number): number {
  const rules = lab.datapath.published({ slot: lab.held.slot, direction })?.snapshot?.rules
  const row = rules?.[rule]?.counterRow
  return row === undefined ? 0 : Number(lab.datapath.readRule(row)?.hits ?? 0n)
}

export function fallbacksOf({ datapath, held }: Pick<Lab, 'datapath' | 'held'>, direction: Direction): FallbackCounts {
  const counts = datapath.readFallbacks(held.slot, direction)
  if (counts === undefined) throw new Error(`the counts of ${held.name} ${direction} cannot be read`)
  return counts
}

/** Whether at least one of three answers came. */
export function pings(from: string, to: string, options: readonly string[] = []): boolean {
  return runCommand(inside(from, ['ping', '-n', '-c', '3', '-i', '0.1', '-W', '1', ...options, to])).ok
}

export const denyAll: TestPolicy = { uid: 'deny-all', entries: [{ action: 'deny', rule: 0 }] }
export const allowAll: TestPolicy = { entries: [{ action: 'allow', rule: 0 }] }
