/** Servers, and what stands before them, as they are on a bad day: nothing wrong is taken for known, and nothing hangs. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { RawObject } from '../../src/manifests/text/raw-object'
import type { ApiServerOptions } from './api-server'
import { type Certificates, makeCertificates } from './certificates'
import { answering, policies, read, serving } from './serving'

const folder = mkdtempSync(join(tmpdir(), 'portolan-bad-day-'))
const token = 'SECRET-token-of-jane'
let tls: Certificates

beforeAll(() => {
  tls = makeCertificates(folder)
})
afterAll(() => rmSync(folder, { recursive: true }))

const trusted = (user: object): object => ({
  cluster: { 'certificate-authority-data': Buffer.from(tls.authority).toString('base64') },
  user,
})

type Meddle = NonNullable<ApiServerOptions['meddle']>

/** What is told of NetworkPolicies, the only kind that is asked for. */
async function trouble(meddle: Meddle, count = 3): Promise<{ readonly message: string; readonly hint: string }> {
  return serving({ objects: policies(count), meddle }, async ({ url }) => {
    const { cluster, unread } = await read(url, { folder, kinds: ['NetworkPolicy'] })
    expect(cluster.networkPolicies.size).toBe(0)
    expect(unread.length).toBe(1)
    const [{ finding } = { finding: { message: '', hint: '' } }] = unread
    return { message: finding.message, hint: finding.hint ?? '' }
  })
}

describe('discovery', () => {
  const group = /^\/apis\/networking\.k8s\.io\/v1$/

  test.each<[string, unknown, RegExp]>([
    ['an empty object', {}, /what it answers to \/apis\/networking\.k8s\.io\/v1 is no list of kinds$/],
    ['a failure with 200', { kind: 'Status', status: 'Failure' }, /is no list of kinds$/],
    ['a login page', '<html>log in</html>', /the answer is text\/html, not JSON$/],
  ])('of a group that is %s leaves its kinds unknown, not absent', async (_, body, sentence) => {
    expect((await trouble(answering(group, 200, body))).message).toMatch(sentence)
  })

  test('of a group that something else answers 404 leaves its kinds unknown; the server’s own word is taken', async () => {
    const page = await trouble(answering(group, 404, '<html>no such page</html>'))
    expect(page.message).toMatch(/the server answers 404 with text\/html$/)
    await serving({ meddle: answering(group, 404, { kind: 'Status', message: 'gone' }) }, async ({ url }) => {
      const { findings, unread } = await read(url, { folder, kinds: ['NetworkPolicy'] })
      expect(unread).toEqual([])
      expect(findings[0]?.message).toBe('cluster test does not serve NetworkPolicies: it has no such objects')
    })
  })

  test('of a list of kinds that is null is one without kinds', async () => {
    const body = { kind: 'APIResourceList', groupVersion: 'networking.k8s.io/v1', resources: null }
    await serving({ meddle: answering(group, 200, body) }, async ({ url }) => {
      const { findings, unread } = await read(url, { folder, kinds: ['NetworkPolicy'] })
      expect([unread.length, findings[0]?.code]).toEqual([0, 'cluster.kind-not-served'])
    })
  })

  test('goes on to the next version where the preferred one cannot be asked', async () => {
    const slice = (version: string): RawObject => ({
      kind: 'EndpointSlice',
      apiVersion: `discovery.k8s.io/${version}`,
      value: {
        metadata: { name: 'web-1', namespace: 'shop', labels: { 'kubernetes.io/service-name': 'web' } },
        addressType: 'IPv4',
        ports: null,
        endpoints: [{ addresses: ['10.0.0.1'], topology: { 'kubernetes.io/hostname': 'node-a' } }],
      },
      origin: { file: 'test' },
    })
    const groups = {
      kind: 'APIGroupList',
      groups: [
        {
          name: 'discovery.k8s.io',
          versions: [{ groupVersion: 'discovery.k8s.io/v1' }, { groupVersion: 'discovery.k8s.io/v1beta1' }],
          preferredVersion: { groupVersion: 'discovery.k8s.io/v1' },
        },
      ],
    }
    const busy = answering(/^\/apis\/discovery\.k8s\.io\/v1$/, 503, { kind: 'Status', message: 'starting' })
    const both = answering(/^\/apis$/, 200, groups)
    const meddle: Meddle = (...args) => busy(...args) || both(...args)
    await serving({ objects: [slice('v1beta1')], meddle }, async ({ url }) => {
      const { cluster, unread } = await read(url, { folder, kinds: ['EndpointSlice'] })
      expect(unread).toEqual([])
      expect(cluster.slices.get('shop/web-1')?.endpoints[0]?.nodeName).toBe('node-a')
    })
    await serving({ objects: [], meddle }, async ({ url }) => {
      const { unread } = await read(url, { folder, kinds: ['EndpointSlice'] })
      expect(unread[0]?.finding.message).toMatch(/the server answers 503: starting$/)
    })
  })
})

