/** Where a command's objects come from: what `--from` names, else the cluster that the kubeconfig means, as for kubectl. */
import { Failure } from '#base/failure'
import type { Finding } from '#base/finding'
import { countOf, listOf } from '#base/text'
import type { Cluster } from '#model/cluster'
import type { ChosenCluster, ClusterOptions } from '#sources/cluster-config'
import { readFrom, sourceAt } from '#sources/read-from'
import type { Io } from './io'
import { explainBadNamespace, isNamespace } from './namespace-name'
import { printFindings } from './print-findings'
import { type ClusterCommand, commandKinds } from './read-inputs-kinds'

export type ObjectFlags = ClusterOptions & { readonly from?: readonly string[] | undefined }

export type ObjectsWanted = {
  readonly command: ClusterCommand
  /** Of a cluster: objects of one namespace alone, where no other matters. `usual` is where a bare NAME is. */
  readonly onlyNamespace?: (usual: string) => string | undefined
  /** What this call of the command can do without, of what the command needs. */
  readonly spared?: readonly string[]
  /** What it does not ask for at all. */
  readonly without?: readonly string[]
  /** Files whose objects count beside those of the cluster. */
  readonly beside?: readonly string[]
}

export type Objects = {
  readonly cluster: Cluster
  readonly findings: readonly Finding[]
  /** Where a bare NAME is, when nobody says: the namespace of the context, or `default`. */
  readonly namespace: string
  /** Some of it could not be read, and is told in the findings. */
  readonly isPartial: boolean
}

/** True when the command line itself means a cluster, for commands that need none. */
export function meansCluster({ kubeconfig, context }: ClusterOptions): boolean {
  return kubeconfig !== undefined || context !== undefined
}

export async function readObjects(io: Io, flags: ObjectFlags, wanted: ObjectsWanted): Promise<Objects> {
  const { from } = flags
  refuseBoth(flags)
  if (from !== undefined) {
    const { value: cluster, findings } = await readFrom(from, { stdin: io.stdin, say: (text) => io.err(`${text}\n`) })
    return { cluster, findings, namespace: 'default', isPartial: false }
  }
  const chosen = await findCluster(flags)
  if (chosen === undefined) throw noObjects()
  return readCluster(io, chosen, wanted)
}

export function refuseBoth({ from, kubeconfig, context }: ObjectFlags): void {
  if (from === undefined || !meansCluster({ ...(kubeconfig && { kubeconfig }), ...(context && { context }) })) return
  const flag = kubeconfig === undefined ? '--context' : '--kubeconfig'
  throw new Failure('usage.bad-argument', `--from names files, and ${flag} a cluster; leave one of them out`)
}

/** Undefined when there is none to be found. */
export async function findCluster(flags: ClusterOptions): Promise<ChosenCluster | undefined> {
  const { chooseCluster } = await import('#sources/cluster-config')
  return chooseCluster(flags, process.env)
}

export function noObjects(): Failure {
  return new Failure(
    'usage.bad-argument',
    'no objects are named, and there is no kubeconfig: add --from with a file, a folder, or - for standard input; or name a cluster with --kubeconfig FILE',
  )
}

async function readCluster(io: Io, chosen: ChosenCluster, wanted: ObjectsWanted): Promise<Objects> {
  const { needed, helpful } = commandKinds[wanted.command]
  const { spared = [], without = [], beside = [] } = wanted
  const say = (text: string): void => io.err(`${text}\n`)
  const namespace = wanted.onlyNamespace?.(chosen.namespace)
  // It becomes part of a path, where `..` would be another question.
  if (namespace !== undefined && !isNamespace(namespace)) {
    throw new Failure('usage.bad-argument', `${explainBadNamespace(namespace)}; name another with -n`)
  }
  const { readLiveCluster } = await import('#sources/cluster-read')
  const { cluster, findings, unread } = await readLiveCluster(
    chosen,
    {
      kinds: [...needed, ...helpful].filter((kind) => !without.includes(kind)),
      ...(namespace !== undefined && { namespace }),
    },
    { environment: process.env, say, beside: beside.map((path) => sourceAt(path, { stdin: io.stdin, say })) },
  )
  const told = unread.map(({ finding }) => finding)
  const missing = unread.filter(
    ({ kind }) => needed.some((one) => one.split('/')[0] === kind) && !spared.includes(kind),
  )
  if (missing.length > 0) {
    printFindings(io, told)
    const kinds = [...new Set(missing.map(({ kind }) => kind))]
    const what = kinds.length <= 3 ? listOf(kinds) : countOf(kinds.length, 'kind')
    throw new Failure(
      'cluster.unread',
      `the answer is unknown: it rests on ${what} of cluster ${chosen.context}, which cannot be read, for what is told above`,
    )
  }
  return { cluster, findings: [...told, ...findings], namespace: chosen.namespace, isPartial: unread.length > 0 }
}
