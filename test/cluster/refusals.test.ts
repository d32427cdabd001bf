/** What a cluster refuses, hides or spoils: one sentence each, no secret in it, and never a wrong answer. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dump } from 'js-yaml'
import { afterAll, describe, expect, test } from 'vitest'
import type { RawObject } from '../../src/manifests/text/raw-object'
import type { RequestLimits } from '../../src/sources/cluster-request'
import { type ApiServer, type ApiServerOptions, readSamples } from './api-server'
import { makeCertificates } from './certificates'
import { configOf, run, writeConfig } from './kubeconfig'
import { answering, policies, type Read, read as readServer, serving } from './serving'

const folder = mkdtempSync(join(tmpdir(), 'portolan-refusals-'))
afterAll(() => rmSync(folder, { recursive: true }))

const packet = ['--src', '10.0.0.1', '--dst', '10.0.0.2', '--proto', 'tcp', '--dport', '80']
const explain = ['policy', 'explain', '--policy', 'tenant/web', ...packet]

function read(server: ApiServer, kinds: readonly string[], limits: Partial<RequestLimits> = {}): Promise<Read> {
  return readServer(server.url, { folder, kinds, limits })
}

describe('pages', () => {
  test('a list of 1203 objects is read 500 at a time', async () => {
    await serving({ objects: policies(1203) }, async (server) => {
      const { cluster, findings } = await read(server, ['NetworkPolicy'])
      expect(cluster.networkPolicies.size).toBe(1203)
      expect(findings).toEqual([])
      const lists = server.requests.filter((one) => one.includes('limit='))
      expect(lists.map((one) => one.includes('continue='))).toEqual([false, true, true])
    })
  })

  test('a list whose token is too old is read again from its beginning, each object once', async () => {
    const state: { server?: ApiServer; count: number } = { count: 0 }
    const meddle: ApiServerOptions['meddle'] = ({ url = '' }) => {
      if (url.includes('continue=') && state.count++ === 1) state.server?.touch()
      return false
    }
    await serving({ objects: policies(1203), meddle }, async (server) => {
      state.server = server
      const { cluster, findings, unread } = await read(server, ['NetworkPolicy'])
      expect(cluster.networkPolicies.size).toBe(1203)
      expect([findings, unread]).toEqual([[], []])
      expect(server.requests.filter((one) => /limit=500$/.test(one)).length).toBe(2)
    })
  })

  test('a list that changes faster than it is read is given up, and told', async () => {
    const state: { server?: ApiServer } = {}
    const meddle: ApiServerOptions['meddle'] = ({ url = '' }) => {
      if (url.includes('continue=')) state.server?.touch()
      return false
    }
    await serving({ objects: policies(600), meddle }, async (server) => {
      state.server = server
      const { cluster, unread } = await read(server, ['NetworkPolicy'])
      expect(cluster.networkPolicies.size).toBe(0)
      expect(unread[0]?.finding.message).toMatch(
        /NetworkPolicies of cluster test cannot be read.*the server answers 410/,
      )
      expect(server.requests.filter((one) => /limit=500$/.test(one)).length).toBe(4)
    })
  })

  test('a list that leads in a circle ends', async () => {
    const body = { kind: 'List', metadata: { continue: 'again' }, items: [] }
    await serving({ meddle: answering(/limit=/, 200, body) }, async (server) => {
      const { unread } = await read(server, ['NetworkPolicy'])
      expect(unread[0]?.finding.message).toMatch(/its list leads in a circle/)
    })
  })
})

describe('a server with too much to do', () => {
  test('is asked again after the time it names', async () => {
    const meddle = answering(/limit=/, 429, { kind: 'Status' }, { headers: { 'retry-after': '2' }, times: 2 })
    await serving({ meddle }, async (server) => {
      const { unread, pauses } = await read(server, ['NetworkPolicy'])
      expect(unread).toEqual([])
      expect(pauses).toEqual([2000, 2000])
    })
  })

  test('is asked four times, ever later, and then told of', async () => {
    await serving({ meddle: answering(/limit=/, 503, 'busy') }, async (server) => {
      const { unread, pauses } = await read(server, ['NetworkPolicy'])
      expect(unread[0]?.finding.message).toMatch(/the server answers 503 with text\/html$/)
      expect(pauses).toEqual([500, 1000, 2000])
      expect(server.requests.filter((one) => one.includes('limit=')).length).toBe(4)
    })
  })

  test('that asks for an hour is not waited for', async () => {
    const meddle = answering(/limit=/, 429, {}, { headers: { 'retry-after': '3600' } })
    await serving({ meddle }, async (server) => {
      const { unread, pauses } = await read(server, ['NetworkPolicy'])
      expect([unread.length, pauses]).toEqual([1, []])
    })
  })

  test('that says nothing, or never ends, or says too much, is given up', async () => {
    const limits = { connectMilliseconds: 150, idleMilliseconds: 150, totalMilliseconds: 400, mostBytes: 100_000 }
    const silent: ApiServerOptions['meddle'] = ({ url = '' }) => url.includes('limit=')
    const endless: ApiServerOptions['meddle'] = ({ url = '' }, response) => {
      if (!url.includes('limit=')) return false
      response.writeHead(200, { 'content-type': 'application/json' })
      const timer = setInterval(() => response.write(' '), 40)
      response.on('close', () => clearInterval(timer))
      return true
    }
    const large = answering(/limit=/, 200, { items: 'x'.repeat(200_000) })
    const facts = [/nothing came in 0.15 s$/, /the answer did not end in 0.4 s$/, /the answer is larger than 0 MB$/]
    for (const [index, meddle] of [silent, endless, large].entries()) {
      await serving({ meddle }, async (server) => {
        const { unread } = await read(server, ['NetworkPolicy'], limits)
        expect(unread[0]?.finding.message).toMatch(facts[index] ?? /never/)
      })
    }
  })

  test('that breaks its answer off is asked again', async () => {
    let count = 0
    const meddle: ApiServerOptions['meddle'] = ({ url = '' }, response) => {
      if (!url.includes('limit=') || count++ > 0) return false
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '5000' })
      response.write('{"items":[')
      setTimeout(() => response.destroy(), 30)
      return true
    }
    await serving({ objects: policies(3), meddle }, async (server) => {
      const { cluster, unread, pauses } = await read(server, ['NetworkPolicy'])
      expect([cluster.networkPolicies.size, unread.length, pauses]).toEqual([3, 0, [500]])
    })
  })
})

describe('what may not be read', () => {
  test('makes the answer unknown where it rests on it: verb and resource are named', async () => {
    const forbidden = ['networkpolicies.networking.k8s.io', 'deployments.apps']
    await serving({ objects: await readSamples('samples/policies'), forbidden }, async (server) => {
      const kubeconfig = writeConfig(folder, { server: server.url })
      const ran = await run(['policy', 'matrix', '--kubeconfig', kubeconfig])
      expect(ran).toMatchObject({ code: 3, out: '' })
      expect(ran.err).toMatch(
        /^error: NetworkPolicies of cluster test cannot be read, and are not known: the server forbids it \(403\): networkpolicies is forbidden: User "jane" cannot list .*; allow this user the verb list on networkpolicies\.networking\.k8s\.io, as docs\/cluster\.md shows \[cluster\.unread-kind\]$/m,
      )
      expect(ran.err).toMatch(
        /^portolan: the answer is unknown: it rests on NetworkPolicy of cluster test, which cannot be read, for what is told above$/m,
      )
    })
  })

  test('and only helps is told, and the answer given', async () => {
    await serving({ objects: await readSamples('samples/shop'), forbidden: ['nodes'] }, async (server) => {
      const kubeconfig = writeConfig(folder, { server: server.url })
      const ran = await run(['endpoints', 'shop/web', '--kubeconfig', kubeconfig])
      expect(ran.code).toBe(0)
      expect(ran.out).toMatch(/shop\/web/)
      expect(ran.err).toMatch(/^error: Nodes of cluster test cannot be read.*verb list on nodes, as docs\/cluster\.md/m)
      const said = await run(['explain', 'shop/web', '--kubeconfig', kubeconfig])
      expect(said).toMatchObject({ code: 3, out: '' })
    })
  })

  test('a kind that the cluster does not serve is none of its objects, and a note', async () => {
    const without = ['cilium.io', 'policy.networking.k8s.io']
    await serving({ objects: await readSamples('samples/policies/cluster.yaml'), without }, async (server) => {
      const kubeconfig = writeConfig(folder, { server: server.url })
      const ran = await run(['policy', 'matrix', '--kubeconfig', kubeconfig])
      expect(ran.code).toBe(0)
      expect(ran.err).toMatch(
        /^info: cluster test does not serve the 6 kinds asked for of cilium\.io and policy\.networking\.k8s\.io: it has no such objects \[cluster\.kind-not-served\]$/m,
      )
    })
  })

  test('kinds of one group are read in the versions that serve them', async () => {
    const policy = (kind: string, version: string): RawObject => ({
      kind,
      apiVersion: `policy.networking.k8s.io/${version}`,
      value: {
        metadata: { name: kind.toLowerCase() },
        spec: { tier: 'Admin', priority: 1, subject: { namespaces: {} } },
      },
      origin: { file: 'test' },
    })
    const objects = [policy('ClusterNetworkPolicy', 'v1alpha2'), policy('AdminNetworkPolicy', 'v1alpha1')]
    await serving({ objects }, async (server) => {
      const { cluster } = await read(server, ['AdminNetworkPolicy', 'ClusterNetworkPolicy'])
      expect(cluster.tierPolicies.size).toBe(2)
      expect(server.requests.filter((one) => one.includes('limit='))).toEqual([
        'GET /apis/policy.networking.k8s.io/v1alpha1/adminnetworkpolicies?limit=500',
        'GET /apis/policy.networking.k8s.io/v1alpha2/clusternetworkpolicies?limit=500',
      ])
    })
  })

  test('a walk between nodes of kube-proxy rests on nothing of Cilium’s', async () => {
    const forbidden = ['ciliumendpoints.cilium.io', 'ciliumidentities.cilium.io', 'ciliumnetworkpolicies.cilium.io']
    await serving({ objects: await readSamples('samples/shop'), forbidden }, async (server) => {
      const words = ['path', 'shop/client', 'shop/svc/web', '--kubeconfig', writeConfig(folder, { server: server.url })]
      expect((await run([...words, '--datapath', 'iptables'])).err).not.toMatch(/the answer is unknown/)
      expect(await run(words)).toMatchObject({ code: 3, out: '' })
    })
  })

  test('no more is asked for than the command needs, in the namespace that it needs', async () => {
    await serving({}, async (server) => {
      await run([...explain, '--kubeconfig', writeConfig(folder, { server: server.url })])
      expect(server.requests).toEqual([
        'GET /apis',
        'GET /apis/portolan.dev/v1alpha1',
        'GET /apis/galactic.datumapis.com/v1alpha1',
        'GET /apis/portolan.dev/v1alpha1/namespaces/tenant/trafficpolicies?limit=500',
        'GET /apis/galactic.datumapis.com/v1alpha1/namespaces/tenant/trafficpolicies?limit=500',
      ])
    })
  })

  test('of ConfigMaps those that are named are asked for, and no other', async () => {
    await serving({ objects: await readSamples('samples/shop', 'samples/cilium') }, async (server) => {
      await read(server, ['ConfigMap/coredns', 'ConfigMap/cilium-config'])
      const asked = server.requests.filter((one) => one.includes('limit='))
      expect(asked).toEqual([
        'GET /api/v1/namespaces/kube-system/configmaps?limit=500&fieldSelector=metadata.name%3Dcoredns',
        'GET /api/v1/configmaps?limit=500&fieldSelector=metadata.name%3Dcilium-config',
      ])
    })
  })
})

describe('one sentence each', () => {
  const token = 'SECRET-0123456789'

  async function refusal(config: object): Promise<string> {
    const path = join(folder, 'refused')
    writeFileSync(path, dump(config))
    const ran = await run([...explain, '--kubeconfig', path])
    expect(ran).toMatchObject({ code: 2, out: '' })
    expect(ran.err).toMatch(/^(?:asking cluster [^\n]+\n)*portolan: [^\n]+; [^\n]+\n$/)
    expect(ran.err).not.toMatch(/SECRET|bug of Portolan/)
    return ran.err
  }

  const to = (server: string, parts: object = {}): Promise<string> =>
    refusal(configOf({ server, user: { token }, ...parts }))

  async function listening(
    answer: (url: string) => {
      readonly status: number
      readonly headers?: Record<string, string>
      readonly body: string
    },
  ): Promise<{ readonly url: string; readonly close: () => void }> {
    const server = createServer(({ url = '' }, response) => {
      const { status, headers, body } = answer(url)
      response.writeHead(status, headers)
      response.end(body)
    })
    await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() }
  }

  test('credentials that are not taken; the server’s words never repeat them', async () => {
    const tls = makeCertificates(mkdtempSync(join(folder, 'known-')))
    const cluster = { 'certificate-authority-data': Buffer.from(tls.authority).toString('base64') }
    await serving({ tls, token: 'another' }, async ({ url }) => {
      expect(await to(url, { cluster })).toMatch(
        /context test at https:\/\/127\.0\.0\.1:\d+ lets nobody in with these credentials: the server does not know who asks \(401\): Unauthorized; log in again/,
      )
    })
    const meddle = answering(/./, 401, { kind: 'Status', message: `token ${token} is old` })
    await serving({ tls, token: 'another', meddle }, async ({ url }) => {
      expect(await to(url, { cluster })).toMatch(/token … is old/)
    })
  })

  test('a server that is not there, or has no name', async () => {
    expect(await to('https://127.0.0.1:1')).toMatch(
      /cannot be asked: nothing listens there \(ECONNREFUSED\); check that it runs/,
    )
    expect(await to('https://no-such-host.invalid')).toMatch(
      /cannot be asked: its name (?:is not known|cannot be asked for now) \((?:ENOTFOUND|EAI_AGAIN)\)/,
    )
  })

  test('a server that is no API server', async () => {
    const page = await listening(() => ({
      status: 200,
      headers: { 'content-type': 'text/html' },
      body: '<html>hello</html>',
    }))
    expect(await to(page.url)).toMatch(
      /is no API server of Kubernetes: the answer is text\/html, not JSON; check server/,
    )
    page.close()
    const away = await listening(() => ({ status: 302, headers: { location: 'https://login.example' }, body: '' }))
    expect(await to(away.url)).toMatch(/is no API server of Kubernetes: the server answers 302, which leads elsewhere/)
    away.close()
    const other = await listening(() => ({
      status: 200,
      headers: { 'content-type': 'application/json' },
      body: '{"hello":1}',
    }))
    expect(await to(other.url)).toMatch(/what it answers to \/apis is no list of API groups/)
    other.close()
    const none = await listening(() => ({ status: 404, body: 'not here' }))
    expect(await to(none.url)).toMatch(/is no API server of Kubernetes: the server answers 404/)
    none.close()
  })

  test('certificates that are not trusted, and TLS where there is none', async () => {
    const place = mkdtempSync(join(folder, 'tls-'))
    const tls = makeCertificates(place)
    await serving({ tls, token }, async ({ url }) => {
      expect(await to(url)).toMatch(/is not trusted: its certificate is not of the authority of the kubeconfig/)
      const other = makeCertificates(mkdtempSync(join(folder, 'other-'))).authority
      const cluster = { 'certificate-authority-data': Buffer.from(other).toString('base64') }
      expect(await to(url, { cluster })).toMatch(/is not trusted: its certificate is not of the authority/)
      expect(await to(url.replace('https:', 'http:'))).toMatch(
        /cannot be asked: it broke the connection off \(ECONNRESET\); write https:\/\/ before server in the kubeconfig/,
      )
    })
    await serving({ token }, async ({ url }) => {
      expect(await to(url.replace('http:', 'https:'))).toMatch(
        /is not trusted: it speaks no TLS \((?:EPROTO|ERR_SSL_\w+)\)/,
      )
    })
  })

  const good = configOf({ server: 'https://127.0.0.1:1', user: { token } }) as Record<string, unknown>
  test.each<[string, object, RegExp]>([
    [
      'no current context',
      { ...good, 'current-context': '' },
      /names no current context: there are test; name one with --context/,
    ],
    [
      'a current context that it lacks',
      { ...good, 'current-context': 'x' },
      /the current context of \S+ is "x", which it does not have: there are test/,
    ],
    [
      'a cluster that it lacks',
      { ...good, clusters: [] },
      /context "test" names cluster "c", which \S+ does not have; mend it/,
    ],
    ['a user that it lacks', { ...good, users: [] }, /context "test" names user "u", which \S+ does not have; mend it/],
    ['an entry without a name', { ...good, users: [{ user: {} }] }, /is no kubeconfig: users\[0\] has no name/],
    ['clusters as a map', { ...good, clusters: { c: {} } }, /clusters is a map where a list is wanted/],
    ['a Service', { apiVersion: 'v1', kind: 'Service' }, /it is a Service, not a kubeconfig/],
    ['no server', configOf({ server: '' }), /cluster "c" of context test has no server/],
    [
      'a server of ftp',
      configOf({ server: 'ftp://127.0.0.1' }),
      /has a server of ftp, which is neither http nor https/,
    ],
    [
      'a password in the address',
      configOf({ server: `https://u:${token}@127.0.0.1` }),
      /has a server with a password in it/,
    ],
    [
      'a token that is a number',
      configOf({ server: 'https://127.0.0.1', user: { token: 12345 } }),
      /token of the kubeconfig is a number, where text is wanted/,
    ],
    [
      'a certificate without its key',
      configOf({ server: 'https://127.0.0.1', user: { 'client-certificate-data': 'aaaa' } }),
      /has a client certificate and no client key/,
    ],
    [
      'certificates that are none',
      configOf({ server: 'https://127.0.0.1', cluster: { 'certificate-authority-data': 'aaaa' } }),
      /cannot be used: they are no PEM/,
    ],
    [
      'a key file that is not there',
      configOf({ server: 'https://127.0.0.1', user: { 'client-certificate': 'x.crt', 'client-key': 'x.key' } }),
      /x\.crt, the client-certificate of "u" in the kubeconfig, is not there/,
    ],
    [
      'a proxy that is none',
      configOf({ server: 'https://127.0.0.1', cluster: { 'proxy-url': `ftp://u:${token}@p` } }),
      /names no proxy of http, https or socks5/,
    ],
    [
      'a plugin without a command',
      configOf({ server: 'https://127.0.0.1', user: { exec: {} } }),
      /user "u" of the kubeconfig cannot be used: exec has no command/,
    ],
  ])('a kubeconfig with %s', async (_, config, sentence) => {
    expect(await refusal(config)).toMatch(sentence)
  })

  test('a kubeconfig that is cut in the middle of a token', async () => {
    const path = join(folder, 'cut')
    writeFileSync(path, `users:\n- name: u\n  user:\n    token: "${token}\nclusters: [`)
    const { err, code } = await run([...explain, '--kubeconfig', path])
    expect(err).toMatch(
      /^portolan: \S+ is no kubeconfig: it is no YAML: line \d+ cannot be read; compare kubectl config view --raw\n$/,
    )
    expect([code, err.includes('SECRET')]).toEqual([2, false])
  })

  test('a context that does not exist, and files beside a cluster', async () => {
    const kubeconfig = writeConfig(folder, { server: 'https://127.0.0.1:1' })
    expect((await run([...explain, '--kubeconfig', kubeconfig, '--context', 'prod'])).err).toMatch(
      /^portolan: no context is named "prod" in \S+: there are test; name one of them with --context\n$/,
    )
    expect(await run([...explain, '--kubeconfig', kubeconfig, '--from', 'samples/traffic-policy'])).toEqual({
      code: 2,
      out: '',
      err: 'portolan: --from names files, and --kubeconfig a cluster; leave one of them out\n',
    })
  })
})