describe('a list', () => {
  const lists = /limit=/

  test('that a load balancer answers 404 is unknown; a kind that went away is none, and told', async () => {
    expect((await trouble(answering(lists, 404, 'not here'))).message).toMatch(
      /the server answers 404 with text\/html$/,
    )
    await serving({ meddle: answering(lists, 404, { kind: 'Status' }) }, async ({ url }) => {
      const { findings, unread } = await read(url, { folder, kinds: ['NetworkPolicy'] })
      expect([unread.length, findings[0]?.code]).toEqual([0, 'cluster.kind-not-served'])
    })
  })

  test('of which a later page is spoilt is unknown whole', async () => {
    const later = /continue=/
    for (const [status, body] of [
      [403, { kind: 'Status', message: 'changed' }],
      [200, '<html>log in</html>'],
      [200, { kind: 'Status', status: 'Failure' }],
      [200, { items: [null] }],
      [200, { items: {}, metadata: { continue: 7 } }],
    ] as const) {
      await trouble(answering(later, status, body), 600)
    }
  })

  test.each<[string, object, number]>([
    ['without items, as null', { kind: 'NetworkPolicyList', metadata: null, items: null }, 0],
    [
      'of objects with fields that are null',
      {
        metadata: {},
        items: [
          { metadata: null, spec: null },
          {
            metadata: { name: 'a', namespace: 'shop', labels: null, annotations: null },
            spec: { podSelector: {}, ingress: null },
          },
        ],
      },
      1,
    ],
  ])('%s is read', async (_, body, count) => {
    await serving({ meddle: answering(lists, 200, body) }, async ({ url }) => {
      const { cluster, unread } = await read(url, { folder, kinds: ['NetworkPolicy'] })
      expect([cluster.networkPolicies.size, unread]).toEqual([count, []])
    })
  })

  test('whose answer is packed and cut, or no gzip at all, is asked again', async () => {
    const whole = gzipSync(JSON.stringify({ items: [] }))
    for (const body of [whole.subarray(0, whole.length - 9), Buffer.from('not packed')]) {
      let count = 0
      const meddle: Meddle = ({ url = '' }, response) => {
        if (!lists.test(url) || count++ > 0) return false
        response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
        response.end(body)
        return true
      }
      await serving({ objects: policies(2), meddle }, async ({ url }) => {
        const { cluster, pauses } = await read(url, { folder, kinds: ['NetworkPolicy'] })
        expect([cluster.networkPolicies.size, pauses]).toEqual([2, [500]])
      })
    }
  })

  test('of a server that closes each connection, or resets one in use, is read', async () => {
    let count = 0
    const meddle: Meddle = (request, response) => {
      response.setHeader('connection', 'close')
      if (!/continue=/.test(request.url ?? '') || count++ > 0) return false
      request.socket.resetAndDestroy()
      return true
    }
    await serving({ objects: policies(1200), meddle }, async ({ url }) => {
      const { cluster, unread, pauses } = await read(url, { folder, kinds: ['NetworkPolicy'] })
      expect([cluster.networkPolicies.size, unread, pauses]).toEqual([1200, [], [500]])
    })
  })

  test('that nobody may see since nobody is known has another remedy than a role', async () => {
    const message = 'networkpolicies is forbidden: User "system:anonymous" cannot list resource'
    expect((await trouble(answering(lists, 403, { kind: 'Status', message }))).hint).toMatch(/log in, or add them$/)
    expect((await trouble(answering(lists, 401, { kind: 'Status' }))).hint).toMatch(/^log in again, or choose/)
  })
})

