/** The interfaces that the datapath holds: each has a slot, a token for its lifetime, and a program on both hooks. */
import { randomBytes } from 'node:crypto'
import { closeSync } from 'node:fs'
import { join } from 'node:path'
import { Failure } from '#base/failure'
import { boundRow, interfaceLayout, programNumbers } from '#compile/traffic-policy/datapath-maps'
import type { Direction } from '#compile/traffic-policy/entry'
import { dispatchProgram } from '#compile/traffic-policy/program-dispatch'
import type { Bpf } from './bpf-sys'
import { listPins, openPin, pin, unpin } from './bpffs'
import { attachByClsact, detachByClsact } from './clsact'
import type { Folders, Tables } from './datapath-tables'
import { createLink, detachLink, type Hook, hasTcx, readLink } from './links'
import { lookUp, numberKey, remove, update } from './maps'
import type { Native } from './native'
import { findNamespace, insideNamespace, namespaceInode, ownNamespace } from './network-namespace'
import { closeProgram, type LoadedProgram, loadProgram } from './programs'
import { listInterfaces, type NetworkInterface } from './rtnetlink'

export type HeldInterface = {
  readonly slot: number
  readonly token: bigint
  readonly name: string
  readonly index: number
  /** The inode of its network namespace. */
  readonly namespace: bigint
  readonly vpc: number
}

export type AttachRequest = {
  readonly name: string
  /** A path such as /run/netns/NAME; the process's own namespace otherwise. */
  readonly namespacePath?: string
  /**
   * Which end it is: of a veth pair's host end, what leaves it is the workload's ingress; of an interface inside the
   * workload's namespace, what arrives.
   */
  readonly side: 'host' | 'workload'
  /** For path classes by prefix; 0 has none. */
  readonly vpc?: number
}

export type InterfaceTools = { readonly bpf: Bpf; readonly folders: Folders; readonly tables: Tables }

const directions = ['ingress', 'egress'] as const

/** The row that denies is there before the programs are, and the programs before a packet if the link is still down. */
export function attachInterface(tools: InterfaceTools, request: AttachRequest): HeldInterface {
  const path = request.namespacePath ?? ownNamespace
  return insideNamespace(tools.bpf.native, path, () => {
    const link = listInterfaces(tools.bpf.native).find(({ name }) => name === request.name)
    if (link === undefined) throw noSuchInterface(request)
    const namespace = namespaceInode(ownNamespace)
    const held = listHeld(tools).find((one) => one.index === link.index && one.namespace === namespace)
    if (held !== undefined && isAttached(tools, held)) return held
    if (held !== undefined) detachInterface(tools, held)
    return attachNew(tools, request, { link, namespace })
  })
}

function noSuchInterface({ name, namespacePath }: AttachRequest): Failure {
  const where = namespacePath === undefined ? '' : ` in ${namespacePath}`
  return new Failure('usage.not-found', `there is no interface ${name}${where}; make it first, then attach to it`)
}

type Found = { readonly link: NetworkInterface; readonly namespace: bigint }

function attachNew(tools: InterfaceTools, request: AttachRequest, { link, namespace }: Found): HeldInterface {
  const slot = freeSlot(tools)
  const held = { slot, token: randomToken(), name: link.name, index: link.index, namespace, vpc: request.vpc ?? 0 }
  for (const direction of directions) remove(tools.bpf, tools.tables.bound, numberKey(boundRow(slot, direction)))
  update(tools.bpf, tools.tables.interfaces, numberKey(slot), printInterface(held), 'write interface')
  try {
    for (const direction of directions) attachDirection(tools, held, { request, link, direction })
  } catch (error) {
    detachInterface(tools, held)
    throw error
  }
  return held
}

type DirectionToAttach = {
  readonly request: AttachRequest
  readonly link: NetworkInterface
  readonly direction: Direction
}

function attachDirection(tools: InterfaceTools, held: HeldInterface, wanted: DirectionToAttach): void {
  const { request, link, direction } = wanted
  const { bpf, folders } = tools
  const hook = hookOf(direction, request.side)
  const number = programNumbers[link.linkLayer][direction]
  const program = loadDispatch(tools, held.slot, number)
  const name = pinName(held.slot, hook)
  try {
    if (hasTcx(bpf, program.fd)) {
      const linkFd = createLink(bpf, hook, program.fd, link.index)
      try {
        unpin(join(folders.links, name))
        pin(bpf, linkFd, join(folders.links, name))
      } finally {
        closeSync(linkFd)
      }
      return
    }
    const path = join(folders.programs, name)
    unpin(path)
    pin(bpf, program.fd, path)
    attachByClsact(link.name, hook, path)
  } finally {
    closeProgram(program)
  }
}

function loadDispatch({ bpf, tables }: InterfaceTools, slot: number, programNumber: number): LoadedProgram {
  const fdOf = (name: string): number => tables[name as keyof Tables].fd
  return loadProgram(bpf, 'tp_dispatch', dispatchProgram(slot, programNumber), fdOf)
}

