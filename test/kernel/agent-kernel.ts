/** A node's kernel for the agent's suite: veth pairs between two namespaces, a datapath of few counter rows, real packets. */
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { boundRow, datapathMaps, snapshotShape, usualSizes } from '#compile/traffic-policy/datapath-maps'
import type { Direction } from '#compile/traffic-policy/entry'
import { openBpf } from '#kernel/bpf-sys'
import { openPin, pin } from '#kernel/bpffs'
import { type Attacher, type DatapathOptions, openAttacher, openDatapath } from '#kernel/datapath'
import { foldersOf } from '#kernel/datapath-tables'
import { type Fault, withFaults } from '#kernel/faults'
import { closeMap, createMap, numberKey, remove } from '#kernel/maps'
import { loadNative, type Native } from '#kernel/native'
import { namespaceInode, ownNamespace } from '#kernel/network-namespace'
import { fewRows, type NodeKernel } from '../agent/agent-world'
import { createBpffsFolder } from './bpffs-folder'
import { createNamespaces, inside, removeNamespaces } from './namespace'
import { mustRun, runCommand } from './run-command'

export type KernelNode = NodeKernel & {
  readonly folder: string
  readonly host: string
  readonly workload: string
  /** Called before each call to the kernel, with the step’s name. */
  readonly steps: { before?: ((step: string) => void) | undefined }
  /** As a process does that begins now, and finds what is pinned now. */
  readonly attachAnew: (name: string) => void
  /** Attaches by the datapath that is pinned now from here on. */
  readonly reopen: () => void
  /** The addresses of the ends of an interface. */
  readonly addressesOf: (name: string) => { readonly host: string; readonly workload: string }
}

export function kernelNode({ counterRows = fewRows }: { readonly counterRows?: number } = {}): KernelNode {
  const folder = createBpffsFolder()
  const faults = new Set<Fault>()
  const steps: KernelNode['steps'] = {}
  const options: DatapathOptions = {
    folder: folder.path,
    sizes: { ...usualSizes, counterRows },
    native: withSteps(withFaults(loadNative(), faults), steps),
  }
  const [host = '', workload = ''] = createNamespaces(['host', 'workload'])
  mustRun(['ip', '-n', host, 'link', 'set', 'lo', 'up'])
  // Neighbour discovery would be counted before anything is published.
  const quiet = ['all', 'default'].map((which) => `net.ipv6.conf.${which}.disable_ipv6=1`)
  for (const end of [host, workload]) mustRun(inside(end, ['sysctl', '-qw', ...quiet]))
  let attacher = openAttacher(options)
  const pinFolder = foldersOf(folder.path).snapshots
  const numbers = new Map<string, number>()
  const numberOf = (name: string): number => {
    if (!numbers.has(name)) numbers.set(name, numbers.size + 1)
    return numbers.get(name) ?? 0
  }
  const addressesOf = (name: string) => ({ host: `10.9.${numberOf(name)}.1`, workload: `10.9.${numberOf(name)}.2` })
  const bpf = openBpf()
  const attachBy = (by: Attacher, name: string) => {
    const isThere = runCommand(['ip', '-n', host, 'link', 'show', name]).ok
    if (!isThere) makeLink({ host, workload }, name, numberOf(name))
    const held = by.attach({ name, namespacePath: `/run/netns/${host}`, side: 'host' })
    if (!isThere) bringUp({ host, workload }, name, addressesOf(name), numberOf(name))
    return held
  }

  return {
    folder: folder.path,
    host,
    workload,
    addressesOf,
    faults,
    steps,
    open() {
      const datapath = openDatapath(options)
      const own = namespaceInode(ownNamespace)
      return { ...datapath, isHere: ({ namespace }) => namespace === own, whyStrange: () => undefined }
    },
    attach: (name) => attachBy(attacher, name),
    reopen() {
      attacher.close()
      attacher = openAttacher(options)
    },
    attachAnew(name) {
      const anew = openAttacher(options)
      try {
        attachBy(anew, name)
      } finally {
        anew.close()
      }
    },
    unlink: (name) => void runCommand(['ip', '-n', host, 'link', 'delete', name]),
    passes(name, direction) {
      const ends = addressesOf(name)
      const [from, to] = direction === 'egress' ? [workload, ends.host] : [host, ends.workload]
      return runCommand(inside(from, ['ping', '-n', '-c', '1', '-W', '0.2', to])).ok
    },
    pins: () => readdirSync(pinFolder).sort(),
    dropPin: (name) => rmSync(join(pinFolder, name)),
    strayPin(name) {
      const map = createMap(bpf, snapshotShape())
      pin(bpf, map.fd, join(pinFolder, name))
      closeMap(map)
    },
    setMode: (mode) => attacher.setMode(mode),
    unbindBehind({ slot, direction }) {
      const { bound: shape } = datapathMaps(usualSizes)
      const fd = openPin(bpf, join(foldersOf(folder.path).tables, shape.name))
      if (fd === undefined) throw new Error('the table is pinned')
      remove(bpf, { fd, shape }, numberKey(boundRow(slot, direction satisfies Direction)))
      closeMap({ fd, shape })
    },
    close() {
      attacher.close()
      removeNamespaces([host, workload])
      folder.remove()
    },
  }
}

function withSteps(native: Native, steps: KernelNode['steps']): Native {
  return {
    ...native,
    bpf(command, attributes, size, step = '') {
      steps.before?.(step)
      return native.bpf(command, attributes, size, step)
    },
  }
}

type Ends = { readonly host: string; readonly workload: string }

/** With an index of its own, which the kernel gives to the next one of the name again. */
function makeLink({ host, workload }: Ends, name: string, number: number): void {
  const [one, other] = ['0a', '0b'].map((end) => `02:00:00:00:${end}:${number.toString(16).padStart(2, '0')}`)
  const ends = [`link add ${name} index ${100 + number} address ${one} netns ${host} type veth`]
  mustRun(['ip', '-batch', '-'], `${ends} peer name w-${name} address ${other} netns ${workload}`)
}

/** Neighbours are told: who was denied an answer would wait before asking again. */
function bringUp({ host, workload }: Ends, name: string, addresses: Ends, number: number): void {
  const [one, other] = ['0a', '0b'].map((end) => `02:00:00:00:${end}:${number.toString(16).padStart(2, '0')}`)
  const batch = (namespace: string, lines: readonly string[]): void =>
    void mustRun(['ip', '-n', namespace, '-batch', '-'], lines.join('\n'))
  batch(host, [
    `addr add ${addresses.host}/24 dev ${name}`,
    `link set ${name} up`,
    `neigh replace ${addresses.workload} lladdr ${other} dev ${name} nud permanent`,
  ])
  batch(workload, [
    `addr add ${addresses.workload}/24 dev w-${name}`,
    `link set w-${name} up`,
    `neigh replace ${addresses.host} lladdr ${one} dev w-${name} nud permanent`,
  ])
}