describe('credentials that change while they are used', () => {
  const kinds = ['NetworkPolicy']

  /** Takes the first token for discovery, and the second for lists. */
  const rotating = (onFirstList: () => void): Meddle => {
    let lists = 0
    return (request, response) => {
      const isList = /limit=/.test(request.url ?? '')
      if (isList && lists++ === 0) onFirstList()
      const wanted = isList ? 'SECRET-second' : 'SECRET-first'
      if (request.headers.authorization === `Bearer ${wanted}`) return false
      response.writeHead(401, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ kind: 'Status', message: 'Unauthorized' }))
      return true
    }
  }

  test('a token file that was rotated is read again when the server refuses the old one', async () => {
    const tokenFile = join(folder, 'rotates')
    writeFileSync(tokenFile, 'SECRET-first\n')
    const meddle = rotating(() => writeFileSync(tokenFile, 'SECRET-second\n'))
    await serving({ objects: policies(700), tls, meddle }, async ({ url }) => {
      const { cluster, unread } = await read(url, { folder, kinds, parts: trusted({ tokenFile, ...certificate() }) })
      // The credential is younger than five seconds: what was refused may not be asked for without end.
      expect([cluster.networkPolicies.size, unread.length]).toEqual([0, 1])
    })
    await withClock(async (goOn) => {
      writeFileSync(tokenFile, 'SECRET-first\n')
      const again = rotating(() => {
        writeFileSync(tokenFile, 'SECRET-second\n')
        goOn(10_000)
      })
      await serving({ objects: policies(700), tls, meddle: again }, async ({ url }) => {
        const { cluster, unread } = await read(url, { folder, kinds, parts: trusted({ tokenFile, ...certificate() }) })
        expect([cluster.networkPolicies.size, unread]).toEqual([700, []])
      })
    })
  })

  const certificate = (): object => ({ 'client-certificate': 'client.crt', 'client-key': 'client.key' })

  test('a plugin whose token is refused for several lists at once is run once more, and not for each', async () => {
    const [path, runs] = [join(folder, 'counts'), join(folder, 'runs')]
    writeFileSync(
      path,
      `#!${process.execPath}
      const { appendFileSync, readFileSync } = require('fs')
      appendFileSync('${runs}', 'x')
      const token = 'SECRET-' + readFileSync('${runs}', 'utf8').length
      const [clientCertificateData, clientKeyData] = ['crt', 'key'].map((end) => readFileSync('${folder}/client.' + end, 'utf8'))
      const status = { token, clientCertificateData, clientKeyData }
      const given = { apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status }
      setTimeout(() => console.log(JSON.stringify(given)), 100)`,
    )
    chmodSync(path, 0o755)
    await withClock(async (goOn) => {
      let lists = 0
      const meddle: Meddle = (request, response) => {
        const isList = /limit=/.test(request.url ?? '')
        if (isList && lists++ === 0) goOn(10_000)
        if (request.headers.authorization === (isList ? 'Bearer SECRET-2' : 'Bearer SECRET-1')) return false
        response.writeHead(401, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ kind: 'Status', message: 'Unauthorized' }))
        return true
      }
      const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: path, interactiveMode: 'Never' }
      await serving({ objects: policies(3), tls, meddle }, async ({ url }) => {
        const several = ['NetworkPolicy', 'Pod', 'Service', 'Node', 'Deployment', 'EndpointSlice']
        const { unread } = await read(url, { folder, kinds: several, parts: trusted({ exec }) })
        expect(unread).toEqual([])
      })
      expect(readFileSync(runs, 'utf8')).toBe('xx')
    })
  })

  test('a plugin that fails later ends the reading at once, though a list waits to be asked again', async () => {
    const first = join(folder, 'first-run')
    const path = join(folder, 'fails-later')
    const given = `{ token: '${token}', expirationTimestamp: new Date(0).toISOString() }`
    writeFileSync(
      path,
      `#!${process.execPath}
      const { existsSync, writeFileSync } = require('fs')
      if (existsSync('${first}')) process.exit(1)
      setTimeout(() => {
        writeFileSync('${first}', '')
        console.log(JSON.stringify({ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status: ${given} }))
      }, 10)`,
    )
    chmodSync(path, 0o755)
    const busy = (pattern: RegExp, seconds: number): Meddle =>
      answering(pattern, 429, { kind: 'Status' }, { headers: { 'retry-after': String(seconds) } })
    const [soon, late] = [busy(/trafficpolicies/, 1), busy(/networkpolicies/, 29)]
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: path, interactiveMode: 'Never' }
    await withClock((goOn) => {
      const meddle: Meddle = (...args) => {
        const isLate = late(...args)
        if (isLate) goOn(10_000)
        return isLate || soon(...args)
      }
      return serving({ tls, token, meddle }, async (server) => {
        let sleepers = 0
        const sleep = async (milliseconds: number, signal: AbortSignal): Promise<void> => {
          sleepers++
          await setTimeout(milliseconds, undefined, { signal }).finally(() => {
            sleepers--
          })
        }
        const kinds = ['TrafficPolicy', 'NetworkPolicy']
        const reading = read(server.url, { folder, kinds, parts: trusted({ exec }), sleep })
        await expect(reading).rejects.toThrow(/fails-later of user "u" ended with code 1/)
        const asked = server.requests.length
        await setTimeout(300)
        expect(server.requests.length).toBe(asked)
        expect(server.requests.some((one) => one.includes('networkpolicies'))).toBe(true)
        expect(sleepers).toBe(0)
      })
    })
  })
})

