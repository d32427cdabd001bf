/** Maps of a node beyond single rows: versions, routing, families, local redirects, host ports, and input that is bad. */
import { expect, test } from 'vitest'
import { askMaps, egressPolicy, service, worldConfig } from '../../../test/cilium/ask-maps'
import { exampleWorld } from '../../../test/policy/ask-cilium'
import { namespace, node, pod, type Raw } from '../../../test/policy/policy-objects'

const ranges: readonly Raw[] = [
  { ...node('node-a', '192.168.1.10'), spec: { podCIDRs: ['10.244.1.0/24'] } },
  { ...node('node-b', '192.168.1.11'), spec: { podCIDRs: ['10.244.2.0/24'] } },
]

test('pod ranges stand in the tunnel map up to 1.17, and in the ipcache later', () => {
  const old = askMaps(ranges, { version: '1.17' })
  expect(old.texts('cilium_tunnel_map')).toEqual(['10.244.2.0:0 → 192.168.1.11:0'])
  expect(old.row('cilium_ipcache', '10.244.2.0/24')).toBeUndefined()
  const newer = askMaps(ranges)
  expect(newer.dumped.map(({ layout }) => layout.name)).not.toContain('cilium_tunnel_map')
  expect(newer.row('cilium_ipcache_v2', '10.244.2.0/24')?.value).toBe(
    'identity=2 encryptkey=0 tunnelendpoint=192.168.1.11 flags=hastunnel',
  )
})

test('native routing has no tunnel map and routes to each node, where it is asked for', () => {
  const config = { ...worldConfig, 'routing-mode': 'native' }
  const names = askMaps(ranges, { version: '1.16', config }).dumped.map(({ layout }) => layout.name)
  expect(names).not.toContain('cilium_tunnel_map')
  expect(askMaps(ranges, { config }).maps.routes).toHaveLength(1)
  const direct = askMaps(ranges, { config: { ...config, 'auto-direct-node-routes': 'true' } })
  expect(direct.maps.routes.map(({ via }) => via?.words)).toEqual([undefined, [0xc0a8010b]])
})

test('an API server on another node has identity 7, one outside a prefix of its own', () => {
  const slice = (ip: string): Raw => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { namespace: 'default', name: 'kubernetes', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: [ip] }],
    ports: [{ name: 'https', port: 6443, protocol: 'TCP' }],
  })
  expect(askMaps([slice('192.168.1.11')]).row('cilium_ipcache_v2', '192.168.1.11/32')?.value).toContain('identity=7 ')
  const outside = askMaps([slice('203.0.113.1')]).row('cilium_ipcache_v2', '203.0.113.1/32')
  expect(outside?.value).toContain('identity=16777217 ')
})

test('I20: in a dual stack each family has its own world', () => {
  const config = { ...worldConfig, 'enable-ipv6': 'true' }
  const { row } = askMaps([], { config })
  expect(row('cilium_ipcache_v2', '0.0.0.0/0')?.value).toContain('identity=9 ')
  expect(row('cilium_ipcache_v2', '::/0')?.value).toContain('identity=10 ')
})

test('a cluster of IPv6 alone has maps of IPv6 alone', () => {
  const world: readonly Raw[] = [
    node('node-a', 'fd00:1::10'),
    node('node-b', 'fd00:1::11'),
    namespace('business'),
    pod('business/b', { app: 'server' }, { ip: 'fd00:2::20', nodeName: 'node-b', ports: [{ containerPort: 8080 }] }),
    service('business/server', { clusterIP: 'fd00:96::50', ipFamilies: ['IPv6'], clusterIPs: ['fd00:96::50'] }),
  ]
  const config = { 'routing-mode': 'tunnel', 'kube-proxy-replacement': 'true' }
  const { dumped, texts, row } = askMaps([], { world, config })
  expect(dumped.filter(({ layout }) => /lb4|_v4$|ct4/.test(layout.name))).toEqual([])
  expect(texts('cilium_lb6_services_v2')).toEqual([
    '[fd00:96::50]:80/TCP (0) → [::]:0 (1) (0) [ClusterIP, non-routable]',
    '[fd00:96::50]:80/TCP (1) → [fd00:2::20]:8080/TCP (1) (1)',
  ])
  expect(row('cilium_ipcache_v2', 'fd00:2::20/128')?.value).toContain(
    'tunnelendpoint=fd00:1::11 flags=hastunnel,ipv6tunnel',
  )
})

