/** How a cluster is talked to: its address, the certificates, and the headers that say who asks. */
import { readFileSync } from 'node:fs'
import { Agent as HttpAgent, type OutgoingHttpHeaders, validateHeaderValue } from 'node:http'
import { Agent as HttpsAgent, type RequestOptions } from 'node:https'
import { isAbsolute, join } from 'node:path'
import { createSecureContext } from 'node:tls'
import type { User } from '@kubernetes/client-node'
import { Failure } from '#base/failure'
import { plainText } from '#base/text'
import { isRecord, type RawRecord } from '#manifests/text/raw-object'
import { type ChosenCluster, type ConfigEntry, type Environment, textAt } from './cluster-config'
import { type Credential, readExecPlugin, runExecPlugin } from './cluster-exec'
import { proxyOf } from './cluster-proxy'
import { codeOf } from './system-error'

export type Login = {
  readonly context: string
  readonly server: URL
  /** Asked before each request: a token in a file, of a plugin or of OIDC changes while a long reading lasts. */
  readonly authorise: () => Promise<Authorised>
  readonly close: () => void
}

export type Authorised = {
  readonly agent: HttpAgent
  readonly headers: OutgoingHttpHeaders
  /** The proxy that leads there, as HOST:PORT; empty for none. */
  readonly proxy: string
  /** What no sentence may hold. */
  readonly secrets: readonly string[]
}

export type LoginOptions = {
  readonly environment: Environment
  /** What a credential plugin has to tell its user. */
  readonly say: (sentence: string) => void
  /** Milliseconds of the wall clock, which expiry times are told in. */
  readonly now: () => number
}

/** client-go reads a token file again after a minute, transport/token_source.go. */
const freshMilliseconds = 60_000
/** A credential that has expired already is not asked for with every request. */
const leastMilliseconds = 5_000

export function openLogin(chosen: ChosenCluster, options: LoginOptions): Login {
  const server = serverOf(chosen)
  const agents: HttpAgent[] = []
  let current: Promise<LoggedIn> | undefined
  let until = 0
  const authorise = async (): Promise<Authorised> => {
    if (current === undefined || options.now() >= until) {
      until = Number.MAX_VALUE
      current = logIn(chosen, server, options)
      const { authorised, expires } = await current
      agents.push(authorised.agent)
      until = Math.max(expires, options.now() + leastMilliseconds)
    }
    return (await current).authorised
  }
  return {
    context: chosen.context,
    server,
    authorise,
    close: () => {
      for (const agent of agents) agent.destroy()
    },
  }
}

/** client-go, rest/url_utils.go: an address without a scheme is https where certificates are given, else http. */
function serverOf({ cluster, context }: ChosenCluster): URL {
  const text = textAt(cluster.fields, 'server')
  const fail = (fact: string): Failure =>
    new Failure(
      'cluster.bad-config',
      `cluster "${plainText(cluster.name)}" of context ${context} ${fact}; mend server in the kubeconfig, as in https://192.0.2.1:6443`,
    )
  if (text === '') throw fail('has no server')
  const hasAuthority = 'certificate-authority' in cluster.fields || 'certificate-authority-data' in cluster.fields
  const full = text.includes('://') ? text : `${hasAuthority ? 'https' : 'http'}://${text}`
  const url = URL.canParse(full) ? new URL(full) : undefined
  if (url === undefined) throw fail('has a server that is no address')
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw fail(`has a server of ${url.protocol.replace(':', '')}, which is neither http nor https`)
  }
  if (url.username !== '' || url.password !== '') throw fail('has a server with a password in it')
  return url
}

type LoggedIn = { readonly authorised: Authorised; readonly expires: number }

