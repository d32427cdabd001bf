/** The interfaces that the datapath holds: each has a slot, a token for its lifetime, and a program on both hooks. */
import { randomBytes } from 'node:crypto'
import { closeSync } from 'node:fs'
import { join } from 'node:path'
import { Failure } from '#base/failure'
import { boundRow, interfaceLayout, programNumbers } from '#compile/traffic-policy/datapath-maps'
import type { Direction } from '#compile/traffic-policy/entry'
import { dispatchProgram } from '#compile/traffic-policy/program-dispatch'
import type { Bpf } from './bpf-sys'
import { listPins, pin, unpin, withPin } from './bpffs'
import { attachByClsact, detachByClsact, hasFilter } from './clsact'
import { clearFallbacks } from './counter-rows'
import type { Folders, Tables } from './datapath-tables'
import type { HeldAttachments } from './held-attachments'
import { createLink, detachLink, type Hook, hasTcx, type LinkInfo, queryHook, readLink } from './links'
import { type BpfMap, lookUp, numberKey, remove, update } from './maps'
import type { Native } from './native'
import { findNamespace, insideNamespace, namespaceInode, ownNamespace } from './network-namespace'
import { closeProgram, type LoadedProgram, loadProgram, readProgramInfo } from './programs'
import { listInterfaces, type NetworkInterface } from './rtnetlink'
import { dispatchName, hasStrangeFilter, hasStrangers, refuseStrangers } from './strangers'

export type HeldInterface = {
  readonly slot: number
  readonly token: bigint
  readonly name: string
  readonly index: number
  /** The inode of its network namespace. */
  readonly namespace: bigint
  readonly side: Side
  readonly vpc: number
}

/**
 * Which end it is: of a veth pair's host end, what leaves it is the workload's ingress; of an interface inside the
 * workload's namespace, what arrives.
 */
export type Side = 'host' | 'workload'

export type AttachRequest = {
  readonly name: string
  /** A path such as /run/netns/NAME; the process's own namespace otherwise. */
  readonly namespacePath?: string
  readonly side: Side
  /** For path classes by prefix; 0 has none. Left out, what was attached before keeps its own. */
  readonly vpc?: number
}

export type InterfaceTools = { readonly bpf: Bpf; readonly folders: Folders; readonly tables: Tables }

const directions = ['ingress', 'egress'] as const

/** The row that denies is there before the programs are, and the programs before a packet if the link is still down. */
export function attachInterface(tools: InterfaceTools, request: AttachRequest): HeldInterface {
  return insideNamespace(tools.bpf.native, request.namespacePath, () => {
    const link = findHere(tools.bpf.native, request)
    const namespace = namespaceInode(ownNamespace)
    const held = findHeld(tools, link, namespace)
    if (held !== undefined && isAttached(tools, held)) return attachAgain(tools, request, held)
    if (held !== undefined) detachInterface(tools, held)
    return attachNew(tools, request, { link, namespace })
  })
}

/**
 * By the programs on its hooks: an interface that was renamed or moved to another namespace keeps them, and so its
 * lifetime. Where there are none, by what its row says; but one whose programs are at work was moved away, and its index
 * is another's now.
 */
function findHeld(tools: InterfaceTools, link: NetworkInterface, namespace: bigint): HeldInterface | undefined {
  const all = listHeld(tools)
  const running = new Set(directions.flatMap((hook) => queryHook(tools.bpf, hook, link.index)))
  const found =
    running.size === 0
      ? undefined
      : all.find(({ slot }) => directions.some((hook) => running.has(linkOf(tools, slot, hook)?.programId ?? 0)))
  if (found === undefined) {
    return all.find(
      (one) => one.index === link.index && one.namespace === namespace && liveLink(tools, one.slot) === undefined,
    )
  }
  const now = { ...found, name: link.name, index: link.index, namespace }
  update(tools.bpf, tools.tables.interfaces, numberKey(now.slot), printInterface(now), 'write interface')
  return now
}

type LinkTools = Pick<InterfaceTools, 'bpf' | 'folders'>

function linkOf(
  { bpf, folders }: LinkTools,
  slot: number,
  hook: Hook,
  byDescriptor?: HeldAttachments,
): LinkInfo | undefined {
  const name = pinName(slot, hook)
  return readHeld(bpf, join(folders.links, name), byDescriptor?.links.get(name), (fd) => readLink(bpf, fd))
}

/** What is held by descriptor counts where its pin is gone, or cannot be opened as on a bpffs that is read-only now. */
function readHeld<T>(
  bpf: Bpf,
  path: string,
  held: { readonly fd: number } | undefined,
  read: (fd: number) => T,
): T | undefined {
  try {
    const found = withPin(bpf, path, read)
    if (found !== undefined) return found
  } catch (error) {
    if (held === undefined || !(error instanceof Failure)) throw error
  }
  return held && read(held.fd)
}

