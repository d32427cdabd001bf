/** Masquerading and reverse NAT: cases N1 to N10 of the sheet. */
import { expect, test } from 'vitest'
import { egressPolicy } from '../../../test/cilium/ask-maps'
import { askedIp, nativeConfig, preparePath } from '../../../test/cilium/ask-path'
import { newState, putNat } from './state-tables'

test('N1: to the internet the pod leaves as its node, and its port is kept', () => {
  const { fate, back, end, backEnd, rows } = preparePath([]).walk('A', '8.8.8.8:443', { sourcePort: 34567 })
  expect([fate, back]).toEqual(['allowed', 'allowed'])
  expect([end, backEnd]).toEqual(['192.168.1.10:34567 → 8.8.8.8:443', '8.8.8.8:443 → 10.244.1.10:34567'])
  expect(rows('node-a').slice(1)).toEqual([
    'TCP OUT 10.244.1.10:34567 -> 8.8.8.8:443 XLATE_SRC 192.168.1.10:34567 NeedsCT=0',
    'TCP IN 8.8.8.8:443 -> 192.168.1.10:34567 XLATE_DST 10.244.1.10:34567 NeedsCT=0',
  ])
})

test('N1: a port below the range is drawn anew, and one that is taken is tried again', () => {
  const low = preparePath([]).walk('A', '8.8.8.8:443', { sourcePort: 20000 })
  const drawn = Number(/192\.168\.1\.10:(\d+) →/.exec(low.end)?.[1])
  expect(drawn).toBeGreaterThanOrEqual(32768)
  expect(low.said('is drawn at random')).toBeDefined()
  expect(low.backEnd).toBe('8.8.8.8:443 → 10.244.1.10:20000')
})

test('N1: until 1.16 HostLocal stands where NeedsCT does since', () => {
  const { rows } = preparePath([], { version: '1.16' }).walk('A', '8.8.8.8:443')
  expect(rows('node-a')[1]).toContain('HostLocal=0')
})

test('M23 and M24: of two pods with one port the second gets another one towards the same server, and keeps it towards another', () => {
  const state = newState('1.18')
  const { walk } = preparePath([])
  expect(walk('A', '8.8.8.8:443', { sourcePort: 40000 }, state).end).toBe('192.168.1.10:40000 → 8.8.8.8:443')
  const second = walk('B', '8.8.8.8:443', { sourcePort: 40000 }, state)
  const port = Number(/192\.168\.1\.10:(\d+) →/.exec(second.end)?.[1])
  expect(port === 40000 || port < 32768).toBe(false)
  expect(second.said('port 40000 is taken')).toBeDefined()
  expect(second.backEnd).toBe('8.8.8.8:443 → 10.244.1.20:40000')
  expect(walk('B', '8.8.4.4:443', { sourcePort: 40000 }, state).end).toBe('192.168.1.10:40000 → 8.8.4.4:443')
})

test('N2: to another node through which a tunnel runs the pod is masqueraded', () => {
  expect(preparePath([]).walk('A', 'node-b:443').end).toBe('192.168.1.10:43210 → 192.168.1.11:443')
})

test('N3: with native routing it keeps its address', () => {
  const found = preparePath([], { config: nativeConfig }).walk('A', 'node-b:443')
  expect([found.end, found.back]).toEqual(['10.244.1.10:43210 → 192.168.1.11:443', 'allowed'])
  expect(found.said('the destination is a node')).toBeDefined()
})

const agent = { 'enable-ip-masq-agent': 'true' }

function masqConfig(config: string) {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'kube-system', name: 'ip-masq-agent' },
    data: { config },
  }
}

test('N4: with ip-masq-agent private ranges keep the pod’s address', () => {
  const { walk } = preparePath([], { config: agent })
  expect(walk('A', '172.20.0.1:80').end).toBe('10.244.1.10:43210 → 172.20.0.1:80')
  expect(walk('A', '8.8.8.8:80').end).toBe('192.168.1.10:43210 → 8.8.8.8:80')
})

test('N5: and so do the ranges of documentation', () => {
  expect(preparePath([], { config: agent }).walk('A', '203.0.113.99:80').end).toBe(
    '10.244.1.10:43210 → 203.0.113.99:80',
  )
})

test('N6: link-local destinations keep it unless the agent masks them', () => {
  expect(preparePath([], { config: agent }).walk('A', '169.254.169.254:80').end).toBe(
    '10.244.1.10:43210 → 169.254.169.254:80',
  )
  const masked = preparePath([masqConfig('masqLinkLocal: true')], { config: agent })
  expect(masked.walk('A', '169.254.169.254:80').end).toBe('192.168.1.10:43210 → 169.254.169.254:80')
})

test('N7: an answer to the outside keeps the pod’s address', () => {
  const { back, backEnd, said } = preparePath([], { config: nativeConfig }).walk('198.51.100.7', 'B:8080')
  expect([back, backEnd]).toEqual(['allowed', '10.244.1.20:8080 → 198.51.100.7:43210'])
  expect(said('it is an endpoint’s answer')).toBeDefined()
})

test('N8: once all ports towards one server are taken, connections are dropped with 167', () => {
  const state = newState('1.18')
  const node = state.of('node-a')
  const ends = {
    protocol: 'TCP',
    source: askedIp('8.8.8.8'),
    sourcePort: 443,
    destination: askedIp('192.168.1.10'),
  } as const
  for (let port = 32768; port <= 65535; port++) {
    const to = { ip: askedIp('10.244.1.20'), port }
    putNat(node, { ...ends, port, direction: 'IN', to, needsCt: false })
  }
  const { walk } = preparePath([])
  const full = walk('A', '8.8.8.8:443', {}, state)
  expect(full.fate).toBe('167')
  expect(full.walk.request.verdict.because[0].sentence).toContain('share 32768 ports')
  expect(walk('A', '8.8.8.8:80', {}, state).fate).toBe('allowed')
})

