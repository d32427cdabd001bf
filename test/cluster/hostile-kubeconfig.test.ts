/** Kubeconfigs as people and tools really write them, and worse: what kubectl makes of each, and never a secret told. */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dump } from 'js-yaml'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chooseCluster } from '../../src/sources/cluster-config'
import { proxyOf } from '../../src/sources/cluster-proxy'
import { type ApiServer, readSamples, startApiServer } from './api-server'
import { type Certificates, makeCertificates } from './certificates'
import { type ConfigParts, configOf, run, writeConfig } from './kubeconfig'
import { read } from './serving'

const folder = mkdtempSync(join(tmpdir(), 'portolan-hostile-'))
const token = 'SECRET-token-of-jane'
const packet = ['--src', '10.0.0.1', '--dst', '10.0.0.2', '--proto', 'tcp', '--dport', '80', '--path', 'Private']
const explain = ['policy', 'explain', '--policy', 'tenant/web', ...packet]

let made: Certificates
let server: ApiServer
let cluster: Readonly<Record<string, unknown>>
const seen: IncomingHttpHeaders[] = []

beforeAll(async () => {
  made = makeCertificates(folder)
  cluster = { 'certificate-authority-data': base64(made.authority) }
  server = await startApiServer({
    objects: await readSamples('samples/traffic-policy'),
    tls: made,
    token,
    meddle: ({ headers }) => {
      seen.push(headers)
      return false
    },
  })
})

afterAll(async () => {
  await server.close()
  rmSync(folder, { recursive: true })
})

const base64 = (text: string): string => Buffer.from(text).toString('base64')

type Answered = { readonly code: number; readonly out: string; readonly err: string }

/** The answer with this user, without a secret in any of it. */
async function ask(user: object, parts: Partial<ConfigParts> = {}): Promise<Answered> {
  const kubeconfig = writeConfig(folder, { server: server.url, cluster, user: { ...user }, ...parts })
  const ran = await run([...explain, '--kubeconfig', kubeconfig])
  expect(`${ran.out}${ran.err}`).not.toMatch(/SECRET|bug of Portolan/)
  return ran
}

function write(name: string, content: string | object): string {
  const path = join(folder, name)
  writeFileSync(path, typeof content === 'string' ? content : dump(content))
  return path
}

describe('the file', () => {
  const usual = (): string => dump(configOf({ server: server.url, cluster, user: { token } }))

  test.each<[string, (text: string) => string]>([
    ['a key that stands twice, of which the later counts', (text) => `current-context: gone\n${text}`],
    ['a second document, which is passed over', (text) => `${text}---\nkind: Secret\n`],
    ['an end mark and nothing after it', (text) => `---\n${text}---\n`],
    ['a byte order mark', (text) => `\ufeff${text}`],
    [
      'a user taken over from another place',
      (text) => `x: &x {token: ${token}}\n${text.replace(/token:.*/, '<<: *x')}`,
    ],
    ['a date for a name', (text) => text.replaceAll(/\btest\b/g, '2024-01-01')],
    ['lines that end as on Windows', (text) => text.replaceAll('\n', '\r\n')],
    ['data with line breaks in it', (text) => text.replace(/(data: )\S+/, (_, key) => `${key}|\n${wrapped()}`)],
  ])('may have %s', async (_, change) => {
    const path = write('written', change(usual()))
    expect(await run([...explain, '--kubeconfig', path])).toMatchObject({ code: 0, err: '' })
  })

  const wrapped = (): string => base64(made.authority).replaceAll(/.{1,64}/g, '          $&\n')

  test.each<[string, object, RegExp]>([
    ['two users of one name', { users: [{ name: 'u' }, { name: 'u' }] }, /users has two of the name "u"; compare/],
    ['a name without quotes', { users: [{ name: 7, user: {} }] }, /the name of users\[0\] is a number without quotes;/],
  ])('with %s is refused', async (_, change, sentence) => {
    const path = write('refused', { ...configOf({ server: server.url, cluster, user: { token } }), ...change })
    expect((await run([...explain, '--kubeconfig', path])).err).toMatch(sentence)
  })

  test('that is named by an empty word is refused: another cluster would be read', async () => {
    for (const flag of ['--kubeconfig', '--context']) {
      expect(await run([...explain, flag, ''])).toEqual({
        code: 2,
        out: '',
        err: `portolan: ${flag} is given and empty; name one, or leave ${flag} out\n`,
      })
    }
  })

  test('of several, each has its own folder for certificates, and a broken one is told', async () => {
    const own = mkdtempSync(join(folder, 'own-'))
    mkdirSync(join(own, 'pki'))
    writeFileSync(join(own, 'pki', 'ca.crt'), made.authority)
    const path = join(own, 'config')
    writeFileSync(
      path,
      dump(configOf({ server: server.url, user: { token }, cluster: { 'certificate-authority': './pki/ca.crt' } })),
    )
    const other = write('elsewhere', { kind: 'Config', preferences: {}, users: null, clusters: [] })
    const before = process.env.KUBECONFIG
    try {
      process.env.KUBECONFIG = ['', other, '', path].join(':')
      expect(await run(explain)).toMatchObject({ code: 0 })
      process.env.KUBECONFIG = [path, write('broken', 'clusters: [')].join(':')
      expect((await run(explain)).err).toMatch(/broken is no kubeconfig: it is no YAML/)
    } finally {
      if (before === undefined) delete process.env.KUBECONFIG
      else process.env.KUBECONFIG = before
    }
  })

  test('of a pod: POD_NAMESPACE says where a bare name is, and an address of IPv6 stands in brackets', async () => {
    const account = mkdtempSync(join(folder, 'account-'))
    for (const [name, text] of Object.entries({ token, 'ca.crt': made.authority, namespace: 'tenant' })) {
      writeFileSync(join(account, name), text)
    }
    const service = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' }
    expect(await chooseCluster({}, { ...service, POD_NAMESPACE: 'other' }, account)).toMatchObject({
      namespace: 'other',
      cluster: { fields: { server: 'https://[fd00::1]:443' } },
    })
  })
})