/**
 * One whose interface is there, in whatever namespace; none under `clsact`. A held one that is live is the slot's still: it
 * is given to another interface only once its links are dead.
 */
export function liveLink(tools: LinkTools, slot: number, byDescriptor?: HeldAttachments): LinkInfo | undefined {
  for (const hook of directions) {
    const heldLink = byDescriptor?.links.get(pinName(slot, hook))
    const held = heldLink && readLink(tools.bpf, heldLink.fd)
    const link = held !== undefined && isLive(held) ? held : linkOf(tools, slot, hook)
    if (link !== undefined && isLive(link)) return link
  }
  return undefined
}

function isLive({ interfaceIndex }: LinkInfo): boolean {
  return interfaceIndex !== 0
}

/** The same lifetime: nothing moves, but for the VPC that its path classes go by. */
function attachAgain({ bpf, tables }: InterfaceTools, { name, side, vpc }: AttachRequest, held: HeldInterface) {
  if (held.side !== side) {
    throw new Failure(
      'kernel.in-use',
      `${name} is attached as the ${held.side} end already, and its directions would change places; say ${held.side}, or make the interface anew`,
    )
  }
  if (vpc === undefined || vpc === held.vpc) return held
  const changed = { ...held, vpc }
  update(bpf, tables.interfaces, numberKey(held.slot), printInterface(changed), 'write interface')
  return changed
}

type Sought = Pick<AttachRequest, 'name' | 'namespacePath'>

export function findInterface(native: Native, sought: Sought): NetworkInterface {
  return insideNamespace(native, sought.namespacePath, () => findHere(native, sought))
}

function findHere(native: Native, { name, namespacePath }: Sought): NetworkInterface {
  const link = listInterfaces(native).find((one) => one.name === name)
  if (link !== undefined) return link
  const where = namespacePath === undefined ? '' : ` in ${namespacePath}`
  throw new Failure('usage.not-found', `there is no interface ${name}${where}; make it first, then attach to it`)
}

type Found = { readonly link: NetworkInterface; readonly namespace: bigint }

function attachNew(tools: InterfaceTools, request: AttachRequest, { link, namespace }: Found): HeldInterface {
  if (hasStrangers(tools, link)) throw refuseStrangers(link.name)
  readLinkLayer(link)
  const slot = freeSlot(tools)
  const { side, vpc = 0 } = request
  const held = { slot, token: randomToken(), name: link.name, index: link.index, namespace, side, vpc }
  for (const direction of directions) remove(tools.bpf, tools.tables.bound, numberKey(boundRow(slot, direction)))
  // Before its first packet, which counts.
  clearFallbacks(tools.bpf, tools.tables, slot)
  update(tools.bpf, tools.tables.interfaces, numberKey(slot), printInterface(held), 'write interface')
  try {
    for (const direction of directions) attachDirection(tools, held, { request, link, direction })
  } catch (error) {
    detachInterface(tools, held)
    throw error
  }
  return held
}

export type DirectionToAttach = {
  readonly request: Pick<AttachRequest, 'side'>
  readonly link: NetworkInterface
  readonly direction: Direction
}

export function attachDirection(tools: InterfaceTools, held: HeldInterface, wanted: DirectionToAttach): void {
  const { request, link, direction } = wanted
  const { bpf, folders } = tools
  const hook = hookOf(direction, request.side)
  const number = programNumbers[readLinkLayer(link)][direction]
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
    if (hasStrangeFilter(tools, link.name, hook)) throw refuseStrangers(link.name)
    unpin(path)
    pin(bpf, program.fd, path)
    attachByClsact(link.name, hook, path)
  } finally {
    closeProgram(program)
  }
}

/** A device of another kind would have its headers read as what they are not. */
export function readLinkLayer({ name, linkLayer, hardwareType }: NetworkInterface): 'ethernet' | 'ip' {
  if (linkLayer !== 'other') return linkLayer
  throw new Failure(
    'kernel.unsupported',
    `${name} carries neither Ethernet frames nor bare IP packets (its link type is ${hardwareType}), and its packets cannot be read; attach an interface that does`,
  )
}

function loadDispatch({ bpf, tables }: InterfaceTools, slot: number, programNumber: number): LoadedProgram {
  const fdOf = (name: string): number => tables[name as keyof Tables].fd
  return loadProgram(bpf, dispatchName, dispatchProgram(slot, programNumber), fdOf)
}

