/** Who asks a cluster: the certificates, token and headers that its kubeconfig, or a plugin of it, gives a user. */
import { readFileSync } from 'node:fs'
import type { OutgoingHttpHeaders } from 'node:http'
import { isAbsolute, join } from 'node:path'
import { createSecureContext } from 'node:tls'
import { Failure } from '#base/failure'
import { plainText } from '#base/text'
import { isRecord } from '#manifests/text/raw-object'
import { type ChosenCluster, type ConfigEntry, textAt } from './cluster-config'
import type { Credential } from './cluster-exec'
import { codeOf } from './system-error'

/** Who asks, by whichever way the kubeconfig knows; certificates and keys as base64, and empty where there are none. */
export type Identity = Certificates & { readonly token: string; readonly headers: OutgoingHttpHeaders }

/** `credential` is what a plugin gave. */
export function readIdentity(chosen: ChosenCluster, credential: Credential | undefined): Identity {
  const { user } = chosen
  const certificates = readCertificates(chosen)
  const { fields } = user
  const path = textAt(fields, 'tokenFile')
  const fileToken = path === '' ? '' : readNamed(user, { key: 'tokenFile', path }).toString('utf8').trim()
  const token = fileToken || textAt(fields, 'token') || (credential?.token ?? '')
  const name = textAt(fields, 'username')
  const basic = name === '' ? '' : `Basic ${base64(`${name}:${textAt(fields, 'password')}`)}`
  const authorization = token === '' ? basic : `Bearer ${token}`
  return {
    authority: certificates.authority,
    certificate: credential?.certificate === undefined ? certificates.certificate : base64(credential.certificate),
    key: credential?.key === undefined ? certificates.key : base64(credential.key),
    token,
    headers: { ...impersonation(user), ...(authorization !== '' && { Authorization: authorization }) },
  }
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64')
}

/** client-go, transport/round_trippers.go. */
function impersonation({ fields }: ConfigEntry): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {}
  const who = textAt(fields, 'as')
  if (who !== '') headers['Impersonate-User'] = who
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
