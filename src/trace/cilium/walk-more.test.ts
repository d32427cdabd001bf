/** Walks beside the sheet's cases: IPv6, settings that change the way, hosts, errors of ICMP, and what is not known. */
import { expect, test } from 'vitest'
import { service } from '../../../test/cilium/ask-maps'
import { nativeConfig, pathWorld, preparePath } from '../../../test/cilium/ask-path'
import { ccnp, cnp } from '../../../test/policy/ask-cilium'
import { namespace, node, pod, type Raw } from '../../../test/policy/policy-objects'
import { newState } from './state-tables'

function node6(name: string, ip: string, range: string): readonly Raw[] {
  const router = range.replace('/64', '1')
  return [
    node(name, ip),
    {
      apiVersion: 'cilium.io/v2',
      kind: 'CiliumNode',
      metadata: { name },
      spec: {
        addresses: [
          { type: 'InternalIP', ip },
          { type: 'CiliumInternalIP', ip: router },
        ],
        ipam: { podCIDRs: [range] },
      },
    },
  ]
}

const world6: readonly Raw[] = [
  ...node6('node-a', 'fd00:1::10', 'fd00:244:1::/64'),
  ...node6('node-b', 'fd00:1::11', 'fd00:244:2::/64'),
  namespace('business'),
  pod('business/a', { app: 'client' }, { ip: 'fd00:244:1::a', nodeName: 'node-a' }),
  pod('business/b', { app: 'server' }, { ip: 'fd00:244:1::b', nodeName: 'node-a' }),
  pod('business/c', { app: 'server' }, { ip: 'fd00:244:2::c', nodeName: 'node-b' }),
]
const config6 = { 'enable-ipv4': 'false', 'enable-ipv6': 'true' }
const server6 = service('business/server', {
  type: 'NodePort',
  clusterIP: 'fd00:96::50',
  ipFamilies: ['IPv6'],
  ports: [{ port: 80, targetPort: 8080, nodePort: 30080 }],
})

test('IPv6 alone: pods, Services, node ports and the internet, each with its answer', () => {
  const { walk } = preparePath([server6], { world: world6, config: config6 })
  const near = walk('A', '[fd00:96::50]:80', { backend: '[fd00:244:1::b]:8080' })
  expect([near.fate, near.backEnd]).toEqual(['allowed', '[fd00:96::50]:80 → [fd00:244:1::a]:43210'])
  const far = walk('A', '[fd00:96::50]:80', { backend: '[fd00:244:2::c]:8080' })
  expect([far.fate, far.back]).toEqual(['allowed', 'allowed'])
  expect(far.walk.request.steps.find(({ did }) => did === 'encapsulated')?.packet.wrappedIn).toBe(
    'VXLAN fd00:1::10 → [fd00:1::11]:8472',
  )
  const out = walk('A', '[2001:4860:4860::8888]:443')
  expect([out.end, out.backEnd]).toEqual([
    '[fd00:1::10]:43210 → [2001:4860:4860::8888]:443',
    '[2001:4860:4860::8888]:443 → [fd00:244:1::a]:43210',
  ])
  expect(out.rows('node-a').at(-1)).toBe(
    'TCP IN [2001:4860:4860::8888]:443 -> [fd00:1::10]:43210 XLATE_DST [fd00:244:1::a]:43210 NeedsCT=0',
  )
  const inward = walk('2001:db8::7', '[fd00:1::10]:30080', { backend: '[fd00:244:2::c]:8080' })
  expect([inward.fate, inward.back, inward.backEnd]).toEqual([
    'allowed',
    'allowed',
    '[fd00:1::10]:30080 → [2001:db8::7]:43210',
  ])
  const changes = inward.walk.request.steps.find(({ did }) => did === 'rewrote the destination')?.changes
  expect(changes?.map(({ field }) => field)).toEqual(['destination address', 'destination port', 'TCP checksum'])
})