test('every row has bytes of its map’s sizes, in each version and family', () => {
  const config = { ...worldConfig, 'enable-ipv6': 'true', 'enable-ip-masq-agent': 'true', 'bpf-lb-algorithm': 'maglev' }
  const six = pod('business/six', { app: 'client' }, { nodeName: 'node-b' })
  const objects = [
    ...ranges,
    six,
    egressPolicy(),
    service('business/server', { type: 'NodePort', ports: [{ port: 80, targetPort: 8080, nodePort: 30080 }] }),
  ]
  for (const version of ['1.16', '1.17', '1.18', '1.19'] as const) {
    for (const { layout, rows, untold } of askMaps(objects, { version, config }).dumped) {
      const sizes = rows.map(({ keyBytes, valueBytes }) => [keyBytes.length, valueBytes.length])
      expect(
        sizes.every(([key, value]) => key === layout.keySize && value === layout.valueSize),
        layout.name,
      ).toBe(true)
      expect(new Set(rows.map(({ keyBytes }) => keyBytes.join())).size, layout.name).toBe(rows.length)
      expect(
        untold.every(({ to }) => to <= layout.valueSize),
        layout.name,
      ).toBe(true)
    }
  }
})

test('the same objects in another order give the same maps', () => {
  const objects = [...ranges, egressPolicy(), service('business/server', {})]
  const print = (world: readonly Raw[], more: readonly Raw[]) =>
    askMaps(more, { world })
      .dumped.flatMap(({ layout, rows }) => rows.map(({ key, value }) => `${layout.name} ${key} ${value}`))
      .sort()
  expect(print([...exampleWorld].reverse(), [...objects].reverse())).toEqual(print(exampleWorld, objects))
})

test('a local redirect takes a Service’s address to a pod of the node, and where none is leaves it', () => {
  const redirect: Raw = {
    apiVersion: 'cilium.io/v2',
    kind: 'CiliumLocalRedirectPolicy',
    metadata: { namespace: 'business', name: 'near' },
    spec: {
      redirectFrontend: { serviceMatcher: { serviceName: 'server', namespace: 'business' } },
      redirectBackend: {
        localEndpointSelector: { matchLabels: { ver: 'v2' } },
        toPorts: [{ port: '8080', protocol: 'TCP' }],
      },
    },
  }
  const config = { ...worldConfig, 'enable-local-redirect-policy': 'true' }
  const rows = (at: string) =>
    askMaps([redirect, service('business/server', {})], { config, node: at }).texts('cilium_lb4_services_v2')
  expect(rows('node-b')).toEqual([
    '10.96.0.50:80/TCP (0) → 0.0.0.0:0 (1) (0) [LocalRedirect]',
    '10.96.0.50:80/TCP (1) → 10.244.2.30:8080/TCP (1) (1)',
  ])
  expect(rows('node-a')[0]).toContain('[ClusterIP, non-routable]')
  expect(askMaps([redirect, service('business/server', {})]).codes).toContain('maps.feature-off')
})

test('a host port is met at every address of the node', () => {
  const ports = [{ containerPort: 8080, hostPort: 9090, protocol: 'TCP' }]
  const { texts } = askMaps([pod('business/h', {}, { nodeName: 'node-a', ip: '10.244.1.99', ports })])
  expect(texts('cilium_lb4_services_v2').filter((text) => text.includes('(0) →'))).toEqual([
    '0.0.0.0:9090/TCP (0) → 0.0.0.0:0 (1) (0) [HostPort, non-routable]',
    '192.168.1.10:9090/TCP (0) → 0.0.0.0:0 (2) (0) [HostPort]',
  ])
})

test('N4: without a list the masquerade agent has its defaults, and link-local addresses unless they are masked', () => {
  const config = { ...worldConfig, 'enable-ip-masq-agent': 'true' }
  const agent = (text: string): Raw => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'ip-masq-agent', namespace: 'kube-system' },
    data: { config: text },
  })
  const rows = (...objects: readonly Raw[]) =>
    askMaps(objects, { config })
      .map('cilium_ipmasq_v4')
      .rows.map(({ key }) => key)
  expect(rows()).toHaveLength(12)
  expect(rows()).toContain('203.0.113.0/24')
  expect(rows(agent('masqLinkLocal: true'))).toHaveLength(11)
  expect(rows(agent('nonMasqueradeCIDRs: [10.0.0.0/8]'))).toEqual(['10.0.0.0/8', '169.254.0.0/16'])
  expect(askMaps([agent('{')], { config }).codes).toContain('maps.bad-config')
})

