/** How a cluster is talked to: its address, the certificates, and the headers that say who asks. */
import { setMaxListeners } from 'node:events'
import { Agent as HttpAgent, type OutgoingHttpHeaders, validateHeaderValue } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import { isIP } from 'node:net'
import { checkServerIdentity, createSecureContext, type PeerCertificate } from 'node:tls'
import { Failure } from '#base/failure'
import { plainText } from '#base/text'
import { systemAuthorities } from './cluster-authorities'
import { type ChosenCluster, type ConfigEntry, type Environment, flagAt, textAt } from './cluster-config'
import { type Credential, readExecPlugin, runExecPlugin } from './cluster-exec'
import { logInByLibrary } from './cluster-library'
import { proxyOf } from './cluster-proxy'
import {
  checkUser,
  hasOwnCredentials,
  type Identity,
  readAuthority,
  readIdentity,
  readOpenIdentity,
} from './cluster-user'

export type Login = {
  readonly context: string
  readonly server: URL
  /** Asked before each request: a token in a file, of a plugin or of OIDC changes while a long reading lasts. */
  readonly authorise: () => Promise<Authorised>
  /** The server does not take it any more: true where the next may be another. */
  readonly renew: (refused: Authorised) => boolean
  /** Aborted when nobody waits for answers any more. */
  readonly signal: AbortSignal
  readonly close: () => void
}

export type Authorised = {
  readonly agent: HttpAgent
  readonly headers: OutgoingHttpHeaders
  /** The proxy that leads there, as HOST:PORT; empty for none. */
  readonly proxy: string
  /** What no sentence may hold. */
  readonly secrets: readonly string[]
  /** What of the credentials is out of date, as a clause; empty for nothing. */
  readonly outdated: string
  /** The kubeconfig says that answers are not to be packed. */
  readonly isUnpacked: boolean
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
  const closing = new AbortController()
  setMaxListeners(0, closing.signal)
  let current: Promise<LoggedIn> | undefined
  let last: LoggedIn | undefined
  let isPending = false
  let until = 0
  let since = 0
  const authorise = async (): Promise<Authorised> => {
    if (current === undefined || options.now() >= until) {
      until = Number.MAX_VALUE
      isPending = true
      current = logIn(chosen, server, { ...options, earlierToken: last?.token ?? '' })
      last = await current
      isPending = false
      agents.push(last.authorised.agent)
      since = options.now()
      until = Math.max(last.expires, since + leastMilliseconds)
    }
    return (await current).authorised
  }
  return {
    context: chosen.context,
    server,
    authorise,
    renew: (refused) => {
      if (last?.canChange !== true) return false
      // Another question was refused before, and others are there already, or on their way.
      if (isPending || last.authorised !== refused) return true
      if (options.now() < since + leastMilliseconds) return false
      until = 0
      return true
    },
    signal: closing.signal,
    close: () => {
      closing.abort()
      for (const agent of agents) agent.destroy()
    },
  }
}

/** client-go, tools/clientcmd/client_config.go: an address without a scheme is http, whatever certificates there are. */
function serverOf({ cluster, context }: ChosenCluster): URL {
  const text = textAt(cluster.fields, 'server')
  const fail = (fact: string): Failure =>
    new Failure(
      'cluster.bad-config',
      `cluster "${plainText(cluster.name)}" of context ${context} ${fact}; mend server in the kubeconfig, as in https://192.0.2.1:6443`,
    )
  if (text === '') throw fail('has no server')
  const full = text.includes('://') ? text : `http://${text}`
  const url = URL.canParse(full) ? new URL(full) : undefined
  if (url === undefined) throw fail('has a server that is no address')
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw fail(`has a server of ${url.protocol.replace(':', '')}, which is neither http nor https`)
  }
  if (url.username !== '' || url.password !== '') throw fail('has a server with a password in it')
  return url
}

type LoggedIn = {
  readonly authorised: Authorised
  readonly token: string
  readonly expires: number
  /** Whether logging in again may give other credentials. */
  readonly canChange: boolean
}

type LogIn = LoginOptions & { readonly earlierToken: string }

