/** What only the Kubernetes client library does: proxies, and the log-ins of `auth-provider` (OIDC, and old ones of clouds). */
import type { OutgoingHttpHeaders } from 'node:http'
import { Agent as HttpAgent } from 'node:http'
import type { RequestOptions } from 'node:https'
import { Failure } from '#base/failure'
import { plainText } from '#base/text'
import { isRecord, type RawRecord } from '#manifests/text/raw-object'
import { type ChosenCluster, type ConfigEntry, flagAt, textAt } from './cluster-config'
import type { Identity } from './cluster-user'

export type ByLibrary = { readonly agent: HttpAgent | undefined; readonly headers: OutgoingHttpHeaders }

type Asked = { readonly identity: Identity; readonly server: URL; readonly proxyUrl: string }

/** Loads the library, which takes a second. The agent leads through the proxy, if there is one. */
export async function logInByLibrary(
  { cluster, user }: ChosenCluster,
  { identity, server, proxyUrl }: Asked,
): Promise<ByLibrary> {
  const { KubeConfig } = await import('@kubernetes/client-node')
  const config = new KubeConfig()
  const provider = identity.token === '' ? user.fields['auth-provider'] : undefined
  // The library asks for skipTLSVerify before it takes an http address, and for a user before it looks at certificates.
  config.loadFromOptions({
    clusters: [
      {
        name: 'cluster',
        server: server.href,
        skipTLSVerify: flagAt(cluster.fields, 'insecure-skip-tls-verify') || server.protocol === 'http:',
        ...keep('tlsServerName', textAt(cluster.fields, 'tls-server-name')),
        ...keep('caData', identity.authority),
        ...keep('proxyUrl', proxyUrl),
      },
    ],
    users: [
      {
        name: 'user',
        ...keep('certData', identity.certificate),
        ...keep('keyData', identity.key),
        ...(provider !== undefined && { authProvider: provider }),
      },
    ],
    contexts: [{ name: 'context', cluster: 'cluster', user: 'user' }],
    currentContext: 'context',
  })
  const options: RequestOptions = { headers: {} }
  await applyTo(options, config, user)
  const agent = proxyUrl !== '' && options.agent instanceof HttpAgent ? options.agent : undefined
  return { agent, headers: { ...(options.headers as OutgoingHttpHeaders) } }
}

type Applies = { readonly applyToHTTPSOptions: (options: RequestOptions) => Promise<void> }

/** Auth providers of the library (OIDC, and the old ones of clouds) ask servers and programs of their own. */
async function applyTo(tls: RequestOptions, config: Applies, user: ConfigEntry): Promise<void> {
  try {
    await config.applyToHTTPSOptions(tls)
  } catch (error) {
    const provider = user.fields['auth-provider']
    const name = isRecord(provider) ? textAt(provider, 'name') : ''
    // The error may quote what the provider answered.
    throw new Failure(
      'cluster.refused',
      `user "${plainText(user.name)}" cannot be logged in${name === '' ? '' : ` by auth-provider ${plainText(name)}`}; log in again, and try kubectl get namespaces`,
      error,
    )
  }
}

function keep(key: string, value: string): RawRecord {
  return value === '' ? {} : { [key]: value }
}
