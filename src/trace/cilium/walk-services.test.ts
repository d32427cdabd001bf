/** Services: cases S1 to S17 of the sheet. */
import { expect, test } from 'vitest'
import { service } from '../../../test/cilium/ask-maps'
import { nativeConfig, pathWorld, preparePath } from '../../../test/cilium/ask-path'
import { cnp } from '../../../test/policy/ask-cilium'
import { pod, type Raw } from '../../../test/policy/policy-objects'
import { newState } from './state-tables'

const server = service('business/server', {})
const nodePort = service('business/server', {
  type: 'NodePort',
  ports: [{ port: 80, targetPort: 8080, nodePort: 30080 }],
})
const toB = { backend: '10.244.1.20:8080' }
const toC = { backend: '10.244.2.30:8080' }
const client = '198.51.100.7'

function serverPolicy(rule: Raw): Raw {
  return cnp('business/server', { endpointSelector: { matchLabels: { app: 'server' } }, ingress: [rule] })
}

const ports = [{ ports: [{ port: '8080', protocol: 'TCP' }] }]
const fromClient = serverPolicy({ fromEndpoints: [{ matchLabels: { app: 'client' } }], toPorts: ports })
const fromWorld = serverPolicy({ fromEntities: ['world'], toPorts: ports })
const fromCluster = serverPolicy({ fromEntities: ['cluster'], toPorts: ports })

test('S1: a Service leaves a SERVICE row and a row with RevNAT, and the answer comes from the Service', () => {
  const { fate, back, rows, end, backEnd, walk } = preparePath([server, fromClient]).walk('A', '10.96.0.50:80', toC)
  expect([fate, back]).toEqual(['allowed', 'allowed'])
  expect(rows('node-a')).toEqual([
    'TCP OUT 10.244.1.10:43210 -> 10.96.0.50:80 service Flags=0x0000 [ ] RevNAT=1 SourceSecurityID=0 BackendID=2',
    'TCP OUT 10.244.1.10:43210 -> 10.244.2.30:8080 Flags=0x0000 [ ] RevNAT=1 SourceSecurityID=1001',
  ])
  expect([end, backEnd]).toEqual(['10.244.1.10:43210 → 10.244.2.30:8080', '10.96.0.50:80 → 10.244.1.10:43210'])
  expect(walk.request.targets).toEqual([
    { address: '10.244.1.20:8080', share: 0.5 },
    { address: '10.244.2.30:8080', share: 0.5 },
  ])
})

test('P34: through a Service policy sees the port of the backend, by packet and by socket, so that a rule for the Service’s denies', () => {
  const to = (port: string): Raw =>
    cnp('business/client', {
      endpointSelector: { matchLabels: { app: 'client' } },
      egress: [
        { toEndpoints: [{ matchLabels: { app: 'server' } }], toPorts: [{ ports: [{ port, protocol: 'TCP' }] }] },
      ],
    })
  for (const hostOnly of ['true', 'false']) {
    const config = { 'bpf-lb-sock-hostns-only': hostOnly }
    const fate = (port: string) => preparePath([server, to(port)], { config }).walk('A', '10.96.0.50:80', toB).fate
    expect([hostOnly, fate('80'), fate('8080')]).toEqual([hostOnly, '133', 'allowed'])
  }
})

test('P37: the answer of a pod that may send nothing passes, as its connection is known', () => {
  const silent = cnp('business/server', { endpointSelector: { matchLabels: { app: 'server' } }, egress: [{}] })
  const { walk } = preparePath([silent])
  const found = walk('A', 'B:8080')
  expect([found.fate, found.back, walk('B', 'A:8080').fate]).toEqual(['allowed', 'allowed', '133'])
})

test('S2: by sockets there is no SERVICE row, RevNAT is 0, and the packet goes to the backend from the start', () => {
  const config = { 'bpf-lb-sock-hostns-only': 'false' }
  const { rows, back, said, walk } = preparePath([server], { config }).walk('A', '10.96.0.50:80', toB)
  expect(rows('node-a')).toEqual([
    'TCP OUT 10.244.1.10:43210 -> 10.244.1.20:8080 Flags=0x0000 [ ] RevNAT=0 SourceSecurityID=1001',
    'TCP IN 10.244.1.10:43210 -> 10.244.1.20:8080 Flags=0x0000 [ ] RevNAT=0 SourceSecurityID=1001',
    '10.244.1.20:8080 -> 10.96.0.50:80 RevNAT=1',
  ])
  expect(walk.request.steps[0]?.at).toMatchObject({ hook: 'cgroup/connect4', program: 'cil_sock4_connect' })
  expect([back, said('the process sees 10.96.0.50:80')]).toEqual([
    'allowed',
    expect.stringContaining('named the frontend'),
  ])
})

