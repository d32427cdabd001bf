import { describe, expect, test } from 'vitest'
import { buildFrom, type Raw } from '../support/raw-objects'

const slice = (rest: Raw): Raw => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: 'web-x', namespace: 'shop', labels: { 'kubernetes.io/service-name': 'web' } },
  addressType: 'IPv4',
  ...rest,
})

function one(rest: Raw) {
  const { cluster, findings, problems } = buildFrom([slice(rest)])
  return { slice: cluster.slices.get('shop/web-x'), cluster, findings, problems }
}

describe('EndpointSlices', () => {
  test('an endpoint keeps what is told of it, and absent conditions stay absent', () => {
    const targetRef = { kind: 'Pod', namespace: 'shop', name: 'web-0', uid: 'u' }
    const hints = { forZones: [{ name: 'a' }], forNodes: [{ name: 'node-a' }] }
    const endpoint = {
      addresses: ['10.244.1.5'],
      conditions: { ready: true, serving: null },
      hostname: 'web-0',
      nodeName: 'node-a',
      zone: 'a',
      targetRef,
      hints,
    }
    const { slice, problems } = one({
      endpoints: [endpoint],
      ports: [{ name: 'http', port: 8080, protocol: 'TCP', appProtocol: 'h2c' }],
    })
    expect(problems).toEqual([])
    expect(slice?.endpoints).toEqual([
      {
        addresses: ['10.244.1.5'],
        conditions: { ready: true },
        hostname: 'web-0',
        nodeName: 'node-a',
        zone: 'a',
        targetRef,
        forZones: ['a'],
        forNodes: ['node-a'],
      },
    ])
    expect(slice?.ports).toEqual([{ name: 'http', port: 8080, protocol: 'TCP', appProtocol: 'h2c' }])
  })

  test('an absent port name is the empty one, an absent protocol TCP, and an absent number stays absent', () => {
    expect(one({ endpoints: null, ports: [{}, { port: null, name: null }] }).slice).toMatchObject({
      endpoints: [],
      ports: [
        { name: '', protocol: 'TCP' },
        { name: '', protocol: 'TCP' },
      ],
    })
    expect(one({ endpoints: null, ports: null }).slice).toMatchObject({ endpoints: [], ports: [] })
  })

  test('v1beta1 told node and zone in a topology map', () => {
    const topology = { 'kubernetes.io/hostname': 'node-a', 'topology.kubernetes.io/zone': 'a' }
    const { slice } = one({
      apiVersion: 'discovery.k8s.io/v1beta1',
      endpoints: [{ addresses: ['10.244.1.5'], topology }],
    })
    expect(slice?.endpoints).toMatchObject([{ nodeName: 'node-a', zone: 'a' }])
  })

  test('an address of the other family is left out with a finding', () => {
    const { slice, findings } = one({ endpoints: [{ addresses: ['fd00::5', '10.244.1.5'] }] })
    expect(slice?.endpoints[0]?.addresses).toEqual(['10.244.1.5'])
    expect(findings[0]).toMatchObject({ code: 'slice.family-mismatch', path: 'endpoints[0].addresses' })
  })

  test('host names are no addresses', () => {
    expect(one({ addressType: 'FQDN', endpoints: [{ addresses: ['db.example.org'] }] })).toMatchObject({
      slice: { endpoints: [{ addresses: ['db.example.org'] }] },
      problems: [],
    })
  })

  test('a missing addressType is told and taken from the first address', () => {
    const { slice, problems } = one({ addressType: undefined, endpoints: [{ addresses: ['fd00::5'] }] })
    expect(slice).toMatchObject({ addressType: 'IPv6', endpoints: [{ addresses: ['fd00::5'] }] })
    expect(problems).toEqual(['manifest.wrong-type'])
  })

  test('bad addresses, endpoints and ports are left out one by one', () => {
    const endpoints = [
      { addresses: ['010.0.0.1'] },
      'x',
      { addresses: [7] },
      { addresses: ['10.244.1.6'], conditions: { ready: 'maybe' } },
    ]
    const { slice, findings } = one({ endpoints, ports: [{ port: 'http' }, { port: 80, protocol: 'QUIC' }] })
    expect(slice?.endpoints.map(({ addresses }) => addresses)).toEqual([['10.244.1.6']])
    expect(slice?.ports).toEqual([{ name: '', protocol: 'TCP' }])
    expect(findings[3]?.message).toBe('"maybe" stands where true or false is wanted; the endpoint counts as ready')
    expect(findings.slice(0, 6).map(({ path }) => path)).toEqual([
      'endpoints[1]',
      'endpoints[0].addresses[0]',
      'endpoints[2].addresses[0]',
      'endpoints[3].conditions.ready',
      'ports[0].port',
      'ports[1].protocol',
    ])
  })

  test.each([[[]], [null], [undefined]])('an endpoint with addresses %j is left out with a finding', (addresses) => {
    const { slice, findings } = one({ endpoints: [{ addresses }, { addresses: ['10.244.1.6'] }] })
    expect(slice?.endpoints).toMatchObject([{ addresses: ['10.244.1.6'] }])
    expect(findings[0]).toMatchObject({ code: 'slice.no-addresses', path: 'endpoints[0].addresses' })
  })

  test('a slice whose addressType is none is left out, and another spelling of one is read as it', () => {
    const endpoints = [{ addresses: ['10.244.1.5'] }]
    const { slice, findings } = one({ addressType: 'Foo', endpoints })
    expect(slice).toBeUndefined()
    expect(findings).toMatchObject([
      {
        code: 'manifest.bad-value',
        path: 'addressType',
        message: '"Foo" is none of IPv4, IPv6, FQDN; the slice is left out',
      },
    ])
    expect(one({ addressType: 4, endpoints }).slice).toBeUndefined()
    expect(one({ addressType: 'ipv4', endpoints }).slice?.addressType).toBe('IPv4')
  })

  test('nodes and zones that slices name make assumed nodes', () => {
    const endpoints = [{ addresses: ['10.244.1.5'], nodeName: 'west-1', zone: 'west' }]
    const { cluster } = one({ endpoints })
    expect(cluster.nodes.get('west-1')?.meta).toMatchObject({
      assumed: ['*'],
      labels: { 'topology.kubernetes.io/zone': 'west' },
    })
  })
})

test('Endpoints written by hand keep ready and unready addresses apart', () => {
  const subsets = [
    {
      addresses: [
        { ip: '192.0.2.1', nodeName: 'node-a', targetRef: { kind: 'Pod', name: 'x' } },
        { ip: '192.0.2.256' },
        {},
      ],
      notReadyAddresses: [{ ip: '192.0.2.3', hostname: 'c' }],
      ports: [{ port: 5432 }],
    },
  ]
  const { cluster, findings } = buildFrom([
    { apiVersion: 'v1', kind: 'Endpoints', metadata: { name: 'ext', namespace: 'shop' }, subsets },
  ])
  expect(cluster.endpoints.get('shop/ext')?.subsets).toEqual([
    {
      addresses: [{ ip: '192.0.2.1', nodeName: 'node-a', targetRef: { kind: 'Pod', name: 'x' } }],
      notReadyAddresses: [{ ip: '192.0.2.3', hostname: 'c' }],
      ports: [{ name: '', protocol: 'TCP', port: 5432 }],
    },
  ])
  expect(findings.slice(0, 2).map(({ path }) => path)).toEqual([
    'subsets[0].addresses[1].ip',
    'subsets[0].addresses[2].ip',
  ])
  expect(cluster.nodes.has('node-a')).toBe(true)
})
