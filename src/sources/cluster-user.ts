/** Who asks a cluster: the certificates, token and headers that its kubeconfig, or a plugin of it, gives a user. */
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { OutgoingHttpHeaders } from 'node:http'
import { isAbsolute, join } from 'node:path'
import { createSecureContext } from 'node:tls'
import { Failure } from '#base/failure'
import { plainText } from '#base/text'
import { isRecord } from '#manifests/text/raw-object'
import { type ChosenCluster, type ConfigEntry, flagAt, textAt } from './cluster-config'
import type { Credential } from './cluster-exec'
import { codeOf } from './system-error'

/** Who asks, by whichever way the kubeconfig knows; certificates and keys as base64, and empty where there are none. */
export type Identity = Certificates & {
  readonly token: string
  readonly headers: OutgoingHttpHeaders
  /** What no sentence may hold. */
  readonly secrets: readonly string[]
  /** What of it is out of date by the clock of this machine, as a clause; empty for nothing. */
  readonly outdated: string
}

export type Given = {
  /** What a plugin gave. */
  readonly credential: Credential | undefined
  /** The token that was read before, which counts while its file cannot be read. */
  readonly earlierToken: string
  /** Milliseconds of the wall clock. */
  readonly now: number
}

/** Credentials that stand in the kubeconfig go before those of a plugin, which is not run then (client-go, exec.go). */
export function hasOwnCredentials({ fields }: ConfigEntry): boolean {
  const keys = ['token', 'tokenFile', 'username', 'password', 'client-certificate', 'client-certificate-data']
  return keys.some((key) => textAt(fields, key) !== '')
}

/** client-go, tools/clientcmd/validation.go. */
export function checkUser({ name, fields }: ConfigEntry): void {
  const isGiven = (key: string): boolean => fields[key] !== undefined && fields[key] !== null
  const refuse = (fact: string): Failure =>
    new Failure('cluster.bad-config', `user "${plainText(name)}" of the kubeconfig ${fact}; leave one of them out`)
  if (isGiven('exec') && isGiven('auth-provider')) throw refuse('has exec and auth-provider')
  const hasName = textAt(fields, 'username') !== '' || textAt(fields, 'password') !== ''
  if (textAt(fields, 'token') !== '' && hasName) throw refuse('has a token and a password')
  const [more] = ['as-groups', 'as-uid', 'as-user-extra'].filter(isGiven)
  if (more === undefined || textAt(fields, 'as') !== '') return
  throw new Failure(
    'cluster.bad-config',
    `user "${plainText(name)}" of the kubeconfig has ${more}, and as whom it asks is not said; add as, or leave it out`,
  )
}

/** Over http nothing is sent that lets anybody in: client-go, tools/clientcmd/client_config.go. */
export function readOpenIdentity({ user }: ChosenCluster): Identity {
  const none = { authority: '', certificate: '', key: '', token: '', secrets: [], outdated: '' }
  return { ...none, headers: impersonation(user) }
}

export function readIdentity(chosen: ChosenCluster, { credential, earlierToken, now }: Given): Identity {
  const { user } = chosen
  const certificates = readCertificates(chosen, credential)
  const { fields } = user
  const token = readToken(user, earlierToken) || (credential?.token ?? '')
  const [name, password] = [textAt(fields, 'username'), textAt(fields, 'password')]
  const basic = name === '' && password === '' ? '' : base64(`${name}:${password}`)
  const authorization = token === '' ? basic && `Basic ${basic}` : `Bearer ${token}`
  return {
    ...certificates,
    token,
    headers: { ...impersonation(user), ...(authorization !== '' && { Authorization: asBytes(authorization) }) },
    secrets: [token, password, basic].filter((secret) => secret.length >= 4),
    outdated: outdatedOf(certificates, token, now),
  }
}

/** client-go, transport/token_source.go: a file goes before a token, and must hold one unless there is another. */
function readToken(user: ConfigEntry, earlier: string): string {
  const path = textAt(user.fields, 'tokenFile')
  const own = textAt(user.fields, 'token')
  if (path === '') return own
  try {
    const token = readNamed(user, { key: 'tokenFile', path }).toString('utf8').trim()
    if (token !== '') return token
    throw badFile(user, { key: 'tokenFile', path }, 'holds no token')
  } catch (error) {
    const other = earlier || own
    if (other === '') throw error
    return other
  }
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}

/** As UTF-8, as Go sends it; Node writes the characters of a header as one byte each. */
function asBytes(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1')
}

