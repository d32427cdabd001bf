/** Whose word about a server counts where the kubeconfig names no authority: this machine's, as for kubectl. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Environment } from './cluster-config'

/** Go, crypto/x509 root_linux.go. */
const usualFiles = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/ca-bundle.pem',
  '/etc/pki/tls/cacert.pem',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/cert.pem',
]

/**
 * As PEM: SSL_CERT_FILE or the first of the usual files, SSL_CERT_DIR, and NODE_EXTRA_CA_CERTS. Empty where there is
 * nothing of the kind: Node's own list counts then.
 */
export function systemAuthorities(environment: Environment): string {
  const { SSL_CERT_FILE: file = '', SSL_CERT_DIR: folders = '', NODE_EXTRA_CA_CERTS: extra = '' } = environment
  const first = (file === '' ? usualFiles : [file]).map(readQuietly).find((text) => text !== '') ?? ''
  const listed = folders.split(':').flatMap(listQuietly).map(readQuietly)
  const own = [first, ...listed].filter((text) => text !== '')
  return own.length === 0
    ? ''
    : [...own, extra === '' ? '' : readQuietly(extra)].filter((text) => text !== '').join('\n')
}

function listQuietly(folder: string): readonly string[] {
  try {
    return folder === '' ? [] : readdirSync(folder).map((name) => join(folder, name))
  } catch {
    return []
  }
}

/** What is no certificate, or may not be read, vouches for nobody. */
function readQuietly(path: string): string {
  try {
    const text = readFileSync(path, 'utf8')
    return text.includes('-----BEGIN CERTIFICATE-----') ? text : ''
  } catch {
    return ''
  }
}
