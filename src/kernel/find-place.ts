/** Where an interface is now that was attached under another name or in another namespace. */
import type { Bpf } from './bpf-sys'
import type { HeldInterface } from './datapath-interfaces'
import { type LinkInfo, queryHook } from './links'
import { findNamespace, insideNamespace, knownNamespaces } from './network-namespace'
import { listInterfaces } from './rtnetlink'

export type Place = { readonly name: string; readonly namespacePath: string }

/**
 * By the program on its hook, as it may have been renamed or moved; a filter of clsact would not have moved along.
 * Undefined where it is gone, or is in a namespace that has no name.
 */
export function findPlace(bpf: Bpf, held: HeldInterface, link: LinkInfo | undefined): Place | undefined {
  const home = findNamespace(held.namespace)
  const paths = [home, ...(link === undefined ? [] : knownNamespaces())]
  for (const namespacePath of paths) {
    if (namespacePath === undefined) continue
    const name = insideNamespace(bpf.native, namespacePath, () => {
      const found = listInterfaces(bpf.native).find(({ index }) => index === (link?.interfaceIndex ?? held.index))
      if (found === undefined || link?.hook === undefined) return found?.name
      return queryHook(bpf, link.hook, found.index).includes(link.programId) ? found.name : undefined
    })
    if (name !== undefined) return { name, namespacePath }
  }
  return undefined
}