/** client-go, transport/round_trippers.go. */
function impersonation({ fields }: ConfigEntry): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {}
  const who = textAt(fields, 'as')
  if (who !== '') headers['Impersonate-User'] = asBytes(who)
  const groups = fields['as-groups']
  if (Array.isArray(groups) && groups.length > 0) headers['Impersonate-Group'] = groups.map(String).map(asBytes)
  const uid = textAt(fields, 'as-uid')
  if (uid !== '') headers['Impersonate-Uid'] = asBytes(uid)
  const extra = fields['as-user-extra']
  if (!isRecord(extra)) return headers
  for (const [key, values] of Object.entries(extra)) {
    if (Array.isArray(values)) headers[`Impersonate-Extra-${escapeKey(key)}`] = values.map(String).map(asBytes)
  }
  return headers
}

/** The same file, headerKeyEscape: what no header's name takes, and the percent sign. */
function escapeKey(key: string): string {
  return asBytes(key).replaceAll(
    /[^\w!#$&'*+.^`|~-]/g,
    (one) => `%${one.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
  )
}

/** Servers say no more than 401: that a year is over is seen here. */
function outdatedOf({ certificate }: Certificates, token: string, now: number): string {
  const say = (what: string, end: number): string =>
    end < now ? `the ${what} ended at ${new Date(end).toISOString()}` : ''
  if (certificate !== '') {
    return say('client certificate', Date.parse(new X509Certificate(Buffer.from(certificate, 'base64')).validTo))
  }
  return say('token', endOfToken(token))
}

/** Of a JWT; never for another. RFC 7519, section 4.1.4: seconds. */
function endOfToken(token: string): number {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
    return isRecord(claims) && typeof claims.exp === 'number' ? claims.exp * 1000 : Number.POSITIVE_INFINITY
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

type Certificates = { readonly authority: string; readonly certificate: string; readonly key: string }

/** As base64, the way a kubeconfig holds them; of a file and data the data count. */
function readCertificates({ cluster, user }: ChosenCluster, credential: Credential | undefined): Certificates {
  const { certificate, key } = credential ?? {}
  const certificates = {
    authority: readAuthority(cluster),
    certificate: certificate === undefined ? pem(user, 'client-certificate') : base64(certificate),
    key: key === undefined ? pem(user, 'client-key') : base64(key),
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
    throw unusable(reasonOfTls(codeOf(error), ownKey), error)
  }
  return certificates
}

function reasonOfTls(code: string, key: string | undefined): string {
  if (/KEY_VALUES_MISMATCH/.test(code)) return 'the client key is not that of the client certificate'
  const isLocked = key !== undefined && /ENCRYPTED/.test(key)
  return isLocked
    ? 'the client key is locked with a password, which kubectl does not take either'
    : 'OpenSSL cannot read them'
}

/** client-go, transport/transport.go: an authority and no check of it contradict each other. */
export function readAuthority(cluster: ConfigEntry): string {
  const authority = pem(cluster, 'certificate-authority')
  if (authority === '' || !flagAt(cluster.fields, 'insecure-skip-tls-verify')) return authority
  const fact = `cluster "${plainText(cluster.name)}" has a certificate authority, and insecure-skip-tls-verify`
  throw new Failure('cluster.bad-config', `${fact}; leave one of them out`)
}

function pem(entry: ConfigEntry, key: string): string {
  const given = textAt(entry.fields, `${key}-data`)
  if (given !== '') return given
  const path = textAt(entry.fields, key)
  return path === '' ? '' : readNamed(entry, { key, path }).toString('base64')
}

type NamedFile = { readonly key: string; readonly path: string }

function readNamed(entry: ConfigEntry, file: NamedFile): Buffer {
  try {
    return readFileSync(placeOf(entry, file))
  } catch (error) {
    const fact = codeOf(error) === 'ENOENT' ? 'is not there' : `cannot be read (${codeOf(error)})`
    throw badFile(entry, file, fact, error)
  }
}

function placeOf({ folder }: ConfigEntry, { path }: NamedFile): string {
  return isAbsolute(path) ? path : join(folder, path)
}

function badFile(entry: ConfigEntry, file: NamedFile, fact: string, cause?: unknown): Failure {
  const what = `${plainText(placeOf(entry, file))}, the ${file.key} of "${plainText(entry.name)}" in the kubeconfig`
  return new Failure('cluster.bad-config', `${what}, ${fact}; put it there, or log in again`, cause)
}
