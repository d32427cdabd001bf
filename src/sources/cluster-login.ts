/** How a cluster is talked to: its address, the certificates, and the headers that say who asks. */
import { Agent as HttpAgent, type OutgoingHttpHeaders, validateHeaderValue } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { Failure } from '#base/failure'
import { plainText } from '#base/text'
import { type ChosenCluster, type ConfigEntry, type Environment, textAt } from './cluster-config'
import { readExecPlugin, runExecPlugin } from './cluster-exec'
import { logInByLibrary } from './cluster-library'
import { proxyOf } from './cluster-proxy'
import { type Identity, readIdentity } from './cluster-user'

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
  const plugin = readExecPlugin(user)
  const credential =
    plugin === undefined ? undefined : await runExecPlugin(plugin, { ...options, cluster: cluster.fields, server })
  const identity = readIdentity(chosen, credential)
  const proxyUrl = proxyOf(textAt(cluster.fields, 'proxy-url'), server, options.environment)
  const asksProvider = 'auth-provider' in user.fields && identity.token === ''
  const byLibrary =
    asksProvider || proxyUrl !== '' ? await logInByLibrary(chosen, { identity, server, proxyUrl }) : undefined
  const headers = { ...identity.headers, ...byLibrary?.headers }
  refuseUnsendable(headers, user)
  const agent = byLibrary?.agent ?? agentOf(chosen, server, identity)
  const proxy = proxyUrl === '' ? '' : new URL(proxyUrl).host
  const changes = 'tokenFile' in user.fields || asksProvider
  const expires = credential?.expires ?? (changes ? options.now() + freshMilliseconds : Number.MAX_VALUE)
  return { authorised: { agent, headers, proxy, secrets: secretsOf(headers) }, expires }
}

/** Connections stay open: a handshake a page would cost more than the page. */
function agentOf({ cluster }: ChosenCluster, server: URL, { authority, certificate, key }: Identity): HttpAgent {
  const pool = { keepAlive: true, maxSockets: 8 }
  if (server.protocol === 'http:') return new HttpAgent(pool)
  const name = textAt(cluster.fields, 'tls-server-name')
  return new HttpsAgent({
    ...pool,
    ...(authority !== '' && { ca: Buffer.from(authority, 'base64') }),
    ...(certificate !== '' && { cert: Buffer.from(certificate, 'base64'), key: Buffer.from(key, 'base64') }),
    ...(cluster.fields['insecure-skip-tls-verify'] === true && { rejectUnauthorized: false }),
    ...(name !== '' && { servername: name }),
  })
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
