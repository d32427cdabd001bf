/** A cluster as its API server has it: the kinds asked for, given to the parser that reads files, and what cannot be read. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Finding, Parsed } from '#base/finding'
import { countOf, listOf } from '#base/text'
import { type ClusterBuilder, openBuilder } from '#manifests/build-cluster'
import type { RawObject } from '#manifests/text/raw-object'
import type { Cluster } from '#model/cluster'
import type { ChosenCluster, Environment } from './cluster-config'
import { type Discovery, discoverKinds } from './cluster-discovery'
import { type ClusterKind, kindsNamed, pluralOf, printResource } from './cluster-kinds'
import { type ListScope, openPages, type Taking } from './cluster-list'
import { openLogin } from './cluster-login'
import { type Memory, watchMemory } from './cluster-memory'
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
  readonly sleep?: (milliseconds: number, signal: AbortSignal) => Promise<void>
  /** Objects that count beside those of the cluster; of two with one name, these. */
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
      sleep: options.sleep ?? ((milliseconds, signal) => sleep(milliseconds, undefined, { signal })),
    })
    return await readKinds(client, wanted, { progress: progressOf({ say }), beside: options.beside ?? [] })
  } finally {
    login.close()
  }
}

const tellMilliseconds = 500

/** Tells how far the reading is also while nothing comes; not while a plugin may speak to its user. */
async function telling<T>(client: ApiClient, progress: Progress, work: (count: Count) => Promise<T>): Promise<T> {
  const memory = watchMemory()
  const count: Count = { objects: 0, memory }
  const timer = setInterval(() => {
    const { questions, pause } = client.waiting()
    if (questions > 0 || pause !== '') progress.tell(() => tellCount(client, count.objects))
  }, tellMilliseconds)
  try {
    return await work(count)
  } finally {
    clearInterval(timer)
    memory.close()
  }
}

type Count = { objects: number; readonly memory: Memory }

type Beside = { readonly progress: Progress; readonly beside: readonly ObjectSource[] }

async function readKinds(
  client: ApiClient,
  wanted: ClusterWanted,
  { progress, beside }: Beside,
): Promise<ClusterReading> {
  // Files that are not there are found before a minute of reading.
  const files: Parsed<readonly RawObject[]>[] = []
  for (const source of beside) files.push(await source(progress))
  const builder = openBuilder({ isLive: true })
  const { absent, unread } = await telling(client, progress, (count) =>
    readLists(client, wanted, { builder, progress, count }),
  )
  for (const object of files.flatMap(({ value }) => value)) builder.add(object)
  const { value: cluster, findings } = builder.build()
  const told = unread.map(({ wanted: kind, trouble }) => ({
    kind: kind.kind,
    finding: unreadKind(client, kind, trouble),
  }))
  const ofFiles = files.flatMap((file) => file.findings)
  return { cluster, findings: [...notServed(client, absent), ...ofFiles, ...findings], unread: told }
}

type Lists = { readonly builder: ClusterBuilder; readonly progress: Progress; readonly count: Count }

/** What there is of each kind goes into the builder; what there is not comes back. */
async function readLists(
  client: ApiClient,
  wanted: ClusterWanted,
  { builder, progress, count }: Lists,
): Promise<Pick<Discovery, 'absent' | 'unread'>> {
  const { served, absent, unread } = await discoverKinds(client, kindsNamed(wanted.kinds))
  const found = { absent: [...absent], unread: [...unread] }
  const lists = served.map((one) => ({ one, pages: openPages(client, one, wanted) }))
  for (const { pages } of lists) pages.start()
  for (const { one, pages } of lists) {
    const forget = builder.mark()
    const before = count.objects
    const taking: Taking = {
      take: (objects) => {
        for (const object of objects) builder.add(object)
        count.objects += objects.length
        count.memory.check(client.context, count.objects)
        progress.tell(() => tellCount(client, count.objects))
      },
      restart: () => {
        forget()
        count.objects = before
      },
    }
    const end = await attempt(() => pages.read(taking))
    const isElsewhere = served.some((other) => other !== one && other.wanted === one.wanted)
    if (end === 'absent' && !isElsewhere) found.absent.push(one.wanted)
    else if (end === 'absent') continue
    else if (end !== 'read') found.unread.push({ wanted: one.wanted, trouble: end })
  }
  return found
}

function tellCount(client: ApiClient, count: number): string {
  const { context } = client
  const { pause } = client.waiting()
  const fact =
    count === 0 ? `asking cluster ${context}` : `${countOf(count, 'object')} read from cluster ${context} so far`
  return pause === '' ? fact : `${fact}: ${pause}`
}

async function attempt<T>(work: () => Promise<T>): Promise<T | Trouble> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ApiTrouble) return error.trouble
    throw error
  }
}

function unreadKind({ context }: ApiClient, kind: ClusterKind, { status, fact, remedy }: Trouble): Finding {
  const usual =
    status === 403
      ? `allow this user the verb list on ${printResource(kind)}, as docs/cluster.md shows`
      : 'try again, or give the objects with --from'
  const message = `${pluralOf(kind)} of cluster ${context} cannot be read, and are not known: ${fact}`
  return sourceFinding('cluster.unread-kind', { message, hint: remedy ?? usual })
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
