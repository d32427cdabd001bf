/** A server of this folder, read by the reader alone; and what it answers in place of itself. */
import type { RawObject } from '../../src/manifests/text/raw-object'
import { chooseCluster, type Environment } from '../../src/sources/cluster-config'
import { type ClusterReading, readLiveCluster } from '../../src/sources/cluster-read'
import { type RequestLimits, usualLimits } from '../../src/sources/cluster-request'
import { type ApiServer, type ApiServerOptions, readSamples, startApiServer } from './api-server'
import { type ConfigParts, writeConfig } from './kubeconfig'

export async function serving<T>(
  options: Partial<ApiServerOptions>,
  work: (server: ApiServer) => Promise<T>,
): Promise<T> {
  const objects = options.objects ?? (await readSamples('samples/traffic-policy'))
  const server = await startApiServer({ ...options, objects })
  try {
    return await work(server)
  } finally {
    await server.close()
  }
}

export type Read = ClusterReading & { readonly pauses: readonly number[]; readonly said: readonly string[] }

export type Reading = {
  readonly folder: string
  readonly kinds: readonly string[]
  readonly parts?: Omit<ConfigParts, 'server'>
  readonly environment?: Environment
  readonly limits?: Partial<RequestLimits>
  /** Else the pauses that a server asks for are only remembered. */
  readonly sleep?: (milliseconds: number, signal: AbortSignal) => Promise<void>
}

export async function read(url: string, reading: Reading): Promise<Read> {
  const { folder, kinds, parts, environment = {}, limits } = reading
  const kubeconfig = writeConfig(folder, { ...parts, server: url }, `config-${new URL(url).port}`)
  const chosen = await chooseCluster({ kubeconfig }, {})
  if (chosen === undefined) throw new Error('the kubeconfig is not found')
  const pauses: number[] = []
  const said: string[] = []
  const sleep =
    reading.sleep ??
    (async (milliseconds: number): Promise<void> => {
      pauses.push(milliseconds)
    })
  const read = await readLiveCluster(
    chosen,
    { kinds },
    {
      environment,
      say: (sentence) => said.push(sentence),
      limits: { ...usualLimits, ...limits },
      sleep,
    },
  )
  return { ...read, pauses, said }
}

export function policies(count: number): readonly RawObject[] {
  return Array.from({ length: count }, (_, index): RawObject => {
    const name = `policy-${String(index).padStart(6, '0')}`
    const value = { metadata: { name, namespace: 'shop' }, spec: { podSelector: {} } }
    return { kind: 'NetworkPolicy', apiVersion: 'networking.k8s.io/v1', value, origin: { file: 'test' } }
  })
}

type Answering = { readonly headers?: Record<string, string>; readonly times?: number }

/** Answers paths of the pattern in place of the server, `times` times. */
export function answering(
  pattern: RegExp,
  status: number,
  body: unknown,
  { headers = {}, times = Number.MAX_VALUE }: Answering = {},
): NonNullable<ApiServerOptions['meddle']> {
  let count = 0
  return ({ url = '' }, response) => {
    if (!pattern.test(url) || count++ >= times) return false
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    response.writeHead(status, {
      'content-type': typeof body === 'string' ? 'text/html' : 'application/json',
      ...headers,
    })
    response.end(text)
    return true
  }
}