async function logIn(chosen: ChosenCluster, server: URL, options: LoginOptions): Promise<LoggedIn> {
  const { cluster, user } = chosen
  const certificates = readCertificates(chosen)
  const { KubeConfig } = await import('@kubernetes/client-node')
  const config = new KubeConfig()
  const plugin = readExecPlugin(user)
  const credential =
    plugin === undefined ? undefined : await runExecPlugin(plugin, { ...options, cluster: cluster.fields, server })
  const proxyUrl = proxyOf(textAt(cluster.fields, 'proxy-url'), server, options.environment)
  // The library asks for skipTLSVerify before it takes an http address, and for a user before it looks at certificates.
  config.loadFromOptions({
    clusters: [
      {
        name: 'cluster',
        server: server.href,
        skipTLSVerify: cluster.fields['insecure-skip-tls-verify'] === true || server.protocol === 'http:',
        ...keep('tlsServerName', textAt(cluster.fields, 'tls-server-name')),
        ...keep('caData', certificates.authority),
        ...keep('proxyUrl', proxyUrl),
      },
    ],
    users: [userOf(user, certificates, credential)],
    contexts: [{ name: 'context', cluster: 'cluster', user: 'user' }],
    currentContext: 'context',
  })
  const tls: RequestOptions = { headers: impersonation(user) }
  await applyTo(tls, config, user)
  const agent = agentOf(tls, { server, isProxied: proxyUrl !== '' })
  const headers: OutgoingHttpHeaders = { ...(tls.headers as OutgoingHttpHeaders), ...basicOf(tls) }
  const changes = 'tokenFile' in user.fields || 'auth-provider' in user.fields
  const expires = credential?.expires ?? (changes ? options.now() + freshMilliseconds : Number.MAX_VALUE)
  refuseUnsendable(headers, user)
  const proxy = proxyUrl === '' ? '' : new URL(proxyUrl).host
  return { authorised: { agent, headers, proxy, secrets: secretsOf(headers) }, expires }
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

type Certificates = { readonly authority: string; readonly certificate: string; readonly key: string }

/** As base64, the way a kubeconfig holds them; of a file and data the data count, as for kubectl. */
function readCertificates({ cluster, user }: ChosenCluster): Certificates {
  const certificates = {
    authority: pem(cluster, 'certificate-authority'),
    certificate: pem(user, 'client-certificate'),
    key: pem(user, 'client-key'),
  }
  const plain = (data: string): string | undefined => (data === '' ? undefined : Buffer.from(data, 'base64').toString())
  const whose = `of user "${plainText(user.name)}" and cluster "${plainText(cluster.name)}"`
  if ((certificates.certificate === '') !== (certificates.key === '')) {
    const [has, lacks] = certificates.key === '' ? ['certificate', 'key'] : ['key', 'certificate']
    throw new Failure(
      'cluster.bad-config',
      `user "${plainText(user.name)}" has a client ${has} and no client ${lacks}; add it to the kubeconfig`,
    )
  }
  const parts = [plain(certificates.authority), plain(certificates.certificate), plain(certificates.key)]
  const [ca, cert, ownKey] = parts
  const unusable = (reason: string, cause?: unknown): Failure =>
    new Failure(
      'cluster.bad-config',
      `the certificates ${whose} cannot be used: ${reason}; write the kubeconfig again`,
      cause,
    )
  // What is no PEM is passed over in silence by OpenSSL.
  if (parts.some((text) => text !== undefined && !/-----BEGIN [A-Z ]+-----/.test(text)))
    throw unusable('they are no PEM')
  try {
    createSecureContext({ ca, cert, key: ownKey })
  } catch (error) {
    const isMismatch = /KEY_VALUES_MISMATCH/.test(codeOf(error))
    const reason = isMismatch ? 'the client key is not that of the client certificate' : 'OpenSSL cannot read them'
    throw unusable(reason, error)
  }
  return certificates
}

function pem(entry: ConfigEntry, key: string): string {
  const given = textAt(entry.fields, `${key}-data`)
  if (given !== '') return given
  const path = textAt(entry.fields, key)
  return path === '' ? '' : readNamed(entry, { key, path }).toString('base64')
}

function readNamed(
  { name, folder }: ConfigEntry,
  { key, path }: { readonly key: string; readonly path: string },
): Buffer {
  const full = isAbsolute(path) ? path : join(folder, path)
  try {
    return readFileSync(full)
  } catch (error) {
    const fact = codeOf(error) === 'ENOENT' ? 'is not there' : `cannot be read (${codeOf(error)})`
    throw new Failure(
      'cluster.bad-config',
      `${plainText(full)}, the ${key} of "${plainText(name)}" in the kubeconfig, ${fact}; put it there, or log in again`,
      error,
    )
  }
}

function userOf(user: ConfigEntry, { certificate, key }: Certificates, credential: Credential | undefined): User {
  const { fields } = user
  const path = textAt(fields, 'tokenFile')
  const fileToken = path === '' ? '' : readNamed(user, { key: 'tokenFile', path }).toString('utf8').trim()
  const token = fileToken || textAt(fields, 'token') || (credential?.token ?? '')
  return {
    name: 'user',
    ...keep('certData', credential?.certificate === undefined ? certificate : base64(credential.certificate)),
    ...keep('keyData', credential?.key === undefined ? key : base64(credential.key)),
    ...keep('token', token),
    ...keep('username', textAt(fields, 'username')),
    ...keep('password', textAt(fields, 'password')),
    ...keep('impersonateUser', textAt(fields, 'as')),
    ...(token === '' && fields['auth-provider'] !== undefined && { authProvider: fields['auth-provider'] }),
  }
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}

/** The library says who is impersonated; client-go, transport/round_trippers.go says the rest as well. */
function impersonation({ fields }: ConfigEntry): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {}
  const groups = fields['as-groups']
  if (Array.isArray(groups) && groups.length > 0) headers['Impersonate-Group'] = groups.map(String)
  const uid = textAt(fields, 'as-uid')
  if (uid !== '') headers['Impersonate-Uid'] = uid
  const extra = fields['as-user-extra']
  if (!isRecord(extra)) return headers
  for (const [key, values] of Object.entries(extra)) {
    if (Array.isArray(values)) headers[`Impersonate-Extra-${encodeURIComponent(key)}`] = values.map(String)
  }
  return headers
}

