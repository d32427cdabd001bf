/** Which of the kinds wanted a cluster serves, and in which version: its own word for it, under /api and /apis. */
import { isRecord, type RawRecord } from '#manifests/text/raw-object'
import type { ClusterKind } from './cluster-kinds'
import { type ApiClient, ApiTrouble } from './cluster-request'
import { failureOf, type Trouble } from './cluster-trouble'

export type ServedKind = {
  readonly wanted: ClusterKind
  readonly apiVersion: string
  /** `/api/v1` or `/apis/GROUP/VERSION`. */
  readonly path: string
  readonly resource: string
  readonly isNamespaced: boolean
}

export type Discovery = {
  readonly served: readonly ServedKind[]
  readonly absent: readonly ClusterKind[]
  /** Groups that are there, but cannot be asked now. */
  readonly unread: readonly { readonly wanted: ClusterKind; readonly trouble: Trouble }[]
}

/** Throws `Failure` when the server cannot be asked at all. */
export async function discoverKinds(client: ApiClient, wanted: readonly ClusterKind[]): Promise<Discovery> {
  const versions = await readGroups(client)
  const groups = [...new Set(wanted.flatMap((kind) => kind.groups))].filter((group) => versions.has(group))
  const read = await Promise.all(
    groups.map(async (group): Promise<[string, Group]> => {
      const kinds = wanted.filter((kind) => kind.groups.includes(group)).map(({ kind }) => kind)
      return [group, await readGroup(client, versions.get(group) ?? [], kinds)]
    }),
  )
  return sortOut(wanted, new Map(read))
}

function sortOut(wanted: readonly ClusterKind[], groups: ReadonlyMap<string, Group>): Discovery {
  const served: ServedKind[] = []
  const absent: ClusterKind[] = []
  const unread: Discovery['unread'][number][] = []
  for (const kind of wanted) {
    const found = kind.groups.flatMap((group) => groups.get(group)?.kinds.get(kind.kind) ?? [])
    const trouble = kind.groups.map((group) => groups.get(group)?.trouble).find((one) => one !== undefined)
    for (const one of kind.hasOwnObjects ? found : found.slice(0, 1)) served.push({ ...one, wanted: kind })
    if (trouble !== undefined && (found.length === 0 || kind.hasOwnObjects)) unread.push({ wanted: kind, trouble })
    else if (found.length === 0) absent.push(kind)
  }
  return { served, absent, unread }
}

/** Every group with the paths of its versions, the one that the server prefers first. */
async function readGroups(client: ApiClient): Promise<ReadonlyMap<string, readonly string[]>> {
  const answer = await client.get('/apis').catch((error: unknown) => {
    throw error instanceof ApiTrouble ? failureOf(error.trouble, client) : error
  })
  const listed = answer.groups ?? (answer.kind === 'APIGroupList' ? [] : undefined)
  if (!Array.isArray(listed)) {
    const fact = 'what it answers to /apis is no list of API groups'
    throw failureOf({ kind: 'foreign', fact, isPassing: false }, client)
  }
  const versions = new Map<string, readonly string[]>([['', ['/api/v1']]])
  for (const group of listed.filter(isRecord)) {
    const preferred = isRecord(group.preferredVersion) ? [group.preferredVersion] : []
    const others = Array.isArray(group.versions) ? group.versions.filter(isRecord) : []
    const paths = [...preferred, ...others].flatMap(({ groupVersion }) => pathOf(groupVersion))
    if (typeof group.name === 'string') versions.set(group.name, [...new Set(paths)])
  }
  return versions
}

function pathOf(groupVersion: unknown): readonly string[] {
  return typeof groupVersion === 'string' && /^[a-z0-9.-]+\/[a-z0-9]+$/.test(groupVersion)
    ? [`/apis/${groupVersion}`]
    : []
}

type Group = { readonly kinds: ReadonlyMap<string, Omit<ServedKind, 'wanted'>>; readonly trouble?: Trouble }

/** Versions are read until every kind is found; what one that cannot be asked has may stand in another. */
async function readGroup(client: ApiClient, paths: readonly string[], wanted: readonly string[]): Promise<Group> {
  const kinds = new Map<string, Omit<ServedKind, 'wanted'>>()
  let trouble: Trouble | undefined
  for (const path of paths) {
    if (wanted.every((kind) => kinds.has(kind))) break
    try {
      for (const one of resourcesOf(await client.get(path), path)) {
        if (wanted.includes(one.kind) && !kinds.has(one.kind)) kinds.set(one.kind, one)
      }
    } catch (error) {
      if (!(error instanceof ApiTrouble)) throw error
      // A version that went away since the groups were read, by the server's own word.
      if (error.trouble.isAbsent !== true) trouble ??= error.trouble
    }
  }
  return trouble === undefined ? { kinds } : { kinds, trouble }
}

function resourcesOf(
  { kind: own, resources }: RawRecord,
  path: string,
): readonly (Omit<ServedKind, 'wanted'> & { kind: string })[] {
  if ((resources ?? undefined) === undefined && own === 'APIResourceList') return []
  if (!Array.isArray(resources)) {
    throw new ApiTrouble({ kind: 'foreign', fact: `what it answers to ${path} is no list of kinds`, isPassing: false })
  }
  return resources.filter(isRecord).flatMap(({ name, kind, namespaced, verbs }) => {
    const isListed = Array.isArray(verbs) && verbs.includes('list')
    // Subresources such as pods/log have kinds of others.
    if (typeof kind !== 'string' || typeof name !== 'string' || !/^[a-z0-9]+$/.test(name) || !isListed) return []
    return [
      { kind, apiVersion: path.replace(/^\/apis?\//, ''), path, resource: name, isNamespaced: namespaced === true },
    ]
  })
}