async function logIn(chosen: ChosenCluster, server: URL, options: LogIn): Promise<LoggedIn> {
  const { cluster, user } = chosen
  checkUser(user)
  const proxyUrl = proxyOf(textAt(cluster.fields, 'proxy-url'), server, options.environment)
  const isSecure = server.protocol === 'https:'
  const credential = isSecure ? await askPlugin(chosen, proxyUrl, options) : undefined
  const identity = isSecure
    ? readIdentity(chosen, { credential, earlierToken: options.earlierToken, now: options.now() })
    : readOpenIdentity(chosen)
  const trusted = isSecure ? { ...identity, authority: trustedBy(chosen, identity, options.environment) } : identity
  const asksProvider = isSecure && 'auth-provider' in user.fields && identity.token === ''
  const byLibrary =
    asksProvider || proxyUrl !== '' ? await logInByLibrary(chosen, { identity: trusted, server, proxyUrl }) : undefined
  const headers = { ...identity.headers, ...byLibrary?.headers }
  refuseUnsendable(headers, user)
  const readsFile = isSecure && textAt(user.fields, 'tokenFile') !== ''
  const canChange = readsFile || asksProvider
  const fresh = canChange ? options.now() + freshMilliseconds : Number.MAX_VALUE
  return {
    authorised: {
      agent: byLibrary?.agent ?? agentOf(chosen, server, trusted),
      headers,
      proxy: proxyUrl === '' ? '' : new URL(proxyUrl).host,
      secrets: [...identity.secrets, ...secretsOf(headers)],
      outdated: identity.outdated,
      isUnpacked: flagAt(cluster.fields, 'disable-compression'),
    },
    token: identity.token,
    expires: credential?.expires ?? fresh,
    canChange: canChange || credential !== undefined,
  }
}

async function askPlugin(
  { cluster, user }: ChosenCluster,
  proxyUrl: string,
  options: LoginOptions,
): Promise<Credential | undefined> {
  const plugin = readExecPlugin(user)
  if (plugin === undefined || hasOwnCredentials(user)) return undefined
  return runExecPlugin(plugin, { ...options, cluster: cluster.fields, authority: readAuthority(cluster), proxyUrl })
}

/** As base64. */
function trustedBy({ cluster }: ChosenCluster, { authority }: Identity, environment: Environment): string {
  if (authority !== '' || flagAt(cluster.fields, 'insecure-skip-tls-verify')) return authority
  return Buffer.from(systemAuthorities(environment)).toString('base64')
}

/** Addresses of one name are tried one after the other; Node's own 250 ms are too short across an ocean. */
const attemptMilliseconds = 3000

/** Connections stay open: a handshake a page would cost more than the page. */
function agentOf({ cluster }: ChosenCluster, server: URL, { authority, certificate, key }: Identity): HttpAgent {
  const pool = { keepAlive: true, maxSockets: 8, autoSelectFamilyAttemptTimeout: attemptMilliseconds }
  if (server.protocol === 'http:') return new HttpAgent(pool)
  return new HttpsAgent({
    ...pool,
    // Made once: a list of all authorities takes a while to read.
    secureContext: createSecureContext({
      ...(authority !== '' && { ca: Buffer.from(authority, 'base64') }),
      ...(certificate !== '' && { cert: Buffer.from(certificate, 'base64'), key: Buffer.from(key, 'base64') }),
    }),
    ...(flagAt(cluster.fields, 'insecure-skip-tls-verify') && { rejectUnauthorized: false }),
    ...namedBy(textAt(cluster.fields, 'tls-server-name')),
  })
}

type Named = {
  readonly servername?: string
  readonly checkServerIdentity?: (host: string, certificate: PeerCertificate) => Error | undefined
}

/** An address is what the certificate must be of, too, but is not sent (RFC 6066, section 3). */
function namedBy(name: string): Named {
  if (name === '') return {}
  if (isIP(name) === 0) return { servername: name }
  return { checkServerIdentity: (_, certificate) => checkServerIdentity(name, certificate) }
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

/** That of a provider is in its header alone. */
function secretsOf({ Authorization: value }: OutgoingHttpHeaders): readonly string[] {
  const secret = typeof value === 'string' ? value.replace(/^\w+ /, '') : ''
  return secret.length < 4 ? [] : [secret]
}
