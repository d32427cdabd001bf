import { describe, expect, test } from 'vitest'
import { buildFrom, type Raw, rawRunningPod, rawService } from '#manifests/support/raw-objects'
import { selectSlices } from '../endpointslices/select-slices'
import { buildDnsServer } from './build-dns-server'
import { printRecordData, type Reply } from './record'

const port = (name: string, number: number): Raw => ({ name, port: number, protocol: 'TCP' })

function stateful(name: string, ip: string, isReady: boolean): Raw {
  const pod = rawRunningPod(name, ip, { labels: { app: 'db' }, hostname: name, subdomain: 'db' })
  const conditions = [{ type: 'Ready', status: isReady ? 'True' : 'False' }]
  return { ...pod, status: { phase: 'Running', podIP: ip, conditions } }
}

/** The objects of the cases: Services of scenario G1 and those that only names need. */
const objects: readonly Raw[] = [
  rawService('web', { clusterIP: '10.96.10.1', ports: [port('http', 80)], selector: { app: 'web' } }),
  rawService('api', { clusterIP: '10.96.20.1', ports: [port('http', 80)], selector: { app: 'api' } }),
  rawService('void', { clusterIP: '10.96.20.3', ports: [port('http', 80)], selector: { app: 'none' } }),
  rawService('ds', {
    clusterIP: '10.96.0.9',
    clusterIPs: ['10.96.0.9', 'fd00::9'],
    ipFamilies: ['IPv4', 'IPv6'],
    ipFamilyPolicy: 'RequireDualStack',
    ports: [port('http', 80)],
  }),
  rawService('db', { clusterIP: 'None', ports: [port('pg', 5432)], selector: { app: 'db' } }),
  rawService('ext', { type: 'ExternalName', externalName: 'www.example.org' }),
  rawService('inside', { type: 'ExternalName', externalName: 'web.shop.svc.cluster.local' }),
  rawService('lost', { type: 'ExternalName', externalName: 'gone.shop.svc.cluster.local' }),
  rawService('round', { type: 'ExternalName', externalName: 'about.shop.svc.cluster.local' }),
  rawService('about', { type: 'ExternalName', externalName: 'round.shop.svc.cluster.local' }),
  rawService('ip', { type: 'ExternalName', externalName: '192.0.2.7' }),
  rawService('six', { clusterIP: 'None', ports: [port('http', 8080)], selector: { app: 'six' } }),
  rawRunningPod('web-1', '10.244.1.9', { labels: { app: 'web' } }),
  stateful('db-0', '10.244.1.20', true),
  stateful('db-1', '10.244.2.20', false),
  ...Array.from({ length: 6 }, (_, index) =>
    rawRunningPod(`six-${index}`, `10.244.3.${index + 1}`, { labels: { app: 'six' } }),
  ),
]

const kubernetes = (...lines: readonly string[]): string =>
  `.:53 {\n  kubernetes cluster.local in-addr.arpa ip6.arpa {\n${lines.join('\n')}\n  }\n  forward . /etc/resolv.conf\n}\n`

function corefile(text: string): Raw {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'coredns', namespace: 'kube-system' },
    data: { Corefile: text },
  }
}

function ask(
  name: string,
  type = 'A',
  setup: { readonly text?: string; readonly objects?: readonly Raw[] } = {},
): Reply {
  const { cluster } = buildFrom([
    ...(setup.objects ?? objects),
    ...(setup.text === undefined ? [] : [corefile(setup.text)]),
  ])
  const slices = selectSlices(cluster, 'computed').value
  const { value } = buildDnsServer({ cluster, slices, clusterDomain: 'cluster.local' })
  return value.answer({ name: name.endsWith('.') ? name : `${name}.shop.svc.cluster.local.`, type })
}

const dataOf = (reply: Reply): readonly string[] => reply.answers.map(printRecordData)
const isNoData = (reply: Reply): boolean =>
  reply.rcode === 'NOERROR' && reply.answers.length === 0 && reply.authority.length === 1