test('S2: sockets translate UDP at sendmsg, and leave SCTP to the packet', () => {
  const config = { 'bpf-lb-sock-hostns-only': 'false' }
  const both = service('business/server', {
    ports: [
      { name: 'u', port: 53, targetPort: 53, protocol: 'UDP' },
      { name: 's', port: 54, targetPort: 54, protocol: 'SCTP' },
      { name: 't', port: 55, targetPort: 56, protocol: 'SCTP' },
    ],
  })
  const { walk } = preparePath([both], { config })
  expect(walk('A', '10.96.0.50:53', { protocol: 'UDP' }).walk.request.steps[0]?.at.hook).toBe('cgroup/sendmsg4')
  const sctp = walk('A', '10.96.0.50:54', { protocol: 'SCTP' })
  expect([sctp.fate, sctp.walk.request.steps[0]?.at.program]).toEqual(['allowed', 'cil_from_container'])
  expect(walk('A', '10.96.0.50:55', { protocol: 'SCTP' }).fate).toBe('154')
})

test('S3: a Service without endpoints is 158, rejected or dropped as the node is set', () => {
  const none = service('business/server', { selector: { app: 'nobody' } })
  const rejected = preparePath([none]).walk('A', '10.96.0.50:80')
  expect([rejected.fate, rejected.walk.request.verdict.kind]).toEqual(['158', 'rejected'])
  const dropped = preparePath([none], { config: { 'service-no-backend-response': 'drop' } }).walk('A', '10.96.0.50:80')
  expect([dropped.fate, dropped.walk.request.verdict.kind]).toEqual(['158', 'dropped'])
  const atSocket = preparePath([none], { config: { 'bpf-lb-sock-hostns-only': 'false' } }).walk('A', '10.96.0.50:80')
  expect([atSocket.fate, atSocket.walk.request.drop]).toEqual(['rejected', undefined])
})

test('S4: a port that the Service has not is no frontend for a pod: the packet goes on to the world', () => {
  const { fate, said, end } = preparePath([server]).walk('A', '10.96.0.50:81')
  expect(fate).toBe('allowed')
  expect(said('identity 2 (world)')).toBeDefined()
  expect(end).toBe('192.168.1.10:43210 → 10.96.0.50:81')
})

const balancer = service(
  'business/server',
  { type: 'LoadBalancer', loadBalancerSourceRanges: ['203.0.113.0/24'], ports: [{ port: 80, targetPort: 8080 }] },
  {},
)
const withAddress: Raw = { ...balancer, status: { loadBalancer: { ingress: [{ ip: '192.0.2.80' }] } } }

test('S5: a port that no Service has at a load balancer’s address is 158 from outside', () => {
  const at = { entryNode: 'node-a' }
  expect(preparePath([withAddress]).walk(client, '192.0.2.80:81', at).fate).toBe('158')
  expect(preparePath([withAddress], { version: '1.17' }).walk(client, '192.0.2.80:81', at).fate).toBe('unknown')
})

test('S6: a ClusterIP is not for the outside: 174', () => {
  expect(preparePath([server]).walk(client, '10.96.0.50:80', { entryNode: 'node-a' }).fate).toBe('174')
  const config = { 'bpf-lb-external-clusterip': 'true' }
  expect(preparePath([server], { config }).walk(client, '10.96.0.50:80', { entryNode: 'node-a', ...toB }).fate).toBe(
    'allowed',
  )
})

test('S7: from outside the source ranges 177, and from inside the cluster allowed', () => {
  const { walk } = preparePath([withAddress])
  const at = { entryNode: 'node-a', ...toB }
  expect(walk(client, '192.0.2.80:80', at).fate).toBe('177')
  expect(walk('203.0.113.9', '192.0.2.80:80', at).fate).toBe('allowed')
  expect(walk('A', '192.0.2.80:80', toB).fate).toBe('allowed')
  const deny: Raw = {
    ...withAddress,
    metadata: { namespace: 'business', name: 'server', annotations: { 'service.cilium.io/src-ranges-policy': 'deny' } },
  }
  const denied = preparePath([deny]).walk
  expect([denied(client, '192.0.2.80:80', at).fate, denied('203.0.113.9', '192.0.2.80:80', at).fate]).toEqual([
    'allowed',
    '177',
  ])
})