test('IPv6: a pod reaches itself through a Service from 1.19 on, and before it answers itself past the Service', () => {
  for (const version of ['1.16', '1.17', '1.18'] as const) {
    const { walk } = preparePath([server6], { world: world6, config: config6, version })
    const found = walk('B', '[fd00:96::50]:80', { backend: '[fd00:244:1::b]:8080' })
    expect([found.fate, found.walk.request.verdict.because[0]]).toEqual([
      'dropped',
      {
        code: 'cilium.answers-itself',
        sentence:
          'business/b receives it from its own address and answers by its own loopback from [fd00:244:1::b]:8080, where the client waits for [fd00:96::50]:80: the connection never comes up',
      },
    ])
  }
  const newer = (config: Readonly<Record<string, string>>) =>
    preparePath([server6], { world: world6, config: { ...config6, ...config }, version: '1.19' }).walk(
      'B',
      '[fd00:96::50]:80',
      { backend: '[fd00:244:1::b]:8080' },
    )
  const found = newer({})
  expect([found.fate, found.back, found.backEnd]).toEqual([
    'allowed',
    'allowed',
    '[fd00:96::50]:80 → [fd00:244:1::b]:43210',
  ])
  expect(found.end).toBe('[fe80::1]:43210 → [fd00:244:1::b]:8080')
  expect(newer({ 'ipv6-service-loopback-address': 'fd00::1' }).end).toBe('[fd00::1]:43210 → [fd00:244:1::b]:8080')
})

test('IPv6 alone, before 1.18: the ipcache has no room for the node, which is told', () => {
  const { walk } = preparePath([], { world: world6, config: config6, version: '1.17' }).walk('A', '[fd00:244:2::c]:80')
  expect(walk.request.verdict.because.length).toBeGreaterThan(0)
  expect(walk.findings.map(({ code }) => code)).toContain('maps.node-unknown')
})

const server = service('business/server', {
  type: 'NodePort',
  ports: [{ port: 80, targetPort: 8080, nodePort: 30080 }],
})

test('a process of the host is balanced at its socket, and reaches pods of other nodes from the router’s address', () => {
  const found = preparePath([server]).walk('node-a', '10.96.0.50:80', { backend: '10.244.2.30:8080' })
  expect(found.walk.request.steps[0]?.at.hook).toBe('cgroup/connect4')
  expect([found.fate, found.back, found.end]).toEqual(['allowed', 'allowed', '10.244.1.1:43210 → 10.244.2.30:8080'])
})

test('at a socket another node’s node port is translated here; per packet it goes to that node', () => {
  const atSocket = preparePath([server], { config: { 'bpf-lb-sock-hostns-only': 'false' } })
  const here = atSocket.walk('A', '192.168.1.11:30080', { backend: '10.244.1.20:8080' })
  expect([here.end, here.walk.request.steps.map(({ at }) => at.node)]).toEqual([
    '10.244.1.10:43210 → 10.244.1.20:8080',
    expect.not.arrayContaining(['node-b']),
  ])
  const there = preparePath([server]).walk('A', '192.168.1.11:30080', { backend: '10.244.1.20:8080' })
  expect(there.walk.request.steps.map(({ at }) => at.node)).toContain('node-b')
  expect([there.fate, there.back]).toEqual(['allowed', 'allowed'])
  expect(there.backEnd).toBe('192.168.1.11:30080 → 10.244.1.10:43210')
})

test('an external address of another host is not taken over at a socket', () => {
  const external = service('business/server', { externalIPs: ['192.0.2.9'] })
  const { walk } = preparePath([external], { config: { 'bpf-lb-sock-hostns-only': 'false' } })
  expect(walk('A', '192.0.2.9:80').said('left the destination')).toBeDefined()
})

test('without kube-proxy replacement node ports are not Cilium’s', () => {
  const { walk } = preparePath([server], { config: { 'kube-proxy-replacement': 'false' } })
  const found = walk('198.51.100.7', '192.168.1.10:30080')
  expect([found.fate, found.said('found the Service')]).toEqual(['unknown', undefined])
  expect(found.points.at(-1)).toBe('to-host')
  expect(walk('A', '10.96.0.50:80').said('found the Service')).toBeDefined()
})

