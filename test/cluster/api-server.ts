/** A small API server: discovery, lists in pages, and refusals, over the objects of files, as kube-apiserver answers. */
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import type { RawObject } from '../../src/manifests/text/raw-object'
import { trafficGroup } from '../../src/model/traffic-policy'
import { clusterKinds } from '../../src/sources/cluster-kinds'
import { sourceAt } from '../../src/sources/read-from'
import type { Certificates } from './certificates'

export type ApiServerOptions = {
  readonly objects: readonly RawObject[]
  readonly tls?: Certificates
  /** Without it everybody is let in. */
  readonly token?: string
  /** No page is longer, whatever is asked for. */
  readonly mostItems?: number
  /** Groups that this cluster does not have. */
  readonly without?: readonly string[]
  /** `pods`, `networkpolicies.networking.k8s.io`. */
  readonly forbidden?: readonly string[]
  /** The address that it listens on. */
  readonly host?: string
  /** The path that it stands below, as behind Rancher. */
  readonly below?: string
  /** Answers in place of the server; true when it did. */
  readonly meddle?: (request: IncomingMessage, response: ServerResponse, count: number) => boolean
}

export type ApiServer = {
  readonly url: string
  /** Method, path and query of each request, in order. */
  readonly requests: readonly string[]
  readonly tokens: readonly string[]
  /** The objects change, so that tokens of pages go out of date. */
  readonly touch: () => void
  readonly close: () => Promise<void>
}

type Stored = { readonly namespace: string; readonly name: string; readonly value: Readonly<Record<string, unknown>> }
type Resource = {
  readonly kind: string
  readonly name: string
  readonly isNamespaced: boolean
  readonly items: readonly Stored[]
}

/** A version that is served: `v1`, `apps/v1`. */
type Served = ReadonlyMap<string, ReadonlyMap<string, Resource>>

const usualVersions: Readonly<Record<string, string>> = {
  '': 'v1',
  apps: 'apps/v1',
  batch: 'batch/v1',
  'discovery.k8s.io': 'discovery.k8s.io/v1',
  'networking.k8s.io': 'networking.k8s.io/v1',
  'policy.networking.k8s.io': 'policy.networking.k8s.io/v1alpha1',
  'cilium.io': 'cilium.io/v2',
  [trafficGroup]: `${trafficGroup}/v1alpha1`,
}

export async function readSamples(...paths: readonly string[]): Promise<readonly RawObject[]> {
  const quiet = { tell: () => undefined, announce: () => undefined }
  const read = await Promise.all(paths.map((path) => sourceAt(path, {})(quiet)))
  return read.flatMap(({ value }) => value)
}

