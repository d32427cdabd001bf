import { describe, expect, test } from 'vitest'
import { buildFrom, type Raw, rawService } from '#manifests/support/raw-objects'
import { selectSlices } from '../endpointslices/select-slices'
import { buildDnsServer } from './build-dns-server'
import { noteResolver } from './note-resolver'
import { resolutionJson } from './print-resolution-json'
import { type ClusterLookup, resolveInCluster } from './resolve-in-cluster'
import { standIn } from './stand-in'
import { isServiceName, suggestNames } from './suggest-names'

const crowd: Raw = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: 'crowd-1', namespace: 'shop', labels: { 'kubernetes.io/service-name': 'crowd' } },
  addressType: 'IPv4',
  ports: [{ port: 80, protocol: 'TCP' }],
  endpoints: Array.from({ length: 60 }, (_, index) => ({ addresses: [`10.244.9.${index + 1}`] })),
}

const { cluster } = buildFrom([
  rawService('web', { clusterIP: '10.96.0.20' }),
  rawService('crowd', { clusterIP: 'None' }),
  rawService('partner', { type: 'ExternalName', externalName: 'partner.example.com' }),
  rawService('short', { type: 'ExternalName', externalName: 'web.shop' }),
  rawService('none', { clusterIP: 'None' }),
  crowd,
])
const { value: server } = buildDnsServer({
  cluster,
  slices: selectSlices(cluster, 'input').value,
  clusterDomain: 'cluster.local',
})

const usual: Omit<ClusterLookup, 'name'> = {
  libc: 'glibc',
  conf: {
    nameservers: ['10.96.0.10'],
    searches: ['shop.svc.cluster.local', 'svc.cluster.local', 'cluster.local', 'corp.example'],
    options: ['ndots:5'],
  },
  source: 'cluster',
  hosts: [],
  clusterDns: ['10.96.0.10'],
  clusterDomain: 'cluster.local',
  isService: (name) => isServiceName(name, cluster),
}
const resolve = (name: string, more: Partial<ClusterLookup> = {}) =>
  resolveInCluster(server, { ...usual, name, ...more })
const summary = (name: string, more: Partial<ClusterLookup> = {}) => {
  const { outcome, queries, found } = resolve(name, more)
  return [outcome, queries, found]
}

describe('outcomes', () => {
  test('a name of the cluster, one outside, one that is not there', () => {
    expect(summary('web')).toEqual(['resolved', 2, 'web.shop.svc.cluster.local.'])
    expect(summary('partner')).toEqual(['forwarded', 2, 'partner.shop.svc.cluster.local.'])
    expect(summary('www.example.org')).toEqual(['forwarded', 10, 'www.example.org.'])
    expect(summary('www.example.org.')).toEqual(['forwarded', 2, 'www.example.org.'])
    expect(summary('nosuch')).toEqual(['not-found', 10, undefined])
    expect(summary('nosuch.shop.svc')).toEqual(['not-found', 10, undefined])
  })

  test('a Service that does not answer is not looked for outside, nor is a name below it', () => {
    const other = { client: { namespace: 'other' }, conf: { ...usual.conf, searches: ['svc.cluster.local'] } }
    expect(summary('none.shop', other)).toEqual(['not-found', 4, undefined])
    expect(summary('db-0.none.shop', other)[0]).toBe('not-found')
    expect(summary('_web._tcp.web.shop', other)[0]).toBe('not-found')
    expect(summary('x.y.z.web.shop', other)[0]).toBe('forwarded')
  })

  test('with few dots asked for, glibc goes on from the short name to the search list', () => {
    const conf = { ...usual.conf, options: ['ndots:1'] }
    expect(summary('web.shop', { conf })).toEqual(['resolved', 6, 'web.shop.svc.cluster.local.'])
  })

  test('an alias to the short name of a Service leads nowhere', () => {
    expect(summary('short', { conf: { ...usual.conf, searches: ['shop.svc.cluster.local'] } })[0]).toBe('not-found')
    expect(resolve('short').attempts[0]).toMatchObject({ rcode: 'NOERROR', isPositive: false, isAssumed: true })
  })

  test('what is assumed of names outside is marked', () => {
    const { attempts } = resolve('www.example.org')
    const marks = attempts.map(({ isAssumed, isForwarded }) =>
      isAssumed === true ? 'assumed' : isForwarded === true ? 'forwarded' : 'told',
    )
    expect(marks).toEqual([
      'told',
      'told',
      'told',
      'told',
      'told',
      'told',
      'assumed',
      'assumed',
      'forwarded',
      'forwarded',
    ])
  })

  test('sixty addresses do not fit into one reply, nor into glibc’s first buffers', () => {
    const { queries, passes, answers } = resolve('crowd')
    expect([queries, passes, answers.length]).toEqual([12, 3, 60])
    expect(summary('crowd', { type: 'A' })[1]).toBe(2)
    expect(summary('crowd', { libc: 'musl' })[1]).toBe(2)
  })

  test('musl stops where the first name has no records, glibc goes on', () => {
    expect(summary('web', { type: 'AAAA' })).toEqual(['not-found', 5, undefined])
    expect(summary('web', { type: 'AAAA', libc: 'musl' })).toEqual(['not-found', 1, undefined])
  })

  test('a name in the hosts file needs no question', () => {
    const hosts = [{ address: '10.244.1.9', names: ['client'] }]
    expect(summary('Client', { hosts })).toEqual(['resolved', 0, 'Client.'])
    expect(summary('client', { hosts, type: 'SRV' })[1]).toBe(5)
  })
})

