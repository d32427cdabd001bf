/** The objects of one kind, page by page, so that no list is ever held whole. */
import { clusterOrigin } from '#base/finding'
import { plainText } from '#base/text'
import { isRecord, type RawObject, type RawRecord } from '#manifests/text/raw-object'
import type { ServedKind } from './cluster-discovery'
import { type ApiClient, ApiTrouble } from './cluster-request'

/** As kubectl asks for. */
const pageSize = 500
/** A list that changes faster than it is read is given up. */
const mostRestarts = 3

export type ListScope = { readonly namespace?: string }

/** `restart` is called when all that was given to `take` must be forgotten. */
export type Taking = { readonly take: (objects: readonly RawObject[]) => void; readonly restart: () => void }

export type PageReader = {
  /** Asks for the first page, so that kinds are waited for together. */
  readonly start: () => void
  /** Throws `ApiTrouble`. */
  readonly read: (taking: Taking) => Promise<'read' | 'absent'>
}

export function openPages(client: ApiClient, served: ServedKind, scope: ListScope): PageReader {
  const queries = queriesOf(served, scope)
  const ahead = new Map<string, Promise<RawRecord>>()
  const lookAhead = (query: string): void => {
    const asked = client.get(query)
    // It fails where it is waited for.
    asked.catch(() => undefined)
    ahead.set(query, asked)
  }
  const get = (query: string): Promise<RawRecord> => {
    const asked = ahead.get(query)
    ahead.delete(query)
    return asked ?? client.get(query)
  }
  return {
    start: () => queries.forEach(lookAhead),
    read: async (taking) => {
      for (let restarts = 0; ; restarts++) {
        try {
          for (const query of queries) await readPages(query, { get, lookAhead, take: taking.take, served, client })
          return 'read'
        } catch (error) {
          const trouble = error instanceof ApiTrouble ? error.trouble : undefined
          taking.restart()
          // The kind went away since it was discovered. What else answers 404 stands before the API server.
          if (trouble?.isAbsent === true) return 'absent'
          if (trouble?.isGone !== true || restarts === mostRestarts) throw error
        }
      }
    },
  }
}

function queriesOf({ path, resource, isNamespaced, wanted }: ServedKind, scope: ListScope): readonly string[] {
  const placed = (namespace: string | undefined): string =>
    isNamespaced && namespace !== undefined
      ? `${path}/namespaces/${encodeURIComponent(namespace)}/${resource}`
      : `${path}/${resource}`
  if (wanted.names === undefined) return [`${placed(scope.namespace)}?limit=${pageSize}`]
  return wanted.names.map(({ name, namespace }) => {
    const selector = encodeURIComponent(`metadata.name=${name}`)
    return `${placed(namespace)}?limit=${pageSize}&fieldSelector=${selector}`
  })
}

type Pages = {
  readonly get: (query: string) => Promise<RawRecord>
  readonly lookAhead: (query: string) => void
  readonly take: Taking['take']
  readonly served: ServedKind
  readonly client: ApiClient
}

/** The next page is asked for while this one is read. */
async function readPages(query: string, { get, lookAhead, take, served, client }: Pages): Promise<void> {
  const seen = new Set<string>()
  let page = await get(query)
  for (;;) {
    const token = tokenOf(page)
    if (seen.has(token)) throw foreign('its list leads in a circle')
    seen.add(token)
    const next = `${query}&continue=${encodeURIComponent(token)}`
    if (token !== '') lookAhead(next)
    take(objectsOf(page, served, client.context))
    if (token === '') return
    page = await get(next)
  }
}

function tokenOf({ metadata }: RawRecord): string {
  const { continue: token = '' } = isRecord(metadata) ? metadata : {}
  if (typeof token === 'string') return token
  throw foreign('its list goes on nobody knows where')
}

/** Items of kinds that are built in have neither kind nor apiVersion. */
function objectsOf({ items }: RawRecord, { wanted: { kind }, apiVersion }: ServedKind, context: string): RawObject[] {
  if (items === null) return []
  if (!Array.isArray(items)) throw foreign('it is no list')
  return items.map((value: unknown): RawObject => {
    if (!isRecord(value)) throw foreign('its list holds what is no object')
    const { name, namespace } = isRecord(value.metadata) ? value.metadata : {}
    const place = typeof namespace === 'string' && namespace !== '' ? { namespace: plainText(namespace) } : {}
    const origin = clusterOrigin(context, { kind, ...place, name: plainText(String(name ?? '')) })
    return { kind, apiVersion, value, origin }
  })
}

function foreign(fact: string): ApiTrouble {
  return new ApiTrouble({ kind: 'foreign', fact, isPassing: false })
}