/** That of the library keeps no connection open, which costs a handshake a page; through a proxy its own is needed. */
function agentOf(
  tls: RequestOptions,
  { server, isProxied }: { readonly server: URL; readonly isProxied: boolean },
): HttpAgent {
  if (isProxied && tls.agent instanceof HttpAgent) return tls.agent
  const pool = { keepAlive: true, maxSockets: 8 }
  if (server.protocol === 'http:') return new HttpAgent(pool)
  const { ca, cert, key, rejectUnauthorized, servername } = tls
  return new HttpsAgent({
    ...pool,
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(rejectUnauthorized !== undefined && { rejectUnauthorized }),
    ...(servername !== undefined && { servername }),
  })
}

/** Of user and password, `auth` is what the library leaves for Node to encode. */
function basicOf({ auth }: RequestOptions): OutgoingHttpHeaders {
  return typeof auth === 'string' ? { Authorization: `Basic ${base64(auth)}` } : {}
}

/** A line break in a token, say. */
function refuseUnsendable(headers: OutgoingHttpHeaders, { name }: ConfigEntry): void {
  for (const [header, value] of Object.entries(headers)) {
    try {
      for (const one of [value].flat()) validateHeaderValue(header, String(one))
    } catch {
      const what = header === 'Authorization' ? 'token' : header
      const fact = `the ${what} of user "${plainText(name)}" holds a character that no header takes`
      throw new Failure('cluster.bad-config', `${fact}; write it again, or log in again`)
    }
  }
}

function secretsOf({ Authorization: value }: OutgoingHttpHeaders): readonly string[] {
  const secret = typeof value === 'string' ? value.replace(/^\w+ /, '') : ''
  return secret.length < 4 ? [] : [secret]
}