describe('advice', () => {
  const changes = (name: string, more: Partial<ClusterLookup> = {}) =>
    resolve(name, more).advice.map(({ change, queries }) => [change, queries])

  test('a name outside costs 10, and 2 or 1 when changed', () => {
    expect(changes('www.example.org')).toEqual([
      ['trailing-dot', 2],
      ['ndots:2', 2],
      ['ipv4-only', 1],
    ])
  })

  test('a name of the cluster keeps its search list: only the whole name is cheaper', () => {
    expect(changes('web.shop')).toEqual([
      ['trailing-dot', 2],
      ['ipv4-only', 1],
    ])
    expect(changes('web')).toEqual([['ipv4-only', 1]])
  })

  test('there is none for what costs one, nor for what is not there', () => {
    expect(changes('web', { type: 'A' })).toEqual([])
    expect(changes('nosuch')).toEqual([])
  })
})

describe('nameservers that are not the cluster’s', () => {
  const node = {
    source: 'node',
    conf: { nameservers: ['192.0.2.1'], searches: ['corp.example'], options: [] },
  } as const
  const codes = (more: Partial<ClusterLookup>) => noteResolver(resolve('web.shop', more)).map(({ code }) => code)

  test('know no Service', () => {
    expect(summary('web.shop', node)).toEqual(['not-found', 4, undefined])
    expect(summary('web.shop.svc.cluster.local', node)[0]).toBe('not-found')
    expect(summary('www.example.org', node)).toEqual(['forwarded', 2, 'www.example.org.'])
    expect(codes(node)).toEqual(['dns.not-cluster-dns'])
  })

  test('beside the cluster’s they are a matter of chance, and told', () => {
    expect(codes({ conf: { ...usual.conf, nameservers: ['10.96.0.10', '192.0.2.1'] } })).toEqual([
      'dns.mixed-nameservers',
    ])
    expect(codes({ source: 'none' })).toEqual([])
    expect(codes({})).toEqual([])
  })

  test('of several glibc hears the first, and musl whichever is quick', () => {
    const behind = { ...usual.conf, nameservers: ['192.0.2.1', '10.96.0.10'] }
    const before = { ...usual.conf, nameservers: ['10.96.0.10', '192.0.2.1'] }
    const own = { source: 'none' } as const
    expect(summary('web', { ...own, conf: before })[0]).toBe('resolved')
    expect(summary('web', { ...own, conf: behind })[0]).toBe('not-found')
    expect(summary('web', { ...own, conf: behind, libc: 'musl' })[0]).toBe('unknown')
    expect(summary('web', { ...own, conf: before, libc: 'musl' })[0]).toBe('unknown')
    expect(summary('www.example.org.', { ...own, conf: behind, libc: 'musl' })[0]).toBe('forwarded')
    const [note] = noteResolver(resolve('web', { ...own, conf: behind }))
    expect(note?.message).toContain('glibc asks 192.0.2.1 first')
  })

  test('without any the C library asks where nobody is', () => {
    const conf = { nameservers: [], searches: [], options: [] }
    expect(summary('web.shop', { source: 'none', conf })[0]).toBe('failed')
    expect(resolve('web.shop', { source: 'none', conf }).attempts[0]?.because).toContain('names no nameserver')
  })

  test('a search line that musl ignores is told', () => {
    const searches = ['shop.svc.cluster.local', 'd'.repeat(240)]
    expect(codes({ libc: 'musl', conf: { ...usual.conf, searches } })).toEqual(['dns.search-line-ignored'])
  })
})