test('S8: a pod that reaches itself through a Service does so as 169.254.42.1, past policies that deny all', () => {
  const denyAll = serverPolicy({})
  const { fate, back, walk, backEnd, rows } = preparePath([server, denyAll]).walk('B', '10.96.0.50:80', toB)
  expect([fate, back]).toEqual(['allowed', 'allowed'])
  expect(walk.request.steps.at(-1)?.packet).toMatchObject({
    source: '169.254.42.1:43210',
    destination: '10.244.1.20:8080',
  })
  expect(rows('node-a').filter((row) => row.includes('LBLoopback'))).toHaveLength(2)
  expect(backEnd).toBe('10.96.0.50:80 → 10.244.1.20:43210')
  expect(preparePath([server, denyAll]).walk('B', '10.96.0.50:80', toC).fate).toBe('133')
})

/** B that ends, and still serves. */
const endingB: Raw = {
  ...pod('business/b', { app: 'server' }, { ip: '10.244.1.20', nodeName: 'node-a' }),
  metadata: { namespace: 'business', name: 'b', labels: { app: 'server' }, deletionTimestamp: '2026-01-01T00:00:00Z' },
}

function without(name: string): readonly Raw[] {
  return pathWorld.filter(({ kind, metadata }) => !(kind === 'Pod' && (metadata as Raw).name === name))
}

test('S9: a connection stays with its backend while that one ends, and new ones go elsewhere', () => {
  const state = newState('1.18')
  preparePath([server]).walk('A', '10.96.0.50:80', toB, state)
  const later = preparePath([server, endingB], { world: without('b') })
  const kept = later.walk('A', '10.96.0.50:80', {}, state)
  expect(kept.end).toBe('10.244.1.10:43210 → 10.244.1.20:8080')
  expect(kept.said('though that one ends')).toBeDefined()
  expect(later.walk('A', '10.96.0.50:80', {}).end).toBe('10.244.1.10:43210 → 10.244.2.30:8080')
})

test('S10: a connection whose backend is gone gets another one', () => {
  const state = newState('1.18')
  preparePath([server]).walk('A', '10.96.0.50:80', toC, state)
  const again = preparePath([server], { world: without('c') }).walk('A', '10.96.0.50:80', {}, state)
  expect(again.end).toBe('10.244.1.10:43210 → 10.244.1.20:8080')
  expect(again.said('is gone: another one is chosen')).toBeDefined()
})

test('S11: through a node port to a pod of the node policy sees the world, and its rule for clients denies it', () => {
  const denied = preparePath([nodePort, fromClient]).walk(client, '192.168.1.10:30080', { sourcePort: 50000, ...toB })
  expect(denied.fate).toBe('133')
  expect(denied.walk.request.verdict.because[0].sentence).toContain('from world (identity 2)')
  const allowed = preparePath([nodePort, fromWorld]).walk(client, '192.168.1.10:30080', { sourcePort: 50000, ...toB })
  expect([allowed.fate, allowed.back]).toEqual(['allowed', 'allowed'])
  expect([allowed.end, allowed.backEnd]).toEqual([
    '198.51.100.7:50000 → 10.244.1.20:8080',
    '192.168.1.10:30080 → 198.51.100.7:50000',
  ])
})

test('S12: by SNAT and native routing the backend’s node sees a remote node, which `cluster` holds', () => {
  const found = preparePath([nodePort, fromCluster], { config: nativeConfig }).walk(client, '192.168.1.10:30080', {
    sourcePort: 50000,
    ...toC,
  })
  expect([found.fate, found.back]).toEqual(['allowed', 'allowed'])
  expect(found.end).toBe('192.168.1.10:50000 → 10.244.2.30:8080')
  expect(found.backEnd).toBe('192.168.1.10:30080 → 198.51.100.7:50000')
  expect(found.said('from remote-node (identity 6)')).toBeDefined()
})

test('S13: by SNAT through the tunnel it sees the world, which `cluster` does not hold', () => {
  const found = preparePath([nodePort, fromCluster]).walk(client, '192.168.1.10:30080', { sourcePort: 50000, ...toC })
  expect(found.fate).toBe('133')
  expect(found.walk.request.verdict.because[0].sentence).toContain('from world')
  const open = preparePath([nodePort, fromWorld]).walk(client, '192.168.1.10:30080', { sourcePort: 50000, ...toC })
  expect([open.fate, open.back, open.end]).toEqual(['allowed', 'allowed', '10.244.1.1:50000 → 10.244.2.30:8080'])
  expect(open.backEnd).toBe('192.168.1.10:30080 → 198.51.100.7:50000')
})

