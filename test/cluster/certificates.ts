/** An authority, a server's certificate for 127.0.0.1 and a client's, made when a test needs them. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export type Certificates = {
  readonly authority: string
  readonly serverKey: string
  readonly serverCertificate: string
  readonly clientKey: string
  readonly clientCertificate: string
}

export function makeCertificates(folder: string, name = '127.0.0.1'): Certificates {
  const openssl = (...words: readonly string[]): void => {
    execFileSync('openssl', words, { cwd: folder, stdio: 'pipe' })
  }
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.crt', '-days', '2', '-subj', '/CN=authority')
  const sign = (who: string, subject: string, extension: string): void => {
    writeFileSync(join(folder, `${who}.ext`), extension)
    openssl('req', ...key, '-keyout', `${who}.key`, '-out', `${who}.csr`, '-subj', subject)
    const ca = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial']
    openssl('x509', '-req', '-in', `${who}.csr`, ...ca, '-out', `${who}.crt`, '-days', '2', '-extfile', `${who}.ext`)
  }
  const isAddress = /^[\d.]+$/.test(name)
  sign('server', '/CN=kubernetes', `subjectAltName=${isAddress ? 'IP' : 'DNS'}:${name}`)
  sign('client', '/O=readers/CN=jane', 'extendedKeyUsage=clientAuth')
  const read = (file: string): string => readFileSync(join(folder, file), 'utf8')
  return {
    authority: read('ca.crt'),
    serverKey: read('server.key'),
    serverCertificate: read('server.crt'),
    clientKey: read('client.key'),
    clientCertificate: read('client.crt'),
  }
}
