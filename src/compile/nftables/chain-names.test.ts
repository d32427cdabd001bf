/** H1 to H6 and H8, and the table of names in the sheet. */
import { describe, expect, test } from 'vitest'
import { metaOf } from '../../../test/golden/objects'
import { affinitySet, endpointChain, isServiceChain, portText, serviceChains } from './chain-names'

function portOf(path: string, protocol: string, name = ''): string {
  return portText({ service: { meta: metaOf('Service', path) }, servicePort: { name }, protocol })
}

const web = portOf('shop/web', 'tcp')

test.each([
  ['H1', web, 'service-452DNVGS-shop/web/tcp/'],
  ['H3', portOf('shop/web', 'tcp', 'http'), 'service-KHN6ECMT-shop/web/tcp/http'],
  ['H6', portOf('shop/voip', 'sctp', 'sig'), 'service-QWWJY4BS-shop/voip/sctp/sig'],
  ['upstream', portOf('ns1/svc1', 'tcp', 'p80'), 'service-ULMVA6XW-ns1/svc1/tcp/p80'],
  ['API server', portOf('default/kubernetes', 'tcp', 'https'), 'service-2QRHZV4L-default/kubernetes/tcp/https'],
  ['DNS', portOf('kube-system/kube-dns', 'udp', 'dns'), 'service-FY5PMXPG-kube-system/kube-dns/udp/dns'],
  [
    'DNS over TCP',
    portOf('kube-system/kube-dns', 'tcp', 'dns-tcp'),
    'service-NWBZK7IH-kube-system/kube-dns/tcp/dns-tcp',
  ],
  ['metrics', portOf('kube-system/kube-dns', 'tcp', 'metrics'), 'service-AS2KJYAD-kube-system/kube-dns/tcp/metrics'],
  ['no port name', portOf('default/nginx', 'tcp'), 'service-ECO34HEO-default/nginx/tcp/'],
] as const)('%s: a Service port names its chain', (_, port, name) => {
  expect(serviceChains(port).cluster).toBe(name)
})

test('H2: the protocol is part of the name', () => {
  expect(serviceChains(portOf('shop/web', 'udp')).cluster).toMatch(/^service-[A-Z2-7]{8}-shop\/web\/udp\/$/)
  expect(serviceChains(portOf('shop/web', 'udp')).cluster).not.toContain('452DNVGS')
})

test('the four chains of a port differ in their first word alone', () => {
  expect(serviceChains(web)).toEqual({
    cluster: 'service-452DNVGS-shop/web/tcp/',
    local: 'local-452DNVGS-shop/web/tcp/',
    external: 'external-452DNVGS-shop/web/tcp/',
    firewall: 'firewall-452DNVGS-shop/web/tcp/',
  })
})

describe('endpoints', () => {
  test.each([
    ['H4', web, { ip: '10.244.1.9', port: 8080 }, '32Y5RKSM-shop/web/tcp/__10.244.1.9/8080'],
    ['H5', web, { ip: 'fd00:10:244:1::9', port: 8080 }, 'ISQVUBUD-shop/web/tcp/__fd00.10.244.1..9/8080'],
    [
      'upstream',
      portOf('ns1/svc1', 'tcp', 'p80'),
      { ip: '10.180.0.1', port: 80 },
      '5OJB2KTY-ns1/svc1/tcp/p80__10.180.0.1/80',
    ],
    [
      'upstream, IPv6',
      portOf('ns1/svc1', 'tcp', 'p80'),
      { ip: 'fd00:10:180::1', port: 80 },
      'ZVRFLKHO-ns1/svc1/tcp/p80__fd00.10.180..1/80',
    ],
  ] as const)('%s: an endpoint names its chain and its set', (_, port, endpoint, base) => {
    expect(endpointChain(port, endpoint)).toBe(`endpoint-${base}`)
    expect(affinitySet(endpointChain(port, endpoint))).toBe(`affinity-${base}`)
  })

  test('H8: a base that is too long is cut to 240 characters, and says so', () => {
    const port = portOf(`${'n'.repeat(63)}/${'s'.repeat(63)}`, 'sctp', 'p'.repeat(63))
    const chain = endpointChain(port, { ip: 'fd00:1111:2222:3333:4444:5555:6666:7777', port: 65535 })
    const base = chain.slice('endpoint-'.length)
    expect(base).toHaveLength(240)
    expect(base.startsWith('4OOVRNZV-nnn')).toBe(true)
    expect(base.endsWith('0.1111.2222.3333.4444.5555....')).toBe(true)
  })
})

test('only chains of Service ports and endpoints have a slash', () => {
  expect(isServiceChain(serviceChains(web).cluster)).toBe(true)
  expect(isServiceChain('nodeport-endpoints-check')).toBe(false)
})
