/** The ways into a cluster that a kubeconfig knows: certificates, tokens, plugins, proxies, several files, and a pod's own. */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dump } from 'js-yaml'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chooseCluster } from '../../src/sources/cluster-config'
import { readExecPlugin, runExecPlugin } from '../../src/sources/cluster-exec'
import { proxyOf } from '../../src/sources/cluster-proxy'
import { type ApiServer, readSamples, startApiServer } from './api-server'
import { type Certificates, makeCertificates } from './certificates'
import { configOf, run, writeConfig } from './kubeconfig'

const folder = mkdtempSync(join(tmpdir(), 'portolan-access-'))
const token = 'SECRET-token-of-jane'
const explain = ['policy', 'explain', '--policy', 'tenant/web', '--src', '10.0.0.1', '--dst', '10.0.0.2']
const packet = ['--proto', 'tcp', '--dport', '80', '--path', 'Private']
const answer = /^policy +tenant\/web\npath +Private\nverdict +allow\n/

let made: Certificates
let byCertificate: ApiServer
let byToken: ApiServer

beforeAll(async () => {
  made = makeCertificates(folder)
  const objects = await readSamples('samples/traffic-policy')
  byCertificate = await startApiServer({ objects, tls: made })
  byToken = await startApiServer({ objects, tls: made, token })
})

afterAll(async () => {
  await byCertificate.close()
  await byToken.close()
  rmSync(folder, { recursive: true })
})

const base64 = (text: string): string => Buffer.from(text).toString('base64')
const authority = (): object => ({ 'certificate-authority-data': base64(made.authority) })

async function ask(
  user: object,
  server = byToken,
  cluster: object = {},
): Promise<{ code: number; out: string; err: string }> {
  const parts = { server: server.url, cluster: { ...authority(), ...cluster }, user: { ...user } }
  return run([...explain, ...packet, '--kubeconfig', writeConfig(folder, parts)])
}