/** Its programs, what was bound to it and its row go; without programs nothing is decided any more. */
export function detachInterface({ bpf, folders, tables }: InterfaceTools, held: HeldInterface): void {
  for (const hook of directions) {
    const name = pinName(held.slot, hook)
    const linkFd = openPin(bpf, join(folders.links, name))
    if (linkFd !== undefined) {
      detachLink(bpf, linkFd)
      closeSync(linkFd)
      unpin(join(folders.links, name))
    }
    if (listPins(folders.programs).includes(name)) {
      detachFilter(bpf.native, held, hook)
      unpin(join(folders.programs, name))
    }
  }
  for (const direction of directions) remove(bpf, tables.bound, numberKey(boundRow(held.slot, direction)))
  update(bpf, tables.interfaces, numberKey(held.slot), Buffer.alloc(interfaceLayout.size), 'clear interface')
}

/** In the interface's own namespace: one of the same name elsewhere is another. */
function detachFilter(native: Native, held: HeldInterface, hook: Hook): void {
  const path = findNamespace(held.namespace)
  if (path !== undefined) insideNamespace(native, path, () => detachByClsact(held.name, hook))
}

/** Whether both hooks still have their programs: a link outlives its interface and has the index 0 then. */
export function isAttached({ bpf, folders }: InterfaceTools, held: HeldInterface): boolean {
  return directions.every((hook) => {
    const name = pinName(held.slot, hook)
    const linkFd = openPin(bpf, join(folders.links, name))
    if (linkFd === undefined) return listPins(folders.programs).includes(name)
    const { interfaceIndex } = readLink(bpf, linkFd)
    closeSync(linkFd)
    return interfaceIndex === held.index
  })
}

/**
 * Descriptors of all links that are pinned and not in `known` yet, by pin name: while they are open the programs stay
 * attached, whatever becomes of the bpffs.
 */
export function holdLinks({ bpf, folders }: InterfaceTools, known: Map<string, number>): void {
  const pinned = new Set(listPins(folders.links))
  for (const [name, fd] of known) {
    if (pinned.has(name)) continue
    closeSync(fd)
    known.delete(name)
  }
  for (const name of pinned) {
    const fd = known.has(name) ? undefined : openPin(bpf, join(folders.links, name))
    if (fd !== undefined) known.set(name, fd)
  }
}

export function listHeld({ bpf, tables }: Pick<InterfaceTools, 'bpf' | 'tables'>): readonly HeldInterface[] {
  const held: HeldInterface[] = []
  for (let slot = 1; slot < tables.interfaces.shape.maxEntries; slot++) {
    const row = lookUp(bpf, tables.interfaces, numberKey(slot))
    if (row !== undefined && row.readBigUInt64LE(interfaceLayout.token) !== 0n) held.push(parseInterface(slot, row))
  }
  return held
}

function freeSlot({ bpf, tables }: InterfaceTools): number {
  const count = tables.interfaces.shape.maxEntries
  for (let slot = 1; slot < count; slot++) {
    const row = lookUp(bpf, tables.interfaces, numberKey(slot))
    if (row?.readBigUInt64LE(interfaceLayout.token) === 0n) return slot
  }
  throw new Failure(
    'kernel.exhausted',
    `all ${count - 1} slots for interfaces are in use; detach interfaces that are gone, or raise the number of slots`,
  )
}

function hookOf(direction: Direction, side: AttachRequest['side']): Hook {
  if (side === 'workload') return direction
  return direction === 'ingress' ? 'egress' : 'ingress'
}

function pinName(slot: number, hook: Hook): string {
  return `${slot}-${hook}`
}

function randomToken(): bigint {
  return randomBytes(8).readBigUInt64LE() || 1n
}

function printInterface(held: HeldInterface): Buffer {
  const row = Buffer.alloc(interfaceLayout.size)
  row.writeBigUInt64LE(held.token, interfaceLayout.token)
  row.writeUInt32LE(held.index, interfaceLayout.index)
  row.writeUInt32LE(held.vpc, interfaceLayout.vpc)
  row.writeBigUInt64LE(held.namespace, interfaceLayout.namespace)
  row.write(held.name, interfaceLayout.name, interfaceLayout.nameLength - 1)
  return row
}

function parseInterface(slot: number, row: Buffer): HeldInterface {
  const name = row.toString('utf8', interfaceLayout.name, interfaceLayout.name + interfaceLayout.nameLength)
  return {
    slot,
    token: row.readBigUInt64LE(interfaceLayout.token),
    index: row.readUInt32LE(interfaceLayout.index),
    vpc: row.readUInt32LE(interfaceLayout.vpc),
    namespace: row.readBigUInt64LE(interfaceLayout.namespace),
    name: name.replace(/\0.*$/s, ''),
  }
}