test('P36: an established connection is asked about policy all the same', () => {
  const state = newState('1.18')
  expect(preparePath([]).walk('A', 'B:8080', {}, state).fate).toBe('allowed')
  const closed = cnp('business/server', { endpointSelector: { matchLabels: { app: 'server' } }, ingress: [{}] })
  const later = preparePath([closed]).walk('A', 'B:8080', {}, state)
  expect([later.fate, later.said('the connection is known')]).toEqual(['133', expect.stringContaining('ESTABLISHED')])
})

test('a connection that closes begins anew', () => {
  const state = newState('1.18')
  preparePath([]).walk('A', 'B:8080', {}, state)
  const { ct } = state.of('node-a')
  for (const [key, row] of ct) ct.set(key, { ...row, flags: row.flags | 3 })
  expect(preparePath([]).walk('A', 'B:8080', {}, state).said('asked connection tracking: NEW')).toBeDefined()
})

test('P19: an error of ICMP about a known connection passes as RELATED, and frag-needed always', () => {
  const closed = cnp('business/server', {
    endpointSelector: { matchLabels: { app: 'server' } },
    ingress: [{}],
    egress: [{}],
  })
  const state = newState('1.18')
  preparePath([]).walk('A', 'B:8080', {}, state)
  const { walk } = preparePath([closed])
  const related = walk('B', 'A', { protocol: 'ICMP', icmpType: 11 }, state)
  expect([related.fate, related.said('RELATED')]).toEqual(['allowed', expect.stringContaining('RELATED')])
  expect(walk('B', 'A', { protocol: 'ICMP', icmpType: 11 }).fate).toBe('133')
  expect(walk('A', 'B', { protocol: 'ICMP', icmpType: 3 }).fate).toBe('allowed')
})

test('with the host firewall the node’s own policy judges what is for it', () => {
  const host = ccnp('host', { nodeSelector: {}, ingress: [{ fromEntities: ['remote-node'] }] })
  const { walk } = preparePath([host], { config: { 'enable-host-firewall': 'true' } })
  expect([walk('198.51.100.7', '192.168.1.10:22').fate, walk('node-b', 'node-a:22').fate]).toEqual(['133', 'allowed'])
  expect(preparePath([host]).walk('198.51.100.7', '192.168.1.10:22').fate).toBe('allowed')
})

test('P38: where peers must authenticate the answer is unknown until they have', () => {
  const auth = cnp('business/server', {
    endpointSelector: { matchLabels: { app: 'server' } },
    ingress: [{ fromEndpoints: [{ matchLabels: { app: 'client' } }], authentication: { mode: 'required' } }],
  })
  const found = preparePath([auth]).walk('A', 'B:8080')
  expect([found.fate, found.walk.request.verdict.because[0].code]).toEqual(['unknown', 'cilium.authenticates'])
})

test('what comes from an address that nobody can have is a martian to the kernel that gets it', () => {
  const { walk } = preparePath([])
  for (const source of ['0.0.0.0', '0.1.2.3', '127.0.0.1', '224.0.0.1', '255.255.255.255']) {
    for (const target of ['B:8080', 'node-a:22']) {
      const found = walk(source, target, { entryNode: 'node-a' })
      expect([source, target, found.fate, found.walk.request.verdict.because[0].code]).toEqual([
        source,
        target,
        'dropped',
        'cilium.martian',
      ])
    }
  }
  expect(walk('1.2.3.4', 'B:8080').fate).toBe('allowed')
})

test('without CiliumNodes a router has its range’s first free address, by which nodes reach pods of others and are answered', () => {
  const ranges: Readonly<Record<string, string>> = { 'node-a': '10.244.1.0/24', 'node-b': '10.244.2.0/24' }
  const world = pathWorld
    .filter(({ kind }) => kind !== 'CiliumNode')
    .map((one) => {
      const range = ranges[String((one.metadata as Raw).name)]
      return one.kind === 'Node' && range !== undefined ? { ...one, spec: { podCIDRs: [range] } } : one
    })
  const first = pod('other/first', {}, { ip: '10.244.1.1', nodeName: 'node-a' })
  const nodesOnly = cnp('business/server', {
    endpointSelector: { matchLabels: { app: 'server' } },
    ingress: [{ fromEntities: ['remote-node'] }],
  })
  for (const version of ['1.17', '1.18'] as const) {
    const { walk } = preparePath([first, nodesOnly], { world, version })
    const found = walk('node-a', 'C:8080')
    expect([found.fate, found.back, found.end]).toEqual(['allowed', 'allowed', '10.244.1.2:43210 → 10.244.2.30:8080'])
    expect(found.said('no CiliumNode tells the router’s')).toBeDefined()
    const through = walk('198.51.100.7', '192.168.1.10:22')
    expect(through.fate).toBe('allowed')
  }
  const { walk } = preparePath([first, server], { world })
  const found = walk('198.51.100.7', '192.168.1.10:30080', { backend: '10.244.2.30:8080' })
  expect([found.fate, found.back, found.end]).toEqual(['allowed', 'allowed', '10.244.1.2:43210 → 10.244.2.30:8080'])
})