test('S14: by DSR the backend sees the client, and answers it itself', () => {
  const config = { ...nativeConfig, 'bpf-lb-mode': 'dsr' }
  const asked = { sourcePort: 50000, ...toC }
  expect(preparePath([nodePort, fromCluster], { config }).walk(client, '192.168.1.10:30080', asked).fate).toBe('133')
  const open = preparePath([nodePort, fromWorld], { config }).walk(client, '192.168.1.10:30080', asked)
  expect([open.fate, open.back]).toEqual(['allowed', 'allowed'])
  expect([open.end, open.backEnd]).toEqual([
    '198.51.100.7:50000 → 10.244.2.30:8080',
    '192.168.1.10:30080 → 198.51.100.7:50000',
  ])
  expect(open.walk.reply?.steps.map(({ at }) => at.node)).not.toContain('node-a')
  expect(open.rows('node-b')[0]).toContain('DSR')
})

test('S14: by Geneve the address travels in an option, with a tunnel of Geneve too, and not with one of VXLAN', () => {
  const config = { 'bpf-lb-mode': 'dsr', 'bpf-lb-dsr-dispatch': 'geneve', 'tunnel-protocol': 'geneve' }
  const asked = { sourcePort: 50000, ...toC }
  const open = preparePath([nodePort, fromWorld], { config }).walk(client, '192.168.1.10:30080', asked)
  expect([open.fate, open.back, open.backEnd]).toEqual([
    'allowed',
    'allowed',
    '192.168.1.10:30080 → 198.51.100.7:50000',
  ])
  const wrong = { 'bpf-lb-mode': 'dsr', 'bpf-lb-dsr-dispatch': 'geneve' }
  const refused = preparePath([nodePort, fromWorld], { config: wrong }).walk(client, '192.168.1.10:30080', asked)
  expect(refused.fate).toBe('unknown')
})

test('S15: hybrid sends TCP by DSR and UDP by SNAT', () => {
  const config = { ...nativeConfig, 'bpf-lb-mode': 'hybrid' }
  const both = service('business/server', {
    type: 'NodePort',
    ports: [
      { name: 't', port: 80, targetPort: 8080, nodePort: 30080 },
      { name: 'u', port: 80, targetPort: 8080, nodePort: 30080, protocol: 'UDP' },
    ],
  })
  const { walk } = preparePath([both], { config })
  expect(walk(client, '192.168.1.10:30080', toC).end).toBe('198.51.100.7:43210 → 10.244.2.30:8080')
  expect(walk(client, '192.168.1.10:30080', { protocol: 'UDP', ...toC }).end).toBe(
    '192.168.1.10:43210 → 10.244.2.30:8080',
  )
})

test('S16: with affinity a client gets the same backend again, and another one when that is gone', () => {
  const sticky = service('business/server', { sessionAffinity: 'ClientIP' })
  const state = newState('1.18')
  const net = preparePath([sticky])
  expect(net.walk('A', '10.96.0.50:80', toC, state).end).toBe('10.244.1.10:43210 → 10.244.2.30:8080')
  const again = net.walk('A', '10.96.0.50:80', { sourcePort: 43211, ...toB }, state)
  expect(again.end).toBe('10.244.1.10:43211 → 10.244.2.30:8080')
  expect(again.walk.request.targets).toEqual([{ address: '10.244.2.30:8080', share: 1 }])
  const gone = preparePath([sticky], { world: without('c') }).walk('A', '10.96.0.50:80', { sourcePort: 43212 }, state)
  expect(gone.end).toBe('10.244.1.10:43212 → 10.244.1.20:8080')
})

const maglev = { 'bpf-lb-algorithm': 'maglev', 'bpf-lb-maglev-table-size': '251' }

test('S17: by Maglev a client’s tuple chooses the same backend at two node ports of one number', () => {
  const { walk } = preparePath([nodePort], { config: { ...maglev, ...nativeConfig } })
  const chosen = (sourcePort: number, at: string): string | undefined =>
    walk(client, `${at}:30080`, { sourcePort }).walk.request.targets[0]?.address
  const all = Array.from({ length: 40 }, (_, index) => 50000 + index)
  const atA = all.map((port) => chosen(port, '192.168.1.10'))
  expect(atA).toEqual(all.map((port) => chosen(port, '192.168.1.11')))
  expect(new Set(atA)).toEqual(new Set(['10.244.1.20:8080', '10.244.2.30:8080']))
})