describe('the server', () => {
  test('at an address of IPv6, below a path with slashes too many, is asked with the token; no other ever is', async () => {
    const place = mkdtempSync(join(folder, 'six-'))
    const six = makeCertificates(place, '::1')
    const objects = await readSamples('samples/traffic-policy')
    const own = await startApiServer({ objects, tls: six, token, host: '::1', below: '//k8s/clusters/c-1' })
    const parts = {
      server: `${own.url}//k8s/clusters/c-1//`,
      cluster: { 'certificate-authority-data': base64(six.authority) },
    }
    const ran = await ask({ token }, parts)
    await own.close()
    expect(ran).toMatchObject({ code: 0, err: '' })
    expect(own.requests[0]).toBe('GET //k8s/clusters/c-1/apis')
  })

  test('is asked for no namespace that would be another path', async () => {
    const asked = server.requests.length
    const kubeconfig = writeConfig(folder, { server: server.url, cluster, user: { token }, namespace: '..' })
    const refused = /^portolan: "[^"]*" is not a namespace's name: 1 to 63 of .*; name another with -n\n$/
    for (const words of [
      ['endpoints', '-n', '..'],
      ['endpoints', '../web'],
      ['endpoints', 'web'],
      ['policy', 'explain', '--policy', 'web', ...packet],
    ]) {
      const { err, code } = await run([...words, '--kubeconfig', kubeconfig])
      expect(err).toMatch(refused)
      expect(code).toBe(2)
    }
    expect(server.requests.length).toBe(asked)
  })

  test('without https is sent nothing that lets anybody in, whatever the user has', async () => {
    const headers: IncomingHttpHeaders[] = []
    const open = await startApiServer({
      objects: [],
      meddle: (request) => {
        headers.push(request.headers)
        return false
      },
    })
    const told = write('never-told', '')
    write('run-me', `#!/bin/sh\necho run > ${told}\n`)
    chmodSync(join(folder, 'run-me'), 0o755)
    for (const user of [
      { token, as: 'jane' },
      { username: 'jane', password: 'SECRET' },
      { exec: plugin('./run-me') },
    ]) {
      for (const url of [open.url, open.url.replace('http://', '')]) await ask(user, { server: url })
    }
    await open.close()
    expect(headers.length).toBeGreaterThan(5)
    expect(headers.filter(({ authorization }) => authorization !== undefined)).toEqual([])
    expect(headers[0]?.['impersonate-user']).toBe('jane')
    expect(readFileSync(told, 'utf8')).toBe('')
  })

  test('that answers plain HTTP with 400, as one that speaks TLS does, is told so', async () => {
    const open = await startApiServer({
      objects: [],
      meddle: (_, response) => {
        response.writeHead(400, { 'content-type': 'text/plain' })
        response.end('Client sent an HTTP request to an HTTPS server.')
        return true
      },
    })
    const ran = await ask({ token }, { server: open.url })
    await open.close()
    expect(ran.err).toMatch(/the server answers 400 with text\/plain; write https:\/\/ before server in the kubeconfig/)
  })

  test('is trusted by the authorities of this machine where the kubeconfig names none', async () => {
    const parts = { user: { token }, cluster: {} }
    const SSL_CERT_FILE = join(folder, 'ca.crt')
    const trusted = await read(server.url, { folder, kinds: ['TrafficPolicy'], parts, environment: { SSL_CERT_FILE } })
    expect(trusted.cluster.trafficPolicies.size).toBe(3)
    const SSL_CERT_DIR = folder
    const absent = { SSL_CERT_FILE: join(folder, 'absent'), SSL_CERT_DIR }
    const listed = await read(server.url, { folder, kinds: ['TrafficPolicy'], parts, environment: absent })
    expect(listed.cluster.trafficPolicies.size).toBe(3)
    await expect(read(server.url, { folder, kinds: ['TrafficPolicy'], parts })).rejects.toThrow(/is not trusted/)
  })

  test('with an authority and no check of it is refused, as a word that is neither true nor false', async () => {
    const both = { ...cluster, 'insecure-skip-tls-verify': true }
    expect((await ask({ token }, { cluster: both })).err).toMatch(
      /cluster "c" has a certificate authority, and insecure-skip-tls-verify; leave one of them out/,
    )
    expect((await ask({ token }, { cluster: { 'insecure-skip-tls-verify': 'true' } })).err).toMatch(
      /insecure-skip-tls-verify of the kubeconfig is a string, where true or false is wanted; write it without quotes/,
    )
  })

  test('named by an address in tls-server-name is held to it; of another name, its own are told', async () => {
    const named = await ask({ token }, { cluster: { ...cluster, 'tls-server-name': '127.0.0.1' } })
    expect(named).toMatchObject({ code: 0, err: '' })
    const other = await ask({ token }, { cluster: { ...cluster, 'tls-server-name': '192.0.2.7' } })
    expect(other.err).toMatch(
      /its certificate is of another name \(ERR_TLS_CERT_ALTNAME_INVALID\); compare server .* which is of 127\.0\.0\.1, or set tls-server-name/,
    )
  })

  test('whose certificate is not valid now has the clock of this machine beside it', async () => {
    const times: readonly [string, string, RegExp][] = [
      ['20200101000000Z', '20200201000000Z', /its certificate has expired \(CERT_HAS_EXPIRED\)/],
      ['20990101000000Z', '20990201000000Z', /its certificate is not valid yet \(CERT_NOT_YET_VALID\)/],
    ]
    for (const [from, to, sentence] of times) {
      const tls = makeCertificates(mkdtempSync(join(folder, 'timed-')), '127.0.0.1', { server: [from, to] })
      const own = await startApiServer({ objects: [], tls, token })
      const ran = await ask(
        { token },
        { server: own.url, cluster: { 'certificate-authority-data': base64(tls.authority) } },
      )
      await own.close()
      expect(ran.err).toMatch(sentence)
      expect(ran.err).toMatch(/check the clock of this machine, which says \d{4}-\d\d-\d\dT[\d:.]+Z, or have/)
    }
  })

  test('is not asked for packed answers where the kubeconfig says so', async () => {
    seen.length = 0
    await ask({ token }, { cluster: { ...cluster, 'disable-compression': true } })
    expect(seen.map((one) => one['accept-encoding'])).not.toContain('gzip')
    expect(seen.length).toBeGreaterThan(3)
  })
})

