/** A cluster as its API server has it: the kinds asked for, given to the parser that reads files, and what cannot be read. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Finding } from '#base/finding'
import { countOf, listOf } from '#base/text'
import { openBuilder } from '#manifests/build-cluster'
import type { Cluster } from '#model/cluster'
import type { ChosenCluster, Environment } from './cluster-config'
import { discoverKinds } from './cluster-discovery'
import { type ClusterKind, kindsNamed, pluralOf, printResource } from './cluster-kinds'
import { type ListScope, openPages } from './cluster-list'
import { openLogin } from './cluster-login'
import { type ApiClient, ApiTrouble, openApiClient, type RequestLimits, usualLimits } from './cluster-request'
import type { Trouble } from './cluster-trouble'
import { sourceFinding } from './findings'
import type { Progress } from './progress'
import type { ObjectSource } from './read-from'
import { progressOf } from './read-text'

export type ClusterReading = {
  readonly cluster: Cluster
  readonly findings: readonly Finding[]
  /** What is not known of the cluster, each with the finding that says why. */
  readonly unread: readonly { readonly kind: string; readonly finding: Finding }[]
}

export type ClusterWanted = ListScope & {
  /** By name; of ConfigMaps `ConfigMap/NAME`. */
  readonly kinds: readonly string[]
}

export type ClusterReadOptions = {
  readonly environment: Environment
  readonly say: (sentence: string) => void
  readonly limits?: RequestLimits
  readonly sleep?: (milliseconds: number) => Promise<void>
  /** Objects that count beside those of the cluster, and before them. */
  readonly beside?: readonly ObjectSource[]
}

/** Throws `Failure` when nothing at all can be read. Only ever asks; never writes. */
export async function readLiveCluster(
  chosen: ChosenCluster,
  wanted: ClusterWanted,
  { environment, say, ...options }: ClusterReadOptions,
): Promise<ClusterReading> {
  const login = openLogin(chosen, { environment, say, now: Date.now })
  try {
    const client = openApiClient(login, {
      limits: options.limits ?? usualLimits,
      sleep: options.sleep ?? ((milliseconds) => sleep(milliseconds)),
    })
    return await readKinds(client, wanted, { progress: progressOf({ say }), beside: options.beside ?? [] })
  } finally {
    login.close()
  }
}

type Beside = { readonly progress: Progress; readonly beside: readonly ObjectSource[] }

async function readKinds(
  client: ApiClient,
  wanted: ClusterWanted,
  { progress, beside }: Beside,
): Promise<ClusterReading> {
  const { served, absent, unread } = await discoverKinds(client, kindsNamed(wanted.kinds))
  const builder = openBuilder({ isLive: true })
  const troubles: { readonly kind: ClusterKind; readonly trouble: Trouble }[] = unread.map((one) => ({
    kind: one.wanted,
    trouble: one.trouble,
  }))
  const lists = served.map((one) => ({ one, pages: openPages(client, one, wanted) }))
  for (const { pages } of lists) pages.start()
  let count = 0
  for (const { one, pages } of lists) {
    const forget = builder.mark()
    const before = count
    const trouble = await attempt(() =>
      pages.read({
        take: (objects) => {
          for (const object of objects) builder.add(object)
          count += objects.length
          progress.tell(() => tellCount(client, count))
        },
        restart: () => {
          forget()
          count = before
        },
      }),
    )
    if (trouble !== undefined) troubles.push({ kind: one.wanted, trouble })
  }
  const read: Finding[] = []
  for (const source of beside) {
    const { value, findings } = await source(progress)
    for (const object of value) builder.add(object)
    read.push(...findings)
  }
  const { value: cluster, findings } = builder.build()
  const told = troubles.map(({ kind, trouble }) => ({ kind: kind.kind, finding: unreadKind(client, kind, trouble) }))
  return { cluster, findings: [...notServed(client, absent), ...read, ...findings], unread: told }
}

function tellCount({ context }: ApiClient, count: number): string {
  return count === 0 ? `asking cluster ${context}` : `${countOf(count, 'object')} read from cluster ${context} so far`
}

async function attempt(work: () => Promise<void>): Promise<Trouble | undefined> {
  try {
    await work()
    return undefined
  } catch (error) {
    if (error instanceof ApiTrouble) return error.trouble
    throw error
  }
}

function unreadKind({ context }: ApiClient, kind: ClusterKind, { status, fact }: Trouble): Finding {
  const remedy =
    status === 403 || status === 401
      ? `allow this user the verb list on ${printResource(kind)}, as docs/cluster.md shows`
      : 'try again, or give the objects with --from'
  const message = `${pluralOf(kind)} of cluster ${context} cannot be read, and are not known: ${fact}`
  return sourceFinding('cluster.unread-kind', { message, hint: remedy })
}

/** A cluster without Cilium has none of its policies: that is known. */
function notServed({ context }: ApiClient, absent: readonly ClusterKind[]): readonly Finding[] {
  if (absent.length === 0) return []
  const groups = [...new Set(absent.map(({ groups: [group = ''] }) => group))].sort()
  const names =
    absent.length <= 3 ? listOf(absent.map(pluralOf)) : `the ${absent.length} kinds asked for of ${listOf(groups)}`
  const message = `cluster ${context} does not serve ${names}: it has no such objects`
  return [sourceFinding('cluster.kind-not-served', { message })]
}
