/** TCX links: a program on one hook of one interface, held by a descriptor or a pin. */
import { type Bpf, kernelFailure, succeed } from './bpf-sys'
import { readObjectInfo } from './maps'

export type Hook = 'ingress' | 'egress'
const attachTypes = { ingress: 46, egress: 47 } as const

const enodev = 19
const einval = 22

/** Before all others: one that lets a packet through ends the row, and ours would not be asked. */
const before = 8

/** First on its hook. The interface is one of the calling thread's network namespace. */
export function createLink(bpf: Bpf, hook: Hook, programFd: number, interfaceIndex: number): number {
  return succeed(tryLink(bpf, hook, programFd, interfaceIndex), `attaching a program to the ${hook} hook`)
}

function tryLink(bpf: Bpf, hook: Hook, programFd: number, interfaceIndex: number): number {
  return bpf.call('linkCreate', 'attach', (attributes) => {
    attributes.u32(0, programFd)
    attributes.u32(4, interfaceIndex)
    attributes.u32(8, attachTypes[hook])
    attributes.u32(12, before)
  })
}

/** Asks for an interface that cannot be: a kernel with TCX says so, one without does not know the request. */
export function hasTcx(bpf: Bpf, programFd: number): boolean {
  const result = tryLink(bpf, 'ingress', programFd, 0x7fffffff)
  if (result === -enodev) return true
  if (result === -einval) return false
  throw kernelFailure(-result, 'asking whether the kernel has TCX')
}

/** With `expected` the link changes only if it still holds that program. */
export function updateLink(bpf: Bpf, linkFd: number, programFd: number, expected?: number): void {
  const result = bpf.call('linkUpdate', 'update link', (attributes) => {
    attributes.u32(0, linkFd)
    attributes.u32(4, programFd)
    if (expected === undefined) return
    attributes.u32(8, 4)
    attributes.u32(12, expected)
  })
  succeed(result, 'replacing the program of a link')
}

export function detachLink(bpf: Bpf, linkFd: number): void {
  succeed(
    bpf.call('linkDetach', 'detach', (attributes) => attributes.u32(0, linkFd)),
    'detaching a program',
  )
}

export type LinkInfo = {
  readonly id: number
  readonly programId: number
  /** Zero once the interface is gone: a pinned link outlives it. */
  readonly interfaceIndex: number
  readonly hook: Hook | undefined
}

export function readLink(bpf: Bpf, linkFd: number): LinkInfo {
  const info = readObjectInfo(bpf, linkFd, 'reading what a link is')
  const attachType = info.readUInt32LE(20)
  return {
    id: info.readUInt32LE(4),
    programId: info.readUInt32LE(8),
    interfaceIndex: info.readUInt32LE(16),
    hook: attachType === attachTypes.ingress ? 'ingress' : attachType === attachTypes.egress ? 'egress' : undefined,
  }
}

/** The ids of the programs on a hook, in the order they run. */
export function queryHook(bpf: Bpf, hook: Hook, interfaceIndex: number): readonly number[] {
  const ids = Buffer.alloc(4 * 64)
  const result = bpf.call('programQuery', 'query', (attributes) => {
    attributes.u32(0, interfaceIndex)
    attributes.u32(4, attachTypes[hook])
    attributes.pointer(16, ids)
    attributes.u32(24, 64)
  })
  // A kernel without TCX has none there.
  if (result === -einval) return []
  succeed(result, `listing the programs of the ${hook} hook`)
  return Array.from({ length: bpf.answer.readUInt32LE(24) }, (_, index) => ids.readUInt32LE(4 * index))
}