describe('the user', () => {
  test.each<[string, object, RegExp]>([
    ['a token and a password', { token, username: 'jane', password: 'SECRET' }, /has a token and a password; leave/],
    ['exec and auth-provider', { exec: { command: 'x' }, 'auth-provider': {} }, /has exec and auth-provider; leave/],
    [
      'groups to be taken for, and nobody',
      { token, 'as-groups': ['system:masters'] },
      /has as-groups, and as whom it asks is not said; add as, or leave it out/,
    ],
    ['arguments that are no list', { exec: { command: 'x', args: '--a b' } }, /exec\.args is no list; mend it there/],
    [
      'a variable without a name',
      { exec: { command: 'x', env: [{ value: 'a' }] } },
      /exec\.env holds what has no name/,
    ],
  ])('with %s is refused', async (_, user, sentence) => {
    const ran = await ask(user)
    expect(ran).toMatchObject({ code: 2, out: '' })
    expect(ran.err).toMatch(sentence)
  })

  test('whose token file is empty or gone is told, unless there is a token beside it', async () => {
    const path = write('no-token', '\n')
    expect((await ask({ tokenFile: path })).err).toMatch(
      /no-token, the tokenFile of "u" in the kubeconfig, holds no token; put it there, or log in again/,
    )
    expect(await ask({ tokenFile: path, token })).toMatchObject({ code: 0, err: '' })
    expect(await ask({ tokenFile: join(folder, 'gone'), token })).toMatchObject({ code: 0, err: '' })
  })

  test('has a name beyond ASCII, which is sent as UTF-8', async () => {
    seen.length = 0
    await ask({ token, as: 'jürgen€', 'as-groups': ['größe'] })
    const [{ 'impersonate-user': who = '', 'impersonate-group': group = '' } = {}] = seen
    expect(Buffer.from(String(who), 'latin1').toString('utf8')).toBe('jürgen€')
    expect(Buffer.from(String(group), 'latin1').toString('utf8')).toBe('größe')
  })

  test('whose certificate or token is out of date is told since when', async () => {
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const old = [part({ alg: 'none' }), part({ exp: 1_577_836_800 }), 'SECRETsignature'].join('.')
    expect((await ask({ token: old })).err).toMatch(
      /does not know who asks \(401\): Unauthorized: the token ended at 2020-01-01T00:00:00\.000Z; log in again, or choose/,
    )
    const place = mkdtempSync(join(folder, 'ended-'))
    const tls = makeCertificates(place, '127.0.0.1', { client: ['20200101000000Z', '20200201000000Z'] })
    const own = await startApiServer({ objects: [], tls })
    const user = { 'client-certificate': `${place}/client.crt`, 'client-key': `${place}/client.key` }
    const parts = { server: own.url, cluster: { 'certificate-authority-data': base64(tls.authority) } }
    const ran = await ask(user, parts)
    await own.close()
    expect(ran.err).toMatch(/: the client certificate ended at 2020-02-01T00:00:00\.000Z; /)
  })

  test('whose key is locked is told so', async () => {
    const key = '-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIHsMFcG\n-----END ENCRYPTED PRIVATE KEY-----\n'
    const user = { 'client-certificate-data': base64(made.clientCertificate), 'client-key-data': base64(key) }
    expect((await ask(user)).err).toMatch(
      /the client key is locked with a password, which kubectl does not take either/,
    )
  })

  test('that may not even ask what there is, since nobody knows it, is told to log in', async () => {
    const forbidden = await startApiServer({
      objects: [],
      tls: made,
      token: 'x',
      meddle: (_, response) => {
        response.writeHead(403, { 'content-type': 'application/json' })
        const message = 'forbidden: User "system:anonymous" cannot get path "/apis"'
        response.end(JSON.stringify({ kind: 'Status', message }))
        return true
      },
    })
    const ran = await ask({}, { server: forbidden.url })
    await forbidden.close()
    expect(ran.err).toMatch(/gives this user no credentials that count here: log in, or add them\n$/)
  })
})