describe('who asks', () => {
  test('a client certificate, as data and as files beside the kubeconfig', async () => {
    const data = {
      'client-certificate-data': base64(made.clientCertificate),
      'client-key-data': base64(made.clientKey),
    }
    expect((await ask(data, byCertificate)).out).toMatch(answer)
    const files = { 'client-certificate': 'client.crt', 'client-key': 'client.key' }
    const own = { 'certificate-authority-data': undefined, 'certificate-authority': 'ca.crt' }
    expect(await ask(files, byCertificate, own)).toMatchObject({ code: 0, err: '' })
    expect((await ask({}, byCertificate)).err).toMatch(
      /refuses the client certificate, or wants one|broke the connection off/,
    )
    const mixed = { ...data, 'client-key-data': base64(made.serverKey) }
    expect((await ask(mixed, byCertificate)).err).toMatch(/the client key is not that of the client certificate/)
  })

  test('a token, and a token in a file that ends in a line break', async () => {
    expect((await ask({ token })).out).toMatch(answer)
    writeFileSync(join(folder, 'token'), `${token}\n`)
    expect((await ask({ tokenFile: 'token' })).out).toMatch(answer)
    expect(new Set(byToken.tokens)).toEqual(new Set([`Bearer ${token}`]))
  })

  test('an OIDC token of an auth-provider, by the client library', async () => {
    const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
    const jwt = [part({ alg: 'none' }), part({ exp: 4_000_000_000 }), 'SECRETsignature'].join('.')
    const server = await startApiServer({ objects: await readSamples('samples/traffic-policy'), tls: made, token: jwt })
    const provider = {
      name: 'oidc',
      config: { 'id-token': jwt, 'client-id': 'x', 'idp-issuer-url': 'https://127.0.0.1:1' },
    }
    const ran = await ask({ 'auth-provider': provider }, server)
    const broken = await ask({ 'auth-provider': { name: 'oidc', config: { 'id-token': 'SECRET' } } }, server)
    await server.close()
    expect(ran.out).toMatch(answer)
    expect(broken.err).toMatch(/lets nobody in with these credentials|cannot be logged in by auth-provider oidc/)
    expect(broken.err).not.toContain('SECRET')
  })

  test('a password, and somebody to be taken for', async () => {
    const seen: IncomingHttpHeaders[] = []
    const server = await startApiServer({
      objects: [],
      tls: made,
      token: 'nobody’s',
      meddle: ({ headers }) => {
        seen.push(headers)
        return false
      },
    })
    const user = { username: 'jane', password: 'pass', as: 'system:viewer', 'as-groups': ['a', 'b'], 'as-uid': '7' }
    const kubeconfig = writeConfig(folder, {
      server: server.url,
      cluster: authority() as never,
      user: { ...user, 'as-user-extra': { 'why/so': ['x'], 'a(b)%é': ['grün'] } },
    })
    await run([...explain, ...packet, '--kubeconfig', kubeconfig])
    await server.close()
    expect(seen[0]).toMatchObject({
      authorization: `Basic ${base64('jane:pass')}`,
      'impersonate-user': 'system:viewer',
      'impersonate-group': 'a, b',
      'impersonate-uid': '7',
      'impersonate-extra-why%2fso': 'x',
      'impersonate-extra-a%28b%29%25%c3%a9': Buffer.from('grün').toString('latin1'),
    })
  })

  test('a server that is not checked, where the kubeconfig says so', async () => {
    const cluster = { 'certificate-authority-data': undefined, 'insecure-skip-tls-verify': true }
    expect((await ask({ token }, byToken, cluster)).out).toMatch(answer)
  })

  test('a credential plugin, beside the kubeconfig, that is told of the cluster', async () => {
    const told = join(folder, 'told.json')
    writePlugin(
      'plugin',
      `require('fs').writeFileSync(${JSON.stringify(told)}, process.env.KUBERNETES_EXEC_INFO)
      console.error('hello from the plugin')
      console.log(JSON.stringify({ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status: { token: process.env.WHICH } }))`,
    )
    const exec = { ...pluginOf('./plugin'), env: [{ name: 'WHICH', value: token }], provideClusterInfo: true }
    const ran = await ask({ exec })
    expect(ran.out).toMatch(answer)
    expect(ran.err).toMatch(/plugin: hello from the plugin\n/)
    const { spec } = JSON.parse(readFileSync(told, 'utf8'))
    expect(spec).toMatchObject({ interactive: false, cluster: { server: byToken.url } })
  })

  test.each([
    ['exits', 'process.exit(3)', /plugin \S+bad of user "u" ended with code 3; log in with it again/],
    ['prints no credential', `console.log('${token}')`, /printed no ExecCredential with a status; run it by hand/],
    [
      'speaks another version',
      `console.log(JSON.stringify({apiVersion:'v9',kind:'ExecCredential',status:{token:'${token}'}}))`,
      /answers in v9, and the kubeconfig asks for client.authentication.k8s.io\/v1; write/,
    ],
  ])('a plugin that %s is told, without what it printed', async (_, script, sentence) => {
    writePlugin('bad', script)
    const ran = await ask({ exec: pluginOf('./bad') })
    expect(ran).toMatchObject({ code: 2, out: '' })
    expect(ran.err).toMatch(sentence)
    expect(ran.err).not.toContain('SECRET')
  })

  test('a plugin that never ends is ended, though a child of it holds its output', async () => {
    writePlugin(
      'slow',
      `require('child_process').spawn('sleep', ['8'], { stdio: ['ignore', 'inherit', 'inherit'] }); setInterval(() => 0, 1000)`,
    )
    const plugin = readExecPlugin({ name: 'u', folder, fields: { exec: pluginOf('./slow') } })
    if (plugin === undefined) throw new Error('there is no plugin')
    const started = performance.now()
    const running = runExecPlugin(plugin, {
      environment: process.env,
      say: () => undefined,
      cluster: {},
      authority: '',
      proxyUrl: '',
      patienceMilliseconds: 600,
    })
    await expect(running).rejects.toThrow(/slow of user "u" gave no answer in 0\.6 s; run it by hand to see why/)
    expect(performance.now() - started).toBeLessThan(6000)
  })

  test('a token that no header takes is refused, and not repeated', async () => {
    const { err, code } = await ask({ token: `${token}\nX-Injected: 1` })
    expect(err).toBe(
      'portolan: the token of user "u" holds a character that no header takes; write it again, or log in again\n',
    )
    expect(code).toBe(2)
  })

  test('a plugin that is not installed is told with its hint', async () => {
    const exec = { ...pluginOf('no-such-plugin'), installHint: 'get it from the handbook\nsecond line' }
    expect((await ask({ exec })).err).toBe(
      'portolan: the credential plugin no-such-plugin of user "u" is not installed; get it from the handbook\n',
    )
  })
})