test('a backend on the host’s network is reached with the node’s own address', () => {
  const onHost = pod(
    'business/c',
    { app: 'server', ver: 'v2' },
    { ip: '192.168.1.11', nodeName: 'node-b', hostNetwork: true },
  )
  const world = pathWorld.filter(({ kind, metadata }) => !(kind === 'Pod' && (metadata as Raw).name === 'c'))
  const { walk } = preparePath([server, onHost], { world })
  const found = walk('198.51.100.7', '192.168.1.10:30080', { backend: '192.168.1.11:8080' })
  expect([found.fate, found.back, found.end]).toEqual(['allowed', 'allowed', '192.168.1.10:43210 → 192.168.1.11:8080'])
})

test('settings with which the agent does not start are told', () => {
  const codes = (config: Readonly<Record<string, string>>): readonly string[] =>
    preparePath([], { config })
      .net.findings()
      .map(({ code }) => code)
  expect(codes({ 'routing-mode': 'native' })).toContain('path.native-range')
  expect(codes(nativeConfig)).toEqual([])
  expect(codes({ 'bpf-lb-mode': 'dsr' })).toEqual(['path.dsr-mode'])
})

test('every walk has a reason, and ends', () => {
  const { walk, net } = preparePath([server])
  const names = [
    'A',
    'B',
    'C',
    'D',
    'node-a',
    'node-gw',
    '10.96.0.50',
    '10.244.2.99',
    '10.244.9.9',
    '8.8.8.8',
    '192.168.1.77',
  ]
  for (const source of ['A', 'C', 'node-b', '198.51.100.7', '10.244.7.7']) {
    for (const target of names) {
      const { request, reply } = walk(source, `${target}:30080`).walk
      for (const leg of [request, ...(reply === undefined ? [] : [reply])]) {
        expect(leg.verdict.because.every(({ sentence }) => sentence !== '')).toBe(true)
        expect(leg.verdict.because[0].code, `${source} to ${target}`).not.toBe('cilium.loop')
      }
    }
  }
  expect(net.nodeNames).toEqual(['node-a', 'node-b', 'node-gw'])
})

test('what a pod sends to itself stays in it, and no policy is asked: its own address, the loopback, and its Service at the socket', () => {
  const denyAll = cnp('business/deny', { endpointSelector: {}, ingress: [{}], egress: [{}] })
  const { walk } = preparePath([server, denyAll], { config: { 'bpf-lb-sock-hostns-only': 'false' } })
  for (const target of ['10.244.1.20:8080', '127.0.0.1:8080', '0.0.0.0:8080']) {
    const found = walk('B', target)
    expect([target, found.fate, found.back, found.points]).toEqual([target, 'allowed', 'allowed', []])
    expect(found.walk.request.verdict.because[0].code).toBe('cilium.kept-in-pod')
  }
  const itself = walk('B', '10.96.0.50:80', { backend: '10.244.1.20:8080' })
  expect([itself.fate, itself.back, itself.points]).toEqual(['allowed', 'allowed', []])
  expect(itself.walk.reply?.steps.at(-1)?.did).toBe('named the frontend')
  expect(itself.walk.request.verdict.because.map(({ code }) => code)).toContain('cilium.other-backend')
})

