/** Errors of ICMP, by release, code and direction: nat.h's snat_v4_nat and snat_v4_rev_nat. */
import { expect, test } from 'vitest'
import type { CiliumVersion } from '#model/cilium-version'
import { askedIp, nativeConfig, type PathPacket, preparePath } from '../../../test/cilium/ask-path'
import { newState } from './state-tables'

const ends = { protocol: 'TCP', source: askedIp('192.168.1.10'), destination: askedIp('8.8.8.8') } as const
/** As a router met it, and as the pod meets its answer. */
const sent = { ...ends, sourcePort: 34567, port: 443 } as const
const answered = {
  protocol: 'TCP',
  source: askedIp('8.8.8.8'),
  sourcePort: 443,
  destination: askedIp('10.244.1.10'),
  port: 34567,
} as const

function afterRequest(version: CiliumVersion, objects: Parameters<typeof preparePath>[0] = []) {
  const state = newState(version)
  const { walk } = preparePath(objects, { version })
  walk('A', '8.8.8.8:443', { sourcePort: 34567 }, state)
  return (from: string, to: string, packet: PathPacket) =>
    walk(from, to, { protocol: 'ICMP', isReplyWanted: false, ...packet }, state)
}

test.each([
  ['1.16', 3, 3, 'to-host'],
  ['1.16', 3, 4, 'to-endpoint'],
  ['1.17', 3, 3, 'to-endpoint'],
  ['1.17', 3, 16, 'to-host'],
  ['1.17', 11, 0, 'to-host'],
  ['1.18', 11, 0, 'to-endpoint'],
  ['1.18', 11, 2, 'to-host'],
  ['1.19', 12, 0, 'to-host'],
] as const)('%s: type %i code %i about a translated connection ends %s', (version, icmpType, icmpCode, point) => {
  const { fate, points, walk, said } = afterRequest(version)('203.0.113.1', '192.168.1.10', {
    icmpType,
    icmpCode,
    about: sent,
  })
  expect([fate, points.at(-1)]).toEqual(['allowed', point])
  const isTold = walk.request.verdict.because.some(({ code }) => code === 'cilium.error-untranslated')
  expect(isTold).toBe(point === 'to-host')
  expect(said('passed it on untranslated') !== undefined).toBe(point === 'to-host')
})

test.each([
  ['1.16', 3, 3, '143'],
  ['1.16', 3, 4, 'allowed'],
  ['1.16', 11, 0, '168'],
  ['1.17', 3, 3, 'allowed'],
  ['1.17', 11, 0, '168'],
  ['1.18', 11, 0, 'allowed'],
  ['1.18', 11, 7, '143'],
  ['1.18', 12, 0, '168'],
  ['1.18', 13, 0, '168'],
] as const)(
  '%s: type %i code %i that a pod sends about its translated connection is %s',
  (version, icmpType, icmpCode, fate) => {
    const found = afterRequest(version)('A', '8.8.8.8', { icmpType, icmpCode, about: answered })
    expect(found.fate).toBe(fate)
    if (fate !== 'allowed') return
    expect(found.walk.request.steps.at(-1)?.packet).toMatchObject({
      source: '192.168.1.10',
      about: 'TCP 8.8.8.8:443 → 192.168.1.10:34567',
    })
    // An error has no mapping of its own.
    expect(found.rows('node-a').filter((row) => row.includes('XLATE') && row.startsWith('ICMP'))).toEqual([])
  },
)

test('an error of a pod about what nobody translated keeps its source, with and without what it is about', () => {
  const send = afterRequest('1.18')
  const about = { ...answered, port: 40000 }
  expect(send('A', '8.8.8.8', { icmpType: 3, about }).end).toBe('10.244.1.10 → 8.8.8.8')
  const untold = send('A', '8.8.8.8', { icmpType: 3 })
  expect([untold.end, untold.said('is not told (--about)')]).toEqual(['10.244.1.10 → 8.8.8.8', expect.anything()])
})

test('an echo inside is found by its identifier, on both ways', () => {
  const state = newState('1.18')
  const { walk } = preparePath([])
  walk('A', '8.8.8.8', { protocol: 'ICMP', sourcePort: 77, isReplyWanted: false }, state)
  const about = { ...sent, protocol: 'ICMP', sourcePort: 77, port: 0 } as const
  const error = { protocol: 'ICMP', icmpType: 11, isReplyWanted: false } as const
  expect(walk('203.0.113.1', '192.168.1.10', { ...error, about }, state).end).toBe('203.0.113.1 → 10.244.1.10')
  const back = { ...answered, protocol: 'ICMP', sourcePort: 77, port: 0 } as const
  expect(walk('A', '8.8.8.8', { ...error, about: back }, state).end).toBe('192.168.1.10 → 8.8.8.8')
})

test('the node’s own errors are dropped by releases that cannot translate them', () => {
  const error = { protocol: 'ICMP', icmpType: 11, isReplyWanted: false } as const
  expect(preparePath([], { version: '1.17' }).walk('node-a', '8.8.8.8', error).fate).toBe('168')
  expect(preparePath([], { version: '1.18' }).walk('node-a', '8.8.8.8', error).fate).toBe('allowed')
})