test('N9: what answers no translated connection goes to the host, and is no drop', () => {
  const found = preparePath([]).walk('8.8.8.8', '192.168.1.10:40500', { sourcePort: 443 })
  expect([found.fate, found.points.at(-1)]).toEqual(['allowed', 'to-host'])
  expect(found.said('no mapping')).toBeDefined()
})

test('N10: below the range nothing is looked for', () => {
  const found = preparePath([]).walk('8.8.8.8', '192.168.1.10:22')
  expect([found.fate, found.points.at(-1)]).toEqual(['allowed', 'to-host'])
  expect(found.said('skipped reverse NAT')).toBeDefined()
  const asked = found.walk.request.steps.flatMap(({ lookups = [] }) => lookups).map(({ map }) => map)
  expect(asked).not.toContain('cilium_snat_v4_external')
})

test('masquerading by iptables keeps its state in the kernel, and the answer finds it there', () => {
  const config = { 'enable-bpf-masquerade': 'false' }
  const { end, back, backEnd, rows } = preparePath([], { config }).walk('A', '8.8.8.8:443')
  expect([end, back, backEnd]).toEqual([
    '192.168.1.10:43210 → 8.8.8.8:443',
    'allowed',
    '8.8.8.8:443 → 10.244.1.10:43210',
  ])
  expect(rows('node-a').at(-1)).toBe('tcp 8.8.8.8:443 -> 192.168.1.10:43210 back to 10.244.1.10:43210')
})

test('without masquerading the pod’s address leaves the cluster', () => {
  const config = { 'enable-ipv4-masquerade': 'false' }
  expect(preparePath([], { config }).walk('A', '8.8.8.8:443').end).toBe('10.244.1.10:43210 → 8.8.8.8:443')
})

/** What the node of A's packets sends on, as a router on the way met it. */
const aboutA = {
  protocol: 'TCP',
  source: askedIp('192.168.1.10'),
  sourcePort: 34567,
  destination: askedIp('8.8.8.8'),
  port: 443,
} as const

test.each(['1.16', '1.17', '1.18', '1.19'] as const)(
  '%s: that a packet is too big is told to the pod behind the translation',
  (version) => {
    const state = newState(version)
    const { walk } = preparePath([], { version })
    walk('A', '8.8.8.8:443', { sourcePort: 34567 }, state)
    const error = { protocol: 'ICMP', icmpType: 3, about: aboutA, isReplyWanted: false } as const
    const found = walk('203.0.113.1', '192.168.1.10', error, state)
    expect([found.fate, found.walk.request.steps.at(-1)?.did, found.walk.request.steps.at(-1)?.packet]).toEqual([
      'allowed',
      'delivered',
      {
        protocol: 'ICMP type 3',
        about: 'TCP 10.244.1.10:34567 → 8.8.8.8:443',
        source: '203.0.113.1',
        destination: '10.244.1.10',
      },
    ])
    expect(found.walk.after.map(({ row }) => row)).toContain(
      'ICMP IN 203.0.113.1:0 -> 10.244.1.10:0 related Flags=0x0000 [ ] RevNAT=0 SourceSecurityID=2',
    )
    const step = found.walk.request.steps.find(({ did }) => did === 'translated the error back')
    expect(step?.lookups?.map(({ map, key }) => `${map} ${key}`)).toEqual([
      'cilium_snat_v4_external TCP IN 8.8.8.8:443 -> 192.168.1.10:34567',
    ])
    expect(step?.changes?.map(({ field }) => field)).toEqual(['destination address', 'IPv4 checksum', 'source inside'])
  },
)

test('an error about the node’s own packets is the node’s', () => {
  const state = newState('1.18')
  const { walk } = preparePath([])
  walk('A', '8.8.8.8:443', { sourcePort: 34567 }, state)
  const error = { protocol: 'ICMP', icmpType: 3, isReplyWanted: false } as const
  const own = walk('203.0.113.1', '192.168.1.10', { ...error, about: { ...aboutA, sourcePort: 40000 } }, state)
  expect([own.fate, own.points.at(-1), own.said('is no translated connection')]).toEqual([
    'allowed',
    'to-host',
    expect.stringContaining('TCP 192.168.1.10:40000 → 8.8.8.8:443'),
  ])
  const untold = walk('203.0.113.1', '192.168.1.10', error, state)
  expect([untold.points.at(-1), untold.said('is not told (--about)')]).toEqual(['to-host', expect.anything()])
})

test('through an egress gateway the error goes back to the pod’s node', () => {
  const state = newState('1.18')
  const { walk } = preparePath([egressPolicy()])
  walk('A', '8.8.8.8:443', { sourcePort: 34567 }, state)
  const about = { ...aboutA, source: askedIp('203.0.113.10') }
  const error = { protocol: 'ICMP', icmpType: 3, about, isReplyWanted: false } as const
  const found = walk('203.0.113.1', '203.0.113.10', error, state)
  expect([found.fate, found.end]).toEqual(['allowed', '203.0.113.1 → 10.244.1.10'])
  expect(new Set(found.walk.request.steps.flatMap(({ at }) => at.node ?? []))).toEqual(new Set(['node-gw', 'node-a']))
})