/** The wall clock goes on by what is said, too. */
async function withClock(work: (goOn: (milliseconds: number) => void) => Promise<void>): Promise<void> {
  const clock = Date.now
  let ahead = 0
  Date.now = () => clock() + ahead
  try {
    await work((milliseconds) => {
      ahead += milliseconds
    })
  } finally {
    Date.now = clock
  }
}

function later(response: ServerResponse, milliseconds: number): void {
  setTimeout(milliseconds).then(() => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end('{"items":[]}')
  })
}

describe('a connection', () => {
  test('on which TLS never comes about is given up', async () => {
    const mute = createServer((socket) => socket.on('error', () => undefined))
    await new Promise<void>((ready) => mute.listen(0, '127.0.0.1', ready))
    const { port } = mute.address() as { readonly port: number }
    const started = performance.now()
    const reading = read(`https://127.0.0.1:${port}`, {
      folder,
      kinds: ['Pod'],
      parts: trusted({ token }),
      limits: { connectMilliseconds: 300 },
    })
    await expect(reading).rejects.toThrow(
      /cannot be asked: no connection came about in 0\.3 s; check that it runs, and server in the kubeconfig$/,
    )
    mute.close()
    expect(performance.now() - started).toBeLessThan(5000)
  })

  test('that speaks something else is told so, and what to try', async () => {
    const other = createServer((socket) => {
      socket.on('error', () => undefined)
      socket.end('\x15\x03\x01\x00\x02\x02\x16')
    })
    await new Promise<void>((ready) => other.listen(0, '127.0.0.1', ready))
    const { port } = other.address() as { readonly port: number }
    await expect(read(`http://127.0.0.1:${port}`, { folder, kinds: ['Pod'] })).rejects.toThrow(
      /is no API server of Kubernetes: what it answers is no HTTP \(HPE_\w+\); write https:\/\/ before server .*, if it speaks https$/,
    )
    other.close()
  })

  test('that is in line behind others has its time from its own turn', async () => {
    const slow: Meddle = (request, response) => {
      if (!/limit=/.test(request.url ?? '')) return false
      later(response, 400)
      return true
    }
    const kinds = ['Service', 'Pod', 'Endpoints', 'EndpointSlice', 'Node', 'Namespace', 'NetworkPolicy', 'Deployment']
    const more = [
      'ReplicaSet',
      'StatefulSet',
      'DaemonSet',
      'Job',
      'CronJob',
      'CiliumNode',
      'CiliumEndpoint',
      'CiliumIdentity',
    ]
    await serving({ objects: [], meddle: slow }, async ({ url }) => {
      const { unread } = await read(url, {
        folder,
        kinds: [...kinds, ...more, 'CiliumCIDRGroup'],
        limits: { totalMilliseconds: 900 },
      })
      expect(unread).toEqual([])
    })
  })

  test('that brings nothing for a while is told of, and so is a pause that the server asks for', async () => {
    const meddle = answering(/limit=/, 429, { kind: 'Status' }, { headers: { 'retry-after': '3' }, times: 1 })
    await serving({ objects: policies(3), meddle }, async ({ url }) => {
      const sleep = (milliseconds: number): Promise<void> => setTimeout(milliseconds)
      const { said, cluster } = await read(url, { folder, kinds: ['NetworkPolicy'], sleep })
      expect(cluster.networkPolicies.size).toBe(3)
      expect(said[0]).toBe('asking cluster test: the server has too much to do (429); it is asked again after 3 s')
    })
    const slow: Meddle = (request, response) => {
      if (!/continue=/.test(request.url ?? '')) return false
      later(response, 3200)
      return true
    }
    await serving({ objects: policies(600), meddle: slow }, async ({ url }) => {
      const { said } = await read(url, { folder, kinds: ['NetworkPolicy'] })
      expect(said[0]).toBe('500 objects read from cluster test so far')
    })
  })
})
