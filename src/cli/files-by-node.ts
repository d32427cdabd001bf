/** Files that are each of one node: `NODE=FILE`, or a file that is named after a node. */
import { basename } from 'node:path'
import { Failure } from '#base/failure'
import type { Cluster } from '#model/cluster'
import { requireNode } from './read-inputs'

/** `flag` is the option that names them; under the empty name stand those of no node that is told. */
export function filesByNode(
  cluster: Cluster,
  texts: readonly string[],
  { flag, node: only }: { readonly flag: string; readonly node?: string },
): ReadonlyMap<string, readonly string[]> {
  const byNode = new Map<string, string[]>()
  for (const text of texts) {
    const { node, file } = parseFileName(text, flag)
    if (node !== undefined) requireNode(cluster, node, flag)
    const owner = node ?? only ?? nodeNamedBy(file, cluster) ?? ''
    byNode.set(owner, [...(byNode.get(owner) ?? []), file])
  }
  return byNode
}

/** `node-a=rules.save`, or a file alone; a path with `=` in a folder's name is no node's name. */
function parseFileName(text: string, flag: string): { readonly node?: string; readonly file: string } {
  const match = /^([a-z0-9](?:[-a-z0-9.]*[a-z0-9])?)=(.+)$/.exec(text)
  if (match === null) {
    if (!text.startsWith('=')) return { file: text }
    throw new Failure('usage.bad-argument', `${flag} ${text} names no node; write NODE=FILE, or FILE alone`)
  }
  return { node: String(match[1]), file: String(match[2]) }
}

/** `dumps/node-a.save` is node-a's where the cluster has a node of that name. */
function nodeNamedBy(file: string, { nodes }: Cluster): string | undefined {
  for (let name = basename(file); name !== ''; name = name.slice(0, Math.max(0, name.lastIndexOf('.')))) {
    if (nodes.has(name)) return name
  }
  return undefined
}