export async function startApiServer(options: ApiServerOptions): Promise<ApiServer> {
  const served = serve(options)
  const requests: string[] = []
  const tokens: string[] = []
  const state = { version: 1000 }
  const take = (request: IncomingMessage, response: ServerResponse): void => {
    requests.push(`${request.method} ${request.url}`)
    tokens.push(request.headers.authorization ?? '')
    if (options.meddle?.(request, response, requests.length) === true) return
    const { status, body } = answer(request, { served, options, version: state.version })
    const text = JSON.stringify(body)
    const isPacked = text.length > 2000 && /gzip/.test(String(request.headers['accept-encoding']))
    response.writeHead(status, {
      'content-type': 'application/json',
      ...(isPacked && { 'content-encoding': 'gzip' }),
    })
    response.end(isPacked ? gzipSync(text) : text)
  }
  const server =
    options.tls === undefined
      ? createHttpServer(take)
      : createHttpsServer(
          {
            key: options.tls.serverKey,
            cert: options.tls.serverCertificate,
            ca: options.tls.authority,
            requestCert: true,
            rejectUnauthorized: options.token === undefined,
          },
          take,
        )
  const { host = '127.0.0.1' } = options
  await new Promise<void>((ready) => server.listen(0, host, ready))
  const { port } = server.address() as AddressInfo
  return {
    url: `${options.tls === undefined ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}:${port}`,
    requests,
    tokens,
    touch: () => {
      state.version++
    },
    close: async () => {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

/** Every kind that Portolan knows is served, whether there are objects of it or not. */
function serve({ objects, without = [] }: ApiServerOptions): Served {
  const served = new Map<string, Map<string, Resource>>()
  for (const { kind, groups, resource, isNamespaced, hasOwnObjects } of clusterKinds.values()) {
    for (const group of hasOwnObjects ? groups : groups.slice(0, 1)) {
      if (without.includes(group)) continue
      const own = objects.filter((one) => one.kind === kind && groupOf(one.apiVersion) === group)
      const version = own[0]?.apiVersion ?? usualVersions[group] ?? `${group}/v1alpha1`
      const resources = served.get(version) ?? new Map<string, Resource>()
      resources.set(resource, {
        kind,
        name: resource,
        isNamespaced,
        items: own.map((one) => stored(one, isNamespaced)).sort(byKey),
      })
      served.set(version, resources)
    }
  }
  return served
}

function groupOf(apiVersion: string): string {
  return apiVersion.includes('/') ? (apiVersion.split('/')[0] ?? '') : ''
}

/** As etcd keys are ordered. */
function byKey(a: Stored, b: Stored): number {
  const [left, right] = [`${a.namespace}/${a.name}`, `${b.namespace}/${b.name}`]
  return left < right ? -1 : left > right ? 1 : 0
}

/** Kinds that are built in go over the wire without their kind; those of CRDs with it. */
function stored({ value, apiVersion }: RawObject, isNamespaced: boolean): Stored {
  const metadata = value.metadata as { readonly name: string; readonly namespace?: string }
  const namespace = isNamespaced ? (metadata.namespace ?? 'default') : ''
  const { kind, apiVersion: _, ...rest } = value
  const isBuiltIn = !/cilium|portolan|policy\.networking|datum/.test(apiVersion)
  const placed = { ...rest, metadata: { ...metadata, ...(isNamespaced && { namespace }) } }
  return { namespace, name: metadata.name, value: isBuiltIn ? placed : { kind, apiVersion, ...placed } }
}

type Serving = { readonly served: Served; readonly options: ApiServerOptions; readonly version: number }
type Answer = { readonly status: number; readonly body: unknown }

function answer(request: IncomingMessage, { served, options, version }: Serving): Answer {
  if (request.method !== 'GET')
    return refuse(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource')
  if (options.token !== undefined && request.headers.authorization !== `Bearer ${options.token}`) {
    return refuse(401, 'Unauthorized', 'Unauthorized')
  }
  const { url: asked = '' } = request
  const { below = '' } = options
  if (!asked.startsWith(below)) return { status: 404, body: '404 page not found' }
  const url = new URL(`http://server${asked.slice(below.length)}`)
  if (url.pathname === '/apis') return { status: 200, body: groupList(served) }
  const [, groupVersion = '', rest = ''] = /^\/apis?\/((?:v1)|(?:[^/]+\/[^/]+))(?:\/(.+))?$/.exec(url.pathname) ?? []
  const resources = served.get(groupVersion)
  if (resources === undefined) return { status: 404, body: '404 page not found' }
  if (rest === '') return { status: 200, body: resourceList(groupVersion, resources) }
  const [, namespace, name = ''] = /^(?:namespaces\/([^/]+)\/)?([a-z0-9]+)$/.exec(rest) ?? []
  const resource = resources.get(name)
  if (resource === undefined) return refuse(404, 'NotFound', 'the server could not find the requested resource')
  const group = groupOf(groupVersion)
  if (options.forbidden?.includes(group === '' ? name : `${name}.${group}`) === true) {
    const scope = namespace === undefined ? 'at the cluster scope' : `in the namespace "${namespace}"`
    return refuse(
      403,
      'Forbidden',
      `${name} is forbidden: User "jane" cannot list resource "${name}" in API group "${group}" ${scope}`,
    )
  }
  return list(resource, {
    groupVersion,
    namespace,
    query: url.searchParams,
    version,
    mostItems: options.mostItems ?? 500,
  })
}

function groupList(served: Served): unknown {
  const groups = new Map<string, readonly string[]>()
  for (const version of served.keys()) {
    const group = groupOf(version)
    if (group !== '') groups.set(group, [...(groups.get(group) ?? []), version])
  }
  return {
    kind: 'APIGroupList',
    apiVersion: 'v1',
    groups: [...groups].map(([name, versions]) => {
      const known = versions.map((groupVersion) => ({ groupVersion, version: groupVersion.split('/')[1] }))
      return { name, versions: known, preferredVersion: known[0] }
    }),
  }
}

function resourceList(groupVersion: string, resources: ReadonlyMap<string, Resource>): unknown {
  const list = [...resources.values()].flatMap(({ name, kind, isNamespaced }) => [
    { name, singularName: '', namespaced: isNamespaced, kind, verbs: ['get', 'list', 'watch'] },
    { name: `${name}/status`, singularName: '', namespaced: isNamespaced, kind, verbs: ['get'] },
  ])
  return { kind: 'APIResourceList', groupVersion, resources: list }
}

type Asked = {
  readonly groupVersion: string
  readonly namespace: string | undefined
  readonly query: URLSearchParams
  readonly version: number
  readonly mostItems: number
}

/** apiserver, storage/continue.go: a token holds the version it was given at and where to go on. */
function list({ kind, items }: Resource, { groupVersion, namespace, query, version, mostItems }: Asked): Answer {
  const selector = query.get('fieldSelector')?.replace(/^metadata\.name=/, '')
  const chosen = items.filter(
    (one) =>
      (namespace === undefined || one.namespace === namespace) && (selector === undefined || one.name === selector),
  )
  const token = query.get('continue')
  const { at = 0, rv = version } =
    token === null ? {} : (JSON.parse(Buffer.from(token, 'base64url').toString()) as { at: number; rv: number })
  if (rv !== version) {
    return refuse(410, 'Expired', 'The provided continue parameter is too old to display a consistent list result.')
  }
  const limit = Math.min(Number(query.get('limit') ?? 500), mostItems)
  const page = chosen.slice(at, at + limit)
  const next =
    at + limit < chosen.length ? Buffer.from(JSON.stringify({ at: at + limit, rv })).toString('base64url') : ''
  const metadata = { resourceVersion: String(rv), ...(next !== '' && { continue: next }) }
  return {
    status: 200,
    body: { kind: `${kind}List`, apiVersion: groupVersion, metadata, items: page.map(({ value }) => value) },
  }
}

function refuse(code: number, reason: string, message: string): Answer {
  return {
    status: code,
    body: { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason, code },
  }
}