test('traffic policies: from outside only this node’s backends, or 158 where it has none', () => {
  const local = service('business/server', {
    type: 'NodePort',
    externalTrafficPolicy: 'Local',
    ports: [{ port: 80, targetPort: 8080, nodePort: 30080 }],
  })
  const { walk } = preparePath([local])
  expect(walk(client, '192.168.1.10:30080').walk.request.targets).toEqual([{ address: '10.244.1.20:8080', share: 1 }])
  expect(walk(client, '192.168.1.20:30080').fate).toBe('158')
  expect(walk('A', '192.168.1.10:30080').walk.request.targets).toHaveLength(2)
})

test('with acceleration the driver’s program rewrites, and sends to other nodes without the stack', () => {
  const config = { ...nativeConfig, 'bpf-lb-acceleration': 'native' }
  const { walk } = preparePath([nodePort], { config }).walk(client, '192.168.1.10:30080', toC)
  const rewrite = walk.request.steps.find(({ did }) => did === 'rewrote the destination')
  expect(rewrite?.at).toMatchObject({ hook: 'xdp', program: 'cil_xdp_entry' })
  expect(rewrite?.changes?.map(({ by }) => by)).toEqual([
    'written to the frame',
    'written to the frame',
    'bpf_csum_diff',
    'bpf_csum_diff',
  ])
  expect(walk.request.steps.filter(({ did }) => did === 'sent back out by XDP_TX').map(({ at }) => at.hook)).toEqual([
    'xdp',
  ])
  expect(walk.request.steps.some(({ at }) => at.node === 'node-a' && at.hook.startsWith('tc'))).toBe(false)
  const back = walk.reply?.steps.filter(({ at }) => at.node === 'node-a').map(({ at }) => at.hook)
  expect([walk.reply?.verdict.kind, new Set(back)]).toEqual(['allowed', new Set(['xdp'])])
})

test('a local redirect policy keeps a Service’s traffic on the node', () => {
  const redirect: Raw = {
    apiVersion: 'cilium.io/v2',
    kind: 'CiliumLocalRedirectPolicy',
    metadata: { namespace: 'business', name: 'near' },
    spec: {
      redirectFrontend: { serviceMatcher: { serviceName: 'server', namespace: 'business' } },
      redirectBackend: {
        localEndpointSelector: { matchLabels: { app: 'server' } },
        toPorts: [{ port: '9090', protocol: 'TCP' }],
      },
    },
  }
  const config = { 'enable-local-redirect-policy': 'true' }
  const found = preparePath([server, redirect], { config }).walk('A', '10.96.0.50:80')
  expect(found.walk.request.targets).toEqual([{ address: '10.244.1.20:9090', share: 1 }])
  expect(found.said('a local redirect policy sends it to a pod of this node')).toBeDefined()
})

test('where chance sends some connections to another fate, the verdict says which', () => {
  const onlyB = cnp('business/server', { endpointSelector: { matchLabels: { ver: 'v2' } }, ingress: [{}] })
  const { walk } = preparePath([server, onlyB]).walk('A', '10.96.0.50:80')
  expect(walk.request.verdict.kind).toBe('allowed')
  expect(walk.request.verdict.because.map(({ sentence }) => sentence)).toEqual([
    'it reaches business/b on node-a as 10.244.1.20:8080',
    '50.0 % go to 10.244.2.30:8080 instead and are dropped with 133 (Policy denied): no ingress rule of business/c allows TCP port 8080 from business/a (identity 1001)',
  ])
  expect(walk.after.some(({ node }) => node === 'node-b')).toBe(false)
})

test('without --node a load balancer brings in what stays local where an endpoint is', () => {
  const lb = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: 'business', name: 'lb' },
    spec: {
      type: 'LoadBalancer',
      clusterIP: '10.96.0.77',
      externalTrafficPolicy: 'Local',
      selector: { app: 'server', ver: 'v2' },
      ports: [{ port: 80, targetPort: 8080, nodePort: 30077 }],
    },
    status: { loadBalancer: { ingress: [{ ip: '198.18.0.9' }] } },
  }
  const { walk } = preparePath([lb])
  const found = walk('198.51.100.7', '198.18.0.9:80')
  expect([found.walk.request.steps[0]?.did, found.end]).toEqual([
    'comes in at node-b',
    '198.51.100.7:43210 → 10.244.2.30:8080',
  ])
  expect(found.said('asks for the health of nodes')).toBeDefined()
  expect(walk('198.51.100.7', '198.18.0.9:80', { entryNode: 'node-a' }).walk.request.drop?.number).toBe(158)
  const spread = preparePath([{ ...lb, spec: { ...lb.spec, externalTrafficPolicy: 'Cluster' } }])
  expect(spread.walk('198.51.100.7', '198.18.0.9:80').walk.request.steps[0]?.did).toBe('comes in at node-a')
})