describe('suggestions', () => {
  test('a Service of another namespace, and a name that was meant for the cluster', () => {
    const elsewhere = resolve('web', { conf: { ...usual.conf, searches: ['default.svc.cluster.local'] } })
    expect(suggestNames(elsewhere, cluster).hints).toEqual(['a Service web is in namespace shop: ask for web.shop'])
    expect(suggestNames(resolve('wbe.shop'), cluster).findings.map(({ code }) => code)).toEqual(['dns.no-such-service'])
    expect(suggestNames(resolve('www.example.org'), cluster)).toEqual({ hints: [], findings: [] })
  })

  test('not the namespace that was asked already', () => {
    expect(suggestNames(resolve('none'), cluster).hints).toEqual([])
  })

  const told = (name: string) => suggestNames(resolve(name), cluster).findings.map(({ message }) => message)

  test('a port that a Service has not, another domain, and a namespace with a slip', () => {
    expect(told('_web._tcp.web')).toEqual([
      'Service shop/web has no port _web._tcp; it has _80._tcp, so _web._tcp.web is asked outside the cluster',
    ])
    expect(told('web.shop.svc.cluster.lokal')).toEqual([
      'the cluster domain of Service shop/web is cluster.local, so web.shop.svc.cluster.lokal is asked outside the cluster',
    ])
    expect(told('WEB.shopp')).toEqual([
      'there is no namespace shopp (Service web is in shop), so WEB.shopp is asked outside the cluster',
    ])
  })
})

describe('JSON', () => {
  test('has the shape that others rely on', () => {
    const json = JSON.parse(JSON.stringify(resolutionJson(resolve('web'), [])))
    expect(json).toMatchObject({ queries: 2, answers: ['10.96.0.20'], outcome: 'resolved' })
    expect(json.attempts.map((attempt: object) => Object.keys(attempt).slice(0, 4))).toEqual(
      Array(2).fill(['name', 'type', 'rcode', 'answers']),
    )
  })
})

describe('stand-ins for a real client', () => {
  const outside = standIn({ clusterZones: server.clusterZones, searches: usual.conf.searches })
  const hear = (name: string, type = 'A') => {
    const question = { name, type }
    const { rcode, answers } = outside(question, server.answer(question))
    return [rcode, ...answers.map((record) => ('address' in record ? record.address : record.type))]
  }

  test('are none for the short name of a Service', () => {
    const knowing = standIn({
      clusterZones: server.clusterZones,
      searches: [],
      isService: (name) => isServiceName(name, cluster),
    })
    const question = { name: 'none.shop.', type: 'A' }
    expect(knowing(question, server.answer(question)).rcode).toBe('NXDOMAIN')
  })

  test('are addresses for names outside, and no such name for those that a search list made', () => {
    expect(hear('www.example.org.')).toEqual(['NOERROR', '192.0.2.1'])
    expect(hear('www.example.org.', 'AAAA')).toEqual(['NOERROR', '2001:db8::1'])
    expect(hear('www.example.org.', 'TXT')).toEqual(['NOERROR'])
    expect(hear('www.example.org.corp.example.')).toEqual(['NXDOMAIN'])
    expect(hear('web.')).toEqual(['NXDOMAIN'])
    expect(hear('partner.shop.svc.cluster.local.')).toEqual(['NOERROR', 'CNAME', '192.0.2.1'])
    expect(hear('web.shop.svc.cluster.local.')).toEqual(['NOERROR', '10.96.0.20'])
  })
})
