/** Held interfaces as this thread's network namespace has them now: a row keeps the name and the place that its interface was attached in. */
import { Failure } from '#base/failure'
import { type HeldInterface, type InterfaceTools, liveLink } from './datapath-interfaces'
import type { HeldAttachments } from './held-attachments'
import { queryHook } from './links'
import { namespaceInode, ownNamespace } from './network-namespace'
import { listInterfaces } from './rtnetlink'

type Tools = Pick<InterfaceTools, 'bpf' | 'folders'>

/**
 * One that was renamed has its new name, one that was moved here has this namespace, and one that was moved away has no
 * known one (0): its former index and name may be another's by now. Filters of `clsact` tell nothing of the kind; their
 * rows stay what they are, and a name goes by the index.
 */
export function presentInterfaces(
  tools: Tools,
  held: readonly HeldInterface[],
  byDescriptor?: HeldAttachments,
): readonly HeldInterface[] {
  if (held.length === 0) return held
  const names = new Map(listInterfaces(tools.bpf.native).map(({ index, name }) => [index, name]))
  const own = namespaceInode(ownNamespace)
  return held.map((one) => {
    const index = indexHere(tools, one, { names, own, byDescriptor })
    const name = index === undefined ? undefined : names.get(index)
    if (index !== undefined && name !== undefined) return { ...one, name, index, namespace: own }
    return one.namespace === own ? { ...one, namespace: unknownNamespace } : one
  })
}

const unknownNamespace = 0n

type Here = {
  readonly names: ReadonlyMap<number, string>
  readonly own: bigint
  readonly byDescriptor: HeldAttachments | undefined
}

/** By the program on its hook: indexes repeat in every namespace. */
function indexHere(tools: Tools, held: HeldInterface, { names, own, byDescriptor }: Here): number | undefined {
  const link = attempt(() => liveLink(tools, held.slot, byDescriptor))
  if (link?.hook === undefined) return held.namespace === own ? held.index : undefined
  const { hook, interfaceIndex, programId } = link
  if (!names.has(interfaceIndex)) return undefined
  const isHere = attempt(() => queryHook(tools.bpf, hook, interfaceIndex))?.includes(programId) === true
  return isHere ? interfaceIndex : undefined
}

/** It may have gone since it was listed, and a bpffs that is read-only gives no links away. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof Failure) return undefined
    throw error
  }
}