function pluginOf(command: string): object {
  return { apiVersion: 'client.authentication.k8s.io/v1', command, interactiveMode: 'Never' }
}

function writePlugin(name: string, script: string): void {
  const path = join(folder, name)
  writeFileSync(path, `#!${process.execPath}\n${script}\n`)
  chmodSync(path, 0o755)
}

describe('the way there', () => {
  test('a proxy of the kubeconfig carries every question', async () => {
    const asked: string[] = []
    const proxy = createServer()
    proxy.on('connect', ({ url = '' }, socket) => {
      asked.push(url)
      const [host = '', port = ''] = url.split(':')
      const there = connect(Number(port), host, () => socket.write('HTTP/1.1 200 OK\r\n\r\n'))
      there.pipe(socket).pipe(there)
      for (const one of [there, socket]) one.on('error', () => one.destroy())
    })
    await new Promise<void>((ready) => proxy.listen(0, '127.0.0.1', ready))
    const { port } = proxy.address() as AddressInfo
    const ran = await ask({ token }, byToken, { 'proxy-url': `http://127.0.0.1:${port}` })
    proxy.close()
    expect(ran.out).toMatch(answer)
    expect(asked).toContain(byToken.url.replace('https://', ''))
  })

  test('a proxy that is not there, or lets nobody through, is told as such', async () => {
    const gone = await ask({ token }, byToken, { 'proxy-url': 'http://127.0.0.1:1' })
    expect(gone.err).toMatch(/nothing listens there \(ECONNREFUSED\), by way of the proxy 127\.0\.0\.1:1; check/)
    const proxy = createServer()
    proxy.on('connect', (_, socket) => socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n'))
    await new Promise<void>((ready) => proxy.listen(0, '127.0.0.1', ready))
    const { port } = proxy.address() as AddressInfo
    const refused = await ask({ token }, byToken, { 'proxy-url': `http://jane:SECRET@127.0.0.1:${port}` })
    proxy.close()
    expect(refused.err).toContain(`the proxy 127.0.0.1:${port} answers 407;`)
    expect(refused.err).not.toContain('SECRET')
  })

  test('a server below a path is asked below it', async () => {
    const asked: string[] = []
    const server = createServer(({ url = '' }, response) => {
      asked.push(url)
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ groups: [] }))
    })
    await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
    const { port } = server.address() as AddressInfo
    const parts = { server: `http://127.0.0.1:${port}/k8s/clusters/c-1/` }
    await run([...explain, ...packet, '--kubeconfig', writeConfig(folder, parts)])
    server.close()
    expect(asked).toEqual(['/k8s/clusters/c-1/apis'])
  })

  test.each([
    ['https://10.0.0.1:6443', {}, ''],
    ['https://10.0.0.1:6443', { HTTPS_PROXY: 'http://proxy:3128' }, 'http://proxy:3128'],
    ['https://10.0.0.1:6443', { https_proxy: 'proxy:3128' }, 'http://proxy:3128'],
    ['https://10.0.0.1:6443', { HTTPS_PROXY: 'http://proxy:3128', NO_PROXY: '10.0.0.0/8' }, ''],
    [
      'https://10.0.0.1:6443',
      { HTTPS_PROXY: 'http://proxy:3128', NO_PROXY: '10.1.0.0/16,10.0.0.2' },
      'http://proxy:3128',
    ],
    ['https://api.corp.example', { HTTPS_PROXY: 'http://proxy:3128', NO_PROXY: 'corp.example' }, ''],
    ['https://api.corp.example', { HTTPS_PROXY: 'http://proxy:3128', NO_PROXY: '.example' }, ''],
    ['https://api.corp.example', { HTTPS_PROXY: 'http://proxy:3128', NO_PROXY: 'orp.example' }, 'http://proxy:3128'],
    ['https://api.corp.example', { HTTPS_PROXY: 'http://proxy:3128', NO_PROXY: '*' }, ''],
    ['https://127.0.0.1:6443', { HTTPS_PROXY: 'http://proxy:3128' }, ''],
    ['https://[::1]:6443', { HTTPS_PROXY: 'http://proxy:3128' }, ''],
    ['http://10.0.0.1:8001', { HTTPS_PROXY: 'http://proxy:3128' }, ''],
  ])('%s with %o goes through "%s"', (server, environment, proxy) => {
    expect(proxyOf('', new URL(server), environment)).toBe(proxy)
  })

  test('a certificate of another name is taken where tls-server-name says so', async () => {
    const place = mkdtempSync(join(folder, 'named-'))
    const named = makeCertificates(place, 'api.example')
    const server = await startApiServer({ objects: [], tls: named, token })
    const cluster = { 'certificate-authority-data': base64(named.authority) }
    const refused = await ask({ token }, server, cluster)
    const taken = await ask({ token }, server, { ...cluster, 'tls-server-name': 'api.example' })
    await server.close()
    expect(refused.err).toMatch(/is not trusted: its certificate is of another name/)
    expect(taken.err).toMatch(/no TrafficPolicy is named "tenant\/web": the input has none/)
  })
})