function plugin(command: string, rest: object = {}): object {
  return { apiVersion: 'client.authentication.k8s.io/v1', command, interactiveMode: 'Never', ...rest }
}

function writePlugin(name: string, script: string): void {
  write(name, `#!${process.execPath}\n${script}\n`)
  chmodSync(join(folder, name), 0o755)
}

const credential = (given: string): string =>
  `console.log(JSON.stringify({ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status: ${given} }))`

describe('a credential plugin', () => {
  test('is not run where the kubeconfig itself lets the user in', async () => {
    writePlugin('never', 'process.exit(9)')
    expect(await ask({ token, exec: plugin('./never') })).toMatchObject({ code: 0, err: '' })
  })

  test('is told of the cluster as it stands there: a file’s authority as data, and its own settings', async () => {
    const told = join(folder, 'told.json')
    writePlugin(
      'curious',
      `require('fs').writeFileSync(${JSON.stringify(told)}, process.env.KUBERNETES_EXEC_INFO)
      ${credential(`{ token: '${token}' }`)}`,
    )
    const extensions = [{ name: 'client.authentication.k8s.io/exec', extension: { audience: 'a1' } }]
    const parts = { server: `${server.url}/`, cluster: { 'certificate-authority': 'ca.crt', extensions } }
    expect(await ask({ exec: plugin('./curious', { provideClusterInfo: true }) }, parts)).toMatchObject({ code: 0 })
    expect(JSON.parse(readFileSync(told, 'utf8')).spec.cluster).toEqual({
      server: `${server.url}/`,
      'certificate-authority-data': base64(made.authority),
      config: { audience: 'a1' },
    })
  })

  test.each<[string, string]>([
    ['a token in two pieces', `w('token=SECRET1'); setTimeout(() => w('-23456789\\n'), 60)`],
    ['a credential as JSON', `w(JSON.stringify({ status: { token: 'SECRET', clientKeyData: 'SECRET' } }) + '\\n')`],
    ['headers', `w('> Authorization: Bearer SECRET-0123456789\\n')`],
    ['a key', `w('-----BEGIN PRIVATE KEY-----\\nSECRET\\nSECRET==\\n-----END PRIVATE KEY-----\\n')`],
    ['what its arguments hold', `w('no such client: ' + process.argv.slice(2).join(' ') + '\\n')`],
    ['what its variables hold', `w('cannot use ' + process.env.AWS_SECRET_ACCESS_KEY + '\\n')`],
    ['a long word that only looks like one', `w('got SECRETa1b2c3d4e5f6a7b8c9d0e1f2a3b4 here\\n')`],
    ['a JWT', `w('got eyJhbGciOiJub25lIn0.SECRET.SECRET\\n')`],
  ])('that fails and says %s is told without it', async (_, script) => {
    writePlugin(
      'chatty',
      `const w = (text) => process.stderr.write(text); ${script}; setTimeout(() => process.exit(1), 150)`,
    )
    const args = ['login', '--client-secret', 'SECRET-a', '--password=SECRET-b']
    const env = [{ name: 'AWS_SECRET_ACCESS_KEY', value: 'SECRET-c' }]
    const ran = await ask({ exec: plugin('./chatty', { args, env }) })
    expect(ran).toMatchObject({ code: 2, out: '' })
    expect(ran.err).toMatch(/chatty of user "u" ended with code 1; log in with it again/)
  })

  test('is understood where it says something useful, and where it asks without a line break', async () => {
    const lines = [
      'failed to refresh token: unauthorized_client',
      'go to https://login.example.com/device and enter the code ABCD-EFGH',
      'application 00000003-0000-4000-c000-000000000000 was not found',
      'Password for jane@example.com: ',
    ]
    writePlugin(
      'helpful',
      `process.stderr.write(${JSON.stringify(lines.join('\n'))}); setTimeout(() => process.exit(1), 800)`,
    )
    const ran = await ask({ exec: plugin('./helpful') })
    const place = join(folder, 'helpful')
    expect(ran.err.split('\n').slice(0, 4)).toEqual(lines.map((line) => `${place}: ${line}`))
  })

  test('may print its credential as YAML, but none that is empty', async () => {
    const lines = [
      'apiVersion: client.authentication.k8s.io/v1',
      'kind: ExecCredential',
      'status:',
      `  token: ${token}`,
    ]
    const yaml = [...lines, '  expirationTimestamp: 2099-01-01T00:00:00Z'].join('\n')
    writePlugin('yaml', `console.log(${JSON.stringify(yaml)})`)
    expect(await ask({ exec: plugin('./yaml') })).toMatchObject({ code: 0, err: '' })
    writePlugin('empty', credential(`{ token: '', clientCertificateData: '' }`))
    expect((await ask({ exec: plugin('./empty') })).err).toMatch(
      /printed neither a token nor a certificate with its key; log in with it again\n$/,
    )
  })

  test('with a word that no program takes is refused without the word', async () => {
    const ran = await ask({ exec: plugin('./never', { args: ['SECRET\0'] }) })
    expect(ran.err).toMatch(/cannot be started \(ERR_INVALID_ARG_VALUE\); check command, args and env of exec\n$/)
  })

  test('that wants a terminal, and has none, is told', async () => {
    const ran = await ask({ exec: plugin('./never', { interactiveMode: 'Always' }) })
    expect(ran.err).toMatch(/wants to ask its user, and standard input is no terminal; log in with it first\n$/)
  })
})

describe('exceptions from a proxy', () => {
  const proxy = 'http://proxy:3128'
  test.each([
    ['https://api.corp.example', '*.corp.example', ''],
    ['https://corp.example', '*.corp.example', proxy],
    ['https://10.0.0.1:6443', '10.0.0.1:6443', ''],
    ['https://10.0.0.1:6443', '10.0.0.1:8443', proxy],
    ['https://api.example', 'api.example:443', ''],
    ['https://[fd00::1]:6443', 'fd00:0:0::1', ''],
    ['https://[fd00::1]:6443', '[fd00::1]:6443', ''],
    ['https://[fd00::1]:6443', 'fd00::/8', ''],
    ['https://[fd00::1]:6443', 'fe00::/8', proxy],
    ['https://10.0.0.1:6443', '10.0.0.0/64', proxy],
    ['https://api.example', ' , API.EXAMPLE ', ''],
  ])('%s with NO_PROXY=%s goes through "%s"', (url, NO_PROXY, through) => {
    expect(proxyOf('', new URL(url), { HTTPS_PROXY: proxy, NO_PROXY })).toBe(through)
  })
})