test('port unreachable from a Service’s backend comes to the client from the Service', () => {
  const objects = [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { namespace: 'business', name: 'dns' },
      spec: { clusterIP: '10.96.0.53', selector: { app: 'server' }, ports: [{ port: 53, protocol: 'UDP' }] },
    },
  ]
  const state = newState('1.18')
  const { walk } = preparePath(objects)
  const backend = '10.244.2.30:53'
  expect(walk('A', '10.96.0.53:53', { protocol: 'UDP', backend, isReplyWanted: false }, state).fate).toBe('allowed')
  const inside = { protocol: 'UDP', source: askedIp('10.244.1.10'), sourcePort: 43210 } as const
  const about = { ...inside, destination: askedIp('10.244.2.30'), port: 53 }
  const error = { protocol: 'ICMP', icmpType: 3, icmpCode: 3, about, isReplyWanted: false } as const
  const found = walk('C', 'A', error, state)
  expect([found.fate, found.end, found.said('is an error about a known connection') !== undefined]).toEqual([
    'allowed',
    '10.96.0.53 → 10.244.1.10',
    true,
  ])
})

test('what a backend of another node says of a translated node port goes back to the node that translated it', () => {
  const state = newState('1.18')
  const { walk } = preparePath([nodePort])
  const backend = '10.244.2.30:8080'
  const request = walk(
    '198.51.100.7',
    '192.168.1.10:30080',
    { backend, entryNode: 'node-a', isReplyWanted: false },
    state,
  )
  expect(request.fate).toBe('allowed')
  const [client = '', target = ''] = request.end.split(' → ')
  const [address = '', port = ''] = client.split(':')
  const inside = { protocol: 'TCP', source: askedIp(address), sourcePort: Number(port) } as const
  const about = { ...inside, destination: askedIp(target.split(':')[0] ?? ''), port: 8080 }
  const error = { protocol: 'ICMP', icmpType: 3, icmpCode: 3, about, isReplyWanted: false } as const
  const found = walk('C', address, error, state)
  expect(found.said('what it is about is a translated connection')).toBeDefined()
  expect(found.walk.request.steps.at(-1)?.packet.destination).toBe('198.51.100.7')
})

const nodePort = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { namespace: 'business', name: 'np' },
  spec: {
    type: 'NodePort',
    clusterIP: '10.96.0.51',
    selector: { app: 'server' },
    ports: [{ port: 80, targetPort: 8080, nodePort: 30080 }],
  },
}

test('to a client outside a pod’s error goes as the pod’s own, as its answers’ translation passes it over', () => {
  const state = newState('1.18')
  const { walk } = preparePath([nodePort])
  const backend = '10.244.1.20:8080'
  expect(walk('198.51.100.7', '192.168.1.10:30080', { backend, isReplyWanted: false }, state).fate).toBe('allowed')
  const inside = { protocol: 'TCP', source: askedIp('198.51.100.7'), sourcePort: 43210 } as const
  const about = { ...inside, destination: askedIp('10.244.1.20'), port: 8080 }
  const error = { protocol: 'ICMP', icmpType: 3, icmpCode: 3, about, isReplyWanted: false } as const
  const found = walk('B', '198.51.100.7', error, state)
  expect([found.fate, found.end]).toEqual(['allowed', '10.244.1.20 → 198.51.100.7'])
  expect(found.said('it is an endpoint’s answer')).toBeDefined()
})

test('fragmentation needed passes before any entry is looked up, and other codes of type 3 do not', () => {
  const deny = {
    apiVersion: 'cilium.io/v2',
    kind: 'CiliumNetworkPolicy',
    metadata: { namespace: 'business', name: 'deny' },
    spec: {
      endpointSelector: { matchLabels: { app: 'server' } },
      ingressDeny: [{ fromEntities: ['all'] }],
    },
  }
  const { walk } = preparePath([deny])
  const error = { protocol: 'ICMP', icmpType: 3, isReplyWanted: false } as const
  expect(walk('A', 'B', error).fate).toBe('allowed')
  expect(walk('A', 'B', { ...error, icmpCode: 4 }).fate).toBe('allowed')
  expect(walk('A', 'B', { ...error, icmpCode: 3 }).fate).toBe('181')
})

test('where the kernel masquerades, it translates errors by the connection that they are about', () => {
  const state = newState('1.18')
  const { walk } = preparePath([], { config: { 'enable-bpf-masquerade': 'false' } })
  walk('A', '8.8.8.8:443', { sourcePort: 34567, isReplyWanted: false }, state)
  const error = { protocol: 'ICMP', icmpType: 3, isReplyWanted: false } as const
  const came = walk('203.0.113.1', '192.168.1.10', { ...error, about: sent }, state)
  expect([came.end, came.walk.request.steps.at(-1)?.packet.about]).toEqual([
    '203.0.113.1 → 10.244.1.10',
    'TCP 10.244.1.10:34567 → 8.8.8.8:443',
  ])
  const gone = walk('A', '8.8.8.8', { ...error, about: answered }, state)
  expect([gone.end, gone.walk.request.steps.at(-1)?.packet.about]).toEqual([
    '192.168.1.10 → 8.8.8.8',
    'TCP 8.8.8.8:443 → 192.168.1.10:34567',
  ])
  expect(walk('A', '8.8.8.8', { ...error, about: { ...answered, port: 1 } }, state).end).toBe('10.244.1.10 → 8.8.8.8')
})

test('nothing answers an error', () => {
  expect(preparePath([], { config: nativeConfig }).walk('A', 'B', { protocol: 'ICMP', icmpType: 3 }).back).toBe('none')
})