describe('the zone that CoreDNS serves', () => {
  test('D1: a ClusterIP Service has its address, kept for five seconds', () => {
    expect(ask('web').answers).toEqual([
      { type: 'A', name: 'web.shop.svc.cluster.local.', ttl: 5, address: '10.96.10.1' },
    ])
  })

  test('D2: the other family is an answer without records, with the SOA', () => {
    const reply = ask('web', 'AAAA')
    expect(isNoData(reply)).toBe(true)
    expect(reply.authority.map(printRecordData)).toEqual([
      'ns.dns.cluster.local. hostmaster.cluster.local. 1 7200 1800 86400 5',
    ])
  })

  test.each([
    ['D3', 'web', '0 100 80 web.shop.svc.cluster.local.', '10.96.10.1'],
    ['D4', '_http._tcp.api', '0 100 80 api.shop.svc.cluster.local.', '10.96.20.1'],
    ['D11', '_pg._tcp.db', '0 100 5432 db-0.db.shop.svc.cluster.local.', '10.244.1.20'],
  ])('%s: SRV of %s, with the address beside it', (_, name, data, address) => {
    const reply = ask(name, 'SRV')
    expect(dataOf(reply)).toEqual([data])
    expect(reply.additional.map(printRecordData)).toEqual([address])
  })

  test.each([
    ['D5', '_http._udp.api', 'SRV'],
    ['D6', 'nosvc', 'A'],
    ['D6', 'web.nons.svc.cluster.local.', 'A'],
    ['D8', 'foo.cluster.local.', 'A'],
    ['D10', 'db-1.db', 'A'],
    ['D14', 'x.ext', 'A'],
    ['D21', '*', 'A'],
    ['', 'a.b.c.web', 'A'],
    ['', '_http._tcp.ext', 'SRV'],
    ['', 'ip', 'A'],
  ])('%s %s %s does not exist', (_, name, type) => {
    const reply = ask(name, type)
    expect([reply.rcode, reply.answers.length, reply.authority.length]).toEqual(['NXDOMAIN', 0, 1])
  })

  test('D7: the names of a namespace, of svc and of the zone exist and hold nothing', () => {
    for (const name of ['shop.svc.cluster.local.', 'svc.cluster.local.', 'cluster.local.', 'pod.cluster.local.']) {
      expect(isNoData(ask(name)), name).toBe(true)
    }
  })

  test('D9, D10: a headless Service has its ready endpoints alone, each with a name of its own', () => {
    expect(dataOf(ask('db'))).toEqual(['10.244.1.20'])
    expect(dataOf(ask('db-0.db'))).toEqual(['10.244.1.20'])
  })

  test('D12: a headless Service without a ready endpoint does not exist, whatever is asked', () => {
    const none = objects.filter((object) => object !== objects[13])
    for (const type of ['A', 'AAAA', 'SRV', 'TXT', 'MX', 'HTTPS']) {
      expect(ask('db', type, { objects: none }).rcode, type).toBe('NXDOMAIN')
    }
    expect(ask('db', 'A', { objects: none }).because).toContain('its only endpoint is not ready (db-1 not ready)')
  })

  test('D13: an ExternalName is a CNAME, and what it names is asked outside', () => {
    const reply = ask('ext')
    expect(dataOf(reply)).toEqual(['www.example.org.'])
    expect(reply.forwarded).toEqual({ name: 'www.example.org.', to: ['/etc/resolv.conf'] })
    expect(dataOf(ask('ext', 'CNAME'))).toEqual(['www.example.org.'])
    expect(isNoData(ask('ext', 'SRV'))).toBe(true)
  })

  test('an ExternalName inside the zone is looked up inside; one that leads nowhere or round has no address', () => {
    expect(dataOf(ask('inside'))).toEqual(['web.shop.svc.cluster.local.', '10.96.10.1'])
    expect(isNoData(ask('lost'))).toBe(true)
    expect(isNoData(ask('round'))).toBe(true)
  })

  test('D15: a Service of two families has one SRV record of weight 50, with both addresses', () => {
    const reply = ask('ds', 'SRV')
    expect(dataOf(reply)).toEqual(['0 50 80 ds.shop.svc.cluster.local.'])
    expect(reply.additional.map(printRecordData)).toEqual(['10.96.0.9', 'fd00::9'])
    expect(dataOf(ask('ds', 'AAAA'))).toEqual(['fd00::9'])
  })

  test.each([
    ['D16', '1.10.96.10.in-addr.arpa.', 'web.shop.svc.cluster.local.'],
    ['D17', '20.1.244.10.in-addr.arpa.', 'db-0.db.shop.svc.cluster.local.'],
    ['', '9.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa.', 'ds.shop.svc.cluster.local.'],
  ])('%s: PTR of %s', (_, name, target) => {
    expect(dataOf(ask(name, 'PTR'))).toEqual([target])
  })

  test('an address that nobody has, and one whose endpoint is not ready, have no name', () => {
    expect(ask('99.99.96.10.in-addr.arpa.', 'PTR').rcode).toBe('NXDOMAIN')
    expect(ask('20.2.244.10.in-addr.arpa.', 'PTR').rcode).toBe('NXDOMAIN')
  })

  test('D18: endpoints of a ClusterIP Service have names too', () => {
    expect(dataOf(ask('10-244-1-9.web'))).toEqual(['10.244.1.9'])
  })

  test('D19: pod names follow the option pods', () => {
    const pod = '10-244-1-9.shop.pod.cluster.local.'
    const other = '10-244-1-99.shop.pod.cluster.local.'
    const insecure = { text: kubernetes('pods insecure') }
    const verified = { text: kubernetes('pods verified') }
    expect(ask(pod).rcode).toBe('NXDOMAIN')
    expect([dataOf(ask(pod, 'A', insecure)), dataOf(ask(other, 'A', insecure))]).toEqual([
      ['10.244.1.9'],
      ['10.244.1.99'],
    ])
    expect([dataOf(ask(pod, 'A', verified)), ask(other, 'A', verified).rcode]).toEqual([['10.244.1.9'], 'NXDOMAIN'])
    expect(ask('10-244-1-9.default.pod.cluster.local.', 'A', verified).rcode).toBe('NXDOMAIN')
    expect(dataOf(ask('fd00--1.shop.pod.cluster.local.', 'AAAA', insecure))).toEqual(['fd00::1'])
  })

  test('D20: the version of the specification is a TXT record', () => {
    const [record] = ask('dns-version.cluster.local.', 'TXT').answers
    expect(record).toEqual({ type: 'TXT', name: 'dns-version.cluster.local.', ttl: 28800, text: '1.1.0' })
  })

  test('D22: the answer has the case of the question', () => {
    const [record] = ask('WEB.Shop.svc.cluster.LOCAL.').answers
    expect(record).toMatchObject({ name: 'WEB.Shop.svc.cluster.LOCAL.', address: '10.96.10.1' })
    expect(dataOf(ask('WEB.Shop.svc.cluster.LOCAL.', 'SRV'))).toEqual(['0 100 80 web.shop.svc.cluster.LOCAL.'])
  })

  test('D23: a Service without endpoints has its address, unless empty Services are ignored', () => {
    expect(dataOf(ask('void'))).toEqual(['10.96.20.3'])
    const text = kubernetes('ignore empty_service')
    expect([ask('void', 'A', { text }).rcode, dataOf(ask('web', 'A', { text }))]).toEqual(['NXDOMAIN', ['10.96.10.1']])
  })

  test('D24: six endpoints share a weight of 100, rounded down', () => {
    const weights = dataOf(ask('six', 'SRV')).map((data) => data.split(' ')[1])
    expect(weights).toEqual(['16', '16', '16', '16', '16', '16'])
  })
})

