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

/** What `openssl ca` wants, which alone gives a certificate its times. */
const authorityConfig = `[ca]
default_ca = own
[own]
database = index
serial = serial
new_certs_dir = .
certificate = ca.crt
private_key = ca.key
default_md = sha256
policy = any
[any]
commonName = supplied
organizationName = optional
`

type Who = 'server' | 'client'

/** `times` are those that a certificate is valid from and to, as `20200101000000Z`; else two days from now. */
export function makeCertificates(
  folder: string,
  name = '127.0.0.1',
  times: Partial<Record<Who, readonly [string, string]>> = {},
): Certificates {
  const openssl = (...words: readonly string[]): void => {
    execFileSync('openssl', words, { cwd: folder, stdio: 'pipe' })
  }
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.crt', '-days', '2', '-subj', '/CN=authority')
  const sign = (who: Who, subject: string, extension: string): void => {
    writeFileSync(join(folder, `${who}.ext`), extension)
    openssl('req', ...key, '-keyout', `${who}.key`, '-out', `${who}.csr`, '-subj', subject)
    const ca = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial']
    const [from, to] = times[who] ?? []
    const files = ['-in', `${who}.csr`, '-out', `${who}.crt`, '-extfile', `${who}.ext`]
    if (from === undefined || to === undefined) {
      openssl('x509', '-req', ...files, ...ca, '-days', '2')
      return
    }
    writeFileSync(join(folder, 'ca.cnf'), authorityConfig)
    writeFileSync(join(folder, 'index'), '')
    const issue = ['ca', '-batch', '-config', 'ca.cnf', '-rand_serial', '-notext', ...files]
    openssl(...issue, '-startdate', from, '-enddate', to)
  }
  const isAddress = /^[\d.:]+$/.test(name)
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