test('a process of the host reaches its own loopback, and what is for many receivers is in no map', () => {
  const { walk } = preparePath([])
  const own = walk('node-a', '127.0.0.1:10248')
  expect([own.fate, own.back, own.walk.request.steps.map(({ at }) => at.hook)]).toEqual([
    'allowed',
    'allowed',
    ['cgroup/connect4', 'loopback'],
  ])
  for (const target of ['224.0.0.251:5353', '255.255.255.255:67']) {
    for (const source of ['A', 'node-a', '198.51.100.7']) {
      const found = walk(source, target, { protocol: 'UDP' })
      expect([found.fate, found.walk.request.verdict.because[0].code]).toEqual(['unknown', 'cilium.many-receivers'])
    }
  }
})

const modes: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  tunnel: {},
  native: nativeConfig,
  dsr: { ...nativeConfig, 'bpf-lb-mode': 'dsr' },
  'dsr by geneve': { 'bpf-lb-mode': 'dsr', 'bpf-lb-dsr-dispatch': 'geneve', 'tunnel-protocol': 'geneve' },
  'dsr by geneve, native': { ...nativeConfig, 'bpf-lb-mode': 'dsr', 'bpf-lb-dsr-dispatch': 'geneve' },
  maglev: { 'bpf-lb-algorithm': 'maglev', 'bpf-lb-maglev-table-size': '251' },
  'host firewall': { 'enable-host-firewall': 'true' },
  acceleration: { ...nativeConfig, 'bpf-lb-acceleration': 'native' },
  'kernel masquerade': { 'enable-bpf-masquerade': 'false' },
}

test.each(Object.entries(modes))('%s: every client is answered from where it sent to', (mode, config) => {
  // By Maglev a ClusterIP has no table, and no backend is found before its kind is asked about.
  const refused = mode === 'maglev' ? '158' : '174'
  const frontends = ['10.96.0.50:80', '192.168.1.10:30080', '192.168.1.11:30080', '192.168.1.20:30080']
  let count = 0
  for (const version of ['1.16', '1.18'] as const) {
    const { walk } = preparePath([server], { config, version })
    for (const source of ['A', 'B', 'C', '198.51.100.7']) {
      for (const target of frontends) {
        for (const backend of ['10.244.1.20:8080', '10.244.2.30:8080']) {
          const found = walk(source, target, { backend })
          const title = `${version} ${source} to ${target}, ${backend}`
          const isOwn = found.walk.request.verdict.because[0].code === 'cilium.martian'
          if (source === '198.51.100.7' && target.startsWith('10.96')) expect(found.fate, title).toBe(refused)
          else if (!isOwn) {
            expect([found.fate, found.back], title).toEqual(['allowed', 'allowed'])
            expect(found.backEnd.split(' ')[0], title).toBe(target)
            count++
          }
        }
      }
    }
  }
  expect(count).toBeGreaterThan(45)
})

test('P27: with policy-audit-mode what policy would drop goes on, and is told', () => {
  const closed = cnp('business/server', { endpointSelector: { matchLabels: { app: 'server' } }, ingress: [{}] })
  const found = preparePath([closed], { config: { 'policy-audit-mode': 'true' } }).walk('A', 'B:8080')
  expect([found.fate, found.said('verdict AUDIT')]).toEqual(['allowed', expect.stringContaining('audit')])
})

test('what the proxy sends on at egress is judged at the other end, and the answer comes through the proxy', () => {
  const http = { ports: [{ port: '8080', protocol: 'TCP' }], rules: { http: [{ method: 'GET' }] } }
  const egress = cnp('business/client', {
    endpointSelector: { matchLabels: { app: 'client' } },
    egress: [{ toEndpoints: [{}], toPorts: [http] }],
  })
  const denied = cnp('business/server', { endpointSelector: { matchLabels: { ver: 'v2' } }, ingress: [{}] })
  const { walk } = preparePath([egress])
  for (const target of ['B:8080', 'C:8080']) {
    const found = walk('A', target)
    expect([found.fate, found.back], target).toEqual(['allowed', 'allowed'])
    expect(found.points.slice(0, 3), target).toEqual(['from-endpoint', 'to-proxy', 'from-proxy'])
    expect(
      found.walk.reply?.steps.some(({ did }) => did === 'passed the answer on'),
      target,
    ).toBe(true)
  }
  expect(preparePath([egress, denied]).walk('A', 'C:8080').fate).toBe('133')
})