describe('options of the kubernetes plugin', () => {
  test('endpoint_pod_names calls an endpoint by its pod', () => {
    const text = kubernetes('endpoint_pod_names')
    expect(dataOf(ask('web-1.web', 'A', { text }))).toEqual(['10.244.1.9'])
    expect(ask('10-244-1-9.web', 'A', { text }).rcode).toBe('NXDOMAIN')
  })

  test('namespaces and noendpoints hide', () => {
    expect(ask('web', 'A', { text: kubernetes('namespaces default') }).because).toBe(
      'the Corefile does not expose namespace shop',
    )
    expect(ask('db', 'A', { text: kubernetes('noendpoints') }).rcode).toBe('NXDOMAIN')
  })

  test('ttl holds for every record, and fallthrough hands what is missing on', () => {
    const text = kubernetes('ttl 30', 'fallthrough in-addr.arpa ip6.arpa')
    expect(ask('web', 'A', { text }).answers[0]?.ttl).toBe(30)
    expect(ask('99.99.96.10.in-addr.arpa.', 'PTR', { text }).forwarded?.name).toBe('99.99.96.10.in-addr.arpa.')
    expect(ask('nosvc', 'A', { text }).rcode).toBe('NXDOMAIN')
  })

  test('zonal names narrow a headless Service to one zone', () => {
    const text = kubernetes('zonal')
    expect(isNoData(ask('a.pin._zone.db', 'A', { text }))).toBe(true)
    expect(dataOf(ask('a.prefer._zone.db', 'A', { text }))).toEqual(['10.244.1.20'])
    expect(ask('a.pin._zone.web', 'A', { text }).rcode).toBe('NXDOMAIN')
    expect(ask('a.pin._zone.db').rcode).toBe('NXDOMAIN')
  })

  test('ptr_hostname_only leaves names to endpoints that have one', () => {
    const text = kubernetes('ptr_hostname_only')
    expect(dataOf(ask('20.1.244.10.in-addr.arpa.', 'PTR', { text }))).toEqual(['db-0.db.shop.svc.cluster.local.'])
    expect(ask('9.1.244.10.in-addr.arpa.', 'PTR', { text }).rcode).toBe('NXDOMAIN')
  })

  test('a zone of ServiceImports is not known', () => {
    const text = '. {\n kubernetes cluster.local clusterset.local {\n  multicluster clusterset.local\n }\n}\n'
    expect(ask('web.shop.svc.clusterset.local.', 'A', { text }).unsure).toHaveLength(1)
    expect(ask('web', 'A', { text }).unsure).toBeUndefined()
  })

  test('labels selects the objects that are served', () => {
    expect(ask('web', 'A', { text: kubernetes('labels tier in (front, back)') }).rcode).toBe('NXDOMAIN')
    expect(dataOf(ask('web', 'A', { text: kubernetes('labels !tier') }))).toEqual(['10.96.10.1'])
  })
})