/** Its programs, what was bound to it and its row go; without programs nothing is decided any more. */
export function detachInterface({ bpf, folders, tables }: InterfaceTools, held: HeldInterface): void {
  for (const hook of directions) {
    const name = pinName(held.slot, hook)
    withPin(bpf, join(folders.links, name), (fd) => detachLink(bpf, fd))
    unpin(join(folders.links, name))
    if (listPins(folders.programs).includes(name)) {
      detachFilter(bpf.native, held, hook)
      unpin(join(folders.programs, name))
    }
  }
  for (const direction of directions) remove(bpf, tables.bound, numberKey(boundRow(held.slot, direction)))
  clearInterface(bpf, tables.interfaces, held.slot)
}

export function clearInterface(bpf: Bpf, interfaces: BpfMap, slot: number): void {
  update(bpf, interfaces, numberKey(slot), Buffer.alloc(interfaceLayout.size), 'clear interface')
}

function detachFilter(native: Native, held: HeldInterface, hook: Hook): void {
  whereItLives(native, held, (name) => detachByClsact(name, hook))
}

/**
 * In the interface's own namespace, with the name it has now: filters are reached by name, and one of the same name
 * elsewhere is another. Undefined where it is gone.
 */
function whereItLives<T>(native: Native, held: HeldInterface, work: (name: string) => T): T | undefined {
  const path = findNamespace(held.namespace)
  if (path === undefined) return undefined
  return insideNamespace(native, path, () => {
    const link = listInterfaces(native).find(({ index }) => index === held.index)
    return link === undefined ? undefined : work(link.name)
  })
}

/** Whether both hooks still have their programs: a pinned link or program outlives its interface. */
export function isAttached(tools: InterfaceTools, held: HeldInterface, byDescriptor?: HeldAttachments): boolean {
  return directions.every((hook) => isHooked(tools, held, hook, byDescriptor))
}

export function isHooked(tools: InterfaceTools, held: HeldInterface, hook: Hook, byDescriptor?: HeldAttachments) {
  const { bpf, folders } = tools
  const link = linkOf(tools, held.slot, hook, byDescriptor)
  // Another index than the row's is that of another namespace, which the interface was moved to.
  if (link !== undefined) return isLive(link)
  const name = pinName(held.slot, hook)
  const heldProgram = byDescriptor?.programs.get(name)
  const id = readHeld(bpf, join(folders.programs, name), heldProgram, (fd) => readProgramInfo(bpf, fd).id)
  return id !== undefined && whereItLives(bpf.native, held, (now) => hasFilter(now, hook, id)) === true
}

type InterfaceRows = Pick<InterfaceTools, 'bpf'> & { readonly tables: Pick<Tables, 'interfaces'> }

export function listHeld({ bpf, tables }: InterfaceRows): readonly HeldInterface[] {
  const held: HeldInterface[] = []
  for (let slot = 1; slot < tables.interfaces.shape.maxEntries; slot++) {
    const row = lookUp(bpf, tables.interfaces, numberKey(slot))
    if (row !== undefined && row.readBigUInt64LE(interfaceLayout.token) !== 0n) held.push(parseInterface(slot, row))
  }
  return held
}

/** With no agent to drop what is gone, it is dropped when its slots are needed. */
function freeSlot(tools: InterfaceTools): number {
  const slot = findFreeSlot(tools)
  if (slot !== undefined) return slot
  for (const held of listHeld(tools)) if (!isAttached(tools, held)) detachInterface(tools, held)
  const freed = findFreeSlot(tools)
  if (freed !== undefined) return freed
  const count = tools.tables.interfaces.shape.maxEntries - 1
  throw new Failure(
    'kernel.exhausted',
    `all ${count} slots for interfaces are in use; remove interfaces, or make the datapath anew with more slots`,
  )
}

function findFreeSlot({ bpf, tables }: InterfaceTools): number | undefined {
  for (let slot = 1; slot < tables.interfaces.shape.maxEntries; slot++) {
    const row = lookUp(bpf, tables.interfaces, numberKey(slot))
    if (row?.readBigUInt64LE(interfaceLayout.token) === 0n) return slot
  }
  return undefined
}

export function hookOf(direction: Direction, side: Side): Hook {
  if (side === 'workload') return direction
  return direction === 'ingress' ? 'egress' : 'ingress'
}

export function pinName(slot: number, hook: Hook): string {
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
  row.writeUInt32LE(held.side === 'workload' ? 1 : 0, interfaceLayout.isWorkload)
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
    side: row.readUInt32LE(interfaceLayout.isWorkload) === 1 ? 'workload' : 'host',
    name: name.replace(/\0.*$/s, ''),
  }
}