describe('which cluster is meant', () => {
  const write = (name: string, config: object): string => {
    const path = join(folder, name)
    writeFileSync(path, dump(config))
    return path
  }

  test('of several files the first that sets a value wins, and one that is not there is passed over', async () => {
    const one = write('one', configOf({ server: 'https://one.example', namespace: 'first', context: 'a' }))
    const two = write('two', { ...configOf({ server: 'https://two.example', context: 'b' }), 'current-context': 'b' })
    const KUBECONFIG = [join(folder, 'absent'), one, two].join(':')
    const chosen = await chooseCluster({}, { KUBECONFIG })
    expect(chosen).toMatchObject({
      context: 'a',
      namespace: 'first',
      cluster: { fields: { server: 'https://one.example' } },
    })
    // Cluster and user of context b have the names that the first file has taken.
    const other = await chooseCluster({ context: 'b' }, { KUBECONFIG })
    expect(other).toMatchObject({
      context: 'b',
      namespace: 'default',
      cluster: { fields: { server: 'https://one.example' } },
    })
  })

  test('--kubeconfig is read alone, else KUBECONFIG, else the one in the home folder', async () => {
    const given = write('given', configOf({ server: 'https://given.example' }))
    const listed = write('listed', configOf({ server: 'https://listed.example' }))
    mkdirSync(join(folder, '.kube'))
    write('.kube/config', configOf({ server: 'https://home.example' }))
    const serverOf = async (options: object, environment: Record<string, string>): Promise<unknown> =>
      (await chooseCluster(options, { HOME: folder, ...environment }))?.cluster.fields.server
    expect(await serverOf({ kubeconfig: given }, { KUBECONFIG: listed })).toBe('https://given.example')
    expect(await serverOf({}, { KUBECONFIG: listed })).toBe('https://listed.example')
    expect(await serverOf({}, { KUBECONFIG: '' })).toBe('https://home.example')
    expect(await serverOf({}, { KUBECONFIG: join(folder, 'absent') })).toBe(undefined)
  })

  test('in a pod it is the cluster of the pod, as its service account', async () => {
    const account = mkdtempSync(join(folder, 'account-'))
    writeFileSync(join(account, 'token'), `${token}\n`)
    writeFileSync(join(account, 'ca.crt'), made.authority)
    writeFileSync(join(account, 'namespace'), 'tenant\n')
    const environment = { KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: new URL(byToken.url).port }
    const chosen = await chooseCluster({}, environment, account)
    expect(chosen).toMatchObject({ context: 'in-cluster', namespace: 'tenant' })
    if (chosen === undefined) return
    const { readLiveCluster } = await import('../../src/sources/cluster-read')
    const { cluster } = await readLiveCluster(
      chosen,
      { kinds: ['TrafficPolicy'] },
      { environment: {}, say: () => undefined },
    )
    expect([...cluster.trafficPolicies.keys()]).toEqual(['tenant/egress', 'tenant/to-resolver', 'tenant/web'])
    expect(await chooseCluster({}, {}, account)).toBe(undefined)
  })

  test('a bare name is in the namespace of the context, unless -n says where', async () => {
    const kubeconfig = writeConfig(folder, {
      server: byToken.url,
      cluster: authority() as never,
      user: { token },
      namespace: 'tenant',
    })
    const words = ['policy', 'explain', '--policy', 'web', '--src', '10.0.0.1', '--dst', '10.0.0.2', ...packet]
    expect((await run([...words, '--kubeconfig', kubeconfig])).out).toMatch(answer)
    expect((await run([...words, '--kubeconfig', kubeconfig, '-n', 'other'])).err).toMatch(
      /no TrafficPolicy is named "other\/web": the input has none/,
    )
  })
})