test('M27 and M28: sizes and seeds with which the agent does not start are told', () => {
  const codes = (config: object) => askMaps([], { config: { ...worldConfig, ...config } }).codes
  expect(codes({ 'bpf-lb-maglev-table-size': '1000' })).toContain('maps.bad-config')
  expect(codes({ 'bpf-lb-maglev-hash-seed': 'AAAAAAAAAAAAAAAAAAAAAA==' })).toContain('maps.bad-config')
  expect(codes({ 'bpf-lb-maglev-table-size': '251' })).not.toContain('maps.bad-config')
})

test.each([
  ['routing-mode', 'bogus'],
  ['tunnel-protocol', 'gre'],
  ['bpf-lb-mode', 'zzz'],
  ['bpf-lb-algorithm', 'round'],
  ['bpf-lb-dsr-dispatch', 'vxlan'],
  ['bpf-lb-acceleration', 'fast'],
  ['enable-policy', 'sometimes'],
  ['enable-ipv4', 'maybe'],
])('%s: %s is told, and the default is taken', (key, value) => {
  const { [key]: _, ...without } = { ...worldConfig } as Record<string, string>
  const bad = askMaps([], { config: { ...without, [key]: value } })
  expect(bad.codes).toContain('maps.bad-config')
  expect(bad.maps.settings).toEqual(askMaps([], { config: without }).maps.settings)
})

test('true and false are written in each way that Go reads; tunnel is an option of old', () => {
  const settings = (config: object) => askMaps([], { config: { ...worldConfig, ...config } })
  for (const word of ['True', '1', 't']) {
    expect(settings({ 'enable-ip-masq-agent': word }).maps.settings.hasIpMasqAgent).toBe(true)
  }
  expect(settings({ 'enable-policy': 'Always' }).maps.settings.policy.enforcement).toBe('always')
  const old = settings({ tunnel: 'disabled' })
  expect([old.maps.settings.isTunnel, old.codes]).toEqual([true, expect.arrayContaining(['maps.old-config'])])
})

test('S17: services with the same backends have the same Maglev table, and a ClusterIP none', () => {
  const nodePort = (port: number) => ({ type: 'NodePort', ports: [{ port: 80, targetPort: 8080, nodePort: port }] })
  const services = [
    service('business/one', { ...nodePort(30080) }),
    service('business/two', { ...nodePort(30081), clusterIP: '10.96.0.51' }),
  ]
  const { maps } = askMaps(services, {
    config: { ...worldConfig, 'bpf-lb-algorithm': 'maglev', 'bpf-lb-maglev-table-size': '251' },
  })
  expect(maps.maglev.map(({ service: one }) => `${one.type} ${one.port}`)).toEqual(['NodePort 30080', 'NodePort 30081'])
  expect(maps.maglev[0]?.table).toEqual(maps.maglev[1]?.table)
})

test('S3: a Service without endpoints has a row with count 0, and is told', () => {
  const { texts, codes } = askMaps([service('business/none', { selector: { app: 'nobody' } })])
  expect(texts('cilium_lb4_services_v2')).toEqual([
    '10.96.0.50:80/TCP (0) → 0.0.0.0:0 (1) (0) [ClusterIP, non-routable]',
  ])
  expect(codes).toContain('maps.no-backends')
})

test('overlapping pod ranges are told, and every pod keeps its own row', () => {
  const overlap = { ...node('node-b', '192.168.1.11'), spec: { podCIDRs: ['10.244.1.0/25'] } }
  const { codes, row } = askMaps([...ranges, overlap])
  expect(codes).toContain('maps.pod-ranges-overlap')
  expect(row('cilium_ipcache_v2', '10.244.1.10/32')?.value).toContain('identity=1001 ')
})

test('a pod that Cilium does not manage is in no map, and the others are', () => {
  const endpoint: Raw = {
    apiVersion: 'cilium.io/v2',
    kind: 'CiliumEndpoint',
    metadata: { namespace: 'business', name: 'a' },
    status: { id: 77, identity: { id: 1001 } },
  }
  const { row, codes, texts } = askMaps([endpoint])
  expect(row('cilium_lxc', '10.244.1.10:0')?.value).toContain('id=77 ')
  expect(row('cilium_ipcache_v2', '10.244.1.20/32')).toBeUndefined()
  expect(codes.filter((code) => code === 'maps.pod-without-identity')).toHaveLength(3)
  expect(texts('cilium_policy_v2_00077')).toContain('Egress: 0 ANY → Allow')
})

test('two egress policies for one pod and range are told', () => {
  const gateway = node('node-gw', '192.168.1.20', { egress: 'true' })
  const { maps, codes } = askMaps([gateway, egressPolicy(), egressPolicy({}, 'other')])
  expect([maps.egress.length, codes.includes('maps.egress-twice')]).toEqual([4, true])
})
