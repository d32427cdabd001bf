/** Options of path: what repeats, and values that are told instead of passed over. */

import { expect, test } from 'vitest'
import { runWords } from '../../test/run-words'
import type { Captured } from './capture'

function path(...words: readonly string[]): Promise<Captured> {
  return runWords(['path', '--from', 'samples/cilium', ...words])
}

test('devices of several nodes are given one by one', async () => {
  const devices = ['--device', 'node-gw:eth1=203.0.113.10', '--device', 'node-gw:eth0=192.168.1.20']
  const { code, out } = await path('business/a', '8.8.8.8:443', ...devices)
  expect([code, out.split('\n')[1]]).toEqual([
    0,
    'ALLOWED  it leaves the cluster for 8.8.8.8:443 as 203.0.113.10:43210',
  ])
})

test.each(['cilium', 'iptables', 'nftables'])(
  '%s: a backend that is none of the Service’s is told',
  async (datapath) => {
    const { err } = await path('business/a', 'business/svc/server', '--datapath', datapath, '--backend', '10.9.9.9:80')
    expect(err).toContain('10.244.1.20:8080 and 10.244.2.30:8080')
    expect(err).toContain('[path.backend-unmet]')
    const met = await path('business/a', 'business/svc/server', '--datapath', datapath, '--backend', '10.244.2.30:8080')
    expect(met.err).not.toContain('path.backend-unmet')
  },
)

test.each([
  ['--time', 'garbage'],
  ['--time', '2026-13-02T09:14:05Z'],
  ['--backend', 'garbage'],
  ['--backend', '10.244.1.20'],
  ['--backend', '10.244.1.20:70000'],
])('%s %s is refused', async (option, value) => {
  const { code, err } = await path('business/a', 'business/b:8080', option, value)
  expect(code).toBe(2)
  expect(err).toContain(value)
})

test.each([
  ['--state', 'node-z=/dev/null'],
  ['--device', 'node-z:eth0=192.0.2.1'],
])('%s of a node that the input does not have is refused', async (option, value) => {
  const { code, err } = await path('business/a', 'business/b:8080', option, value)
  expect([code, err]).toEqual([
    2,
    `portolan: no Node is named "node-z": the input has node-a, node-b and node-gw; name one of them with ${option}\n`,
  ])
})

test('a cluster without settings of Cilium: which datapath was taken, and how to choose another', async () => {
  const words = ['path', '--from', 'samples/shop', 'shop/web', 'shop/svc/checkout']
  const { err } = await runWords(words)
  expect(err).toMatch(/where the nodes run kube-proxy, add --datapath iptables or nftables \[maps\.no-config\]/)
  expect((await runWords([...words, '--datapath', 'iptables'])).err).not.toContain('maps.no-config')
})

test.each([
  ['b:8080', 'TCP 10.244.1.10:43210 → 10.244.1.20:8080'],
  ['b:web', 'TCP 10.244.1.10:43210 → 10.244.1.20:8080'],
  ['pod/b:8080', 'TCP 10.244.1.10:43210 → 10.244.1.20:8080'],
  ['svc/server', 'TCP 10.244.1.10:43210 → 10.96.0.50:80'],
])('TARGET %s is looked for in SOURCE’s namespace', async (target, packet) => {
  const { code, out } = await path('business/a', target)
  expect([code, out.split('\n')[0]]).toEqual([0, `business/a → ${target}, ${packet}`])
})

test('SOURCE’s namespace comes before that of --namespace, which is asked next', async () => {
  const { code, err } = await path('business/a', 'b:8080', '--namespace', 'kube-system')
  expect([code, err]).toEqual([0, ''])
  const other = await path('8.8.8.8', 'b:8080', '--namespace', 'business')
  expect(other.out).toContain('→ 10.244.1.20:8080')
})

test.each([
  ['business/a', 'server:80', 'TARGET business/server is no pod but a Service; write business/svc/server'],
  ['business/a', 'nobody:80', 'TARGET business/nobody: no Pod has that name: there are business/a, business/b and'],
  ['business/a', 'B:80', 'TARGET business/B: no Pod has that name: there is business/b'],
  ['business/a', 'node-a:22', 'no Pod has that name; of a node write node/node-a'],
  ['business/a', 'Node-A:22', 'of a node write node/node-a'],
  ['business/a', 'node/NODE-A:22', 'TARGET node/NODE-A: no Node has that name: there is node-a'],
  ['business/a', 'google.com:443', 'names of the DNS are not looked up: write the address'],
  ['business/a', 'http://b:8080', 'TARGET: "http://b:8080" is a URL'],
  ['business/a:80', 'business/b:8080', 'SOURCE: "business/a:80" has a port; write business/a, and --sport 80'],
  [
    'business/a',
    'srv:8080:1',
    'TARGET: "srv:8080:1" is neither a name nor an address; write NAME:PORT, ADDRESS:PORT or',
  ],
  ['business/a', 'business/b:', 'TARGET business/b: ends in a colon'],
  ['business/a', 'business/b:8080/udp', 'port 8080/udp tells the protocol; write 8080, and --proto udp'],
  ['business/a', 'fd00::1:80', 'an address of IPv6 has its port behind brackets: [fd00::1]:80'],
  ['business/a', '', 'TARGET is empty; write one of NS/POD'],
  ['business/a', 'business/b:http', 'business/b has no port "http" over TCP: it has web 8080/TCP'],
])('%s to %s is refused with what would be taken', async (source, target, words) => {
  const { code, err } = await path(source, target)
  expect([code, err]).toEqual([2, expect.stringContaining(words)])
})

const error = ['203.0.113.1', '192.168.1.10', '--proto', 'icmp', '--port', '3/3']
const state = ['--state', 'node-a=samples/path/node-a.nat']

test.each([
  'tcp,192.168.1.10:34567,8.8.8.8:443',
  'TCP 192.168.1.10:34567 -> 8.8.8.8:443',
  'TCP OUT 192.168.1.10:34567 -> 8.8.8.8:443',
  'tcp, 192.168.1.10:34567 → 8.8.8.8:443',
])('--about %s is a packet', async (about) => {
  const { out } = await path(...error, '--about', about, ...state)
  expect(out.split('\n')[0]).toBe(
    '203.0.113.1 → 192.168.1.10, ICMP type 3 code 3 203.0.113.1 → 192.168.1.10, about TCP 192.168.1.10:34567 → 8.8.8.8:443',
  )
})

test.each([
  ['icmp,192.168.1.10:7,8.8.8.8', 'ICMP id 7 192.168.1.10 → 8.8.8.8'],
  ['icmp,192.168.1.10,8.8.8.8:7', 'ICMP id 7 192.168.1.10 → 8.8.8.8'],
  ['icmp,192.168.1.10,8.8.8.8', 'ICMP id 43210 192.168.1.10 → 8.8.8.8'],
])('--about %s is an echo', async (about, inside) => {
  const { out } = await path(...error, '--about', about)
  expect(out.split('\n')[0]).toContain(`about ${inside}`)
})

test('an error that goes to somebody else than the sender of what it is about is told', async () => {
  const { out } = await path(...error, '--about', 'tcp,8.8.8.8:443,192.168.1.10:34567')
  expect(out).toContain('an error goes to whoever sent what it is about, which is 8.8.8.8 here, and not 192.168.1.10')
})

test.each(['tcp,192.168.1.10,8.8.8.8:443', 'tcp', 'icmp,8.8.8.8', 'foo,1.1.1.1:1,2.2.2.2:2', 'tcp,a:1,b:2'])(
  '--about %s is refused',
  async (about) => {
    expect((await path(...error, '--about', about)).code).toBe(2)
  },
)

test('nobody answers an error', async () => {
  const { code, out } = await path('business/a', 'business/c', '--proto', 'icmp', '--port', '3', '--reply')
  expect(code).toBe(0)
  expect(out).toContain('nobody answers ICMP type 3: --reply has nothing to walk')
  expect(out).not.toContain('the answer back')
})

test('the address of a node’s router is the node’s: its packets come through the tunnel', async () => {
  const { out } = await path('10.244.2.1', 'business/b:8080')
  expect(out).toContain('encapsulated')
  expect(out).toContain('from remote-node (identity 6)')
  expect(out).not.toContain('outside the cluster')
})

test('a state of a node in another case, and one of the kernel’s, are told for what they are', async () => {
  const wrong = await path('business/a', 'business/b:8080', '--state', 'NODE-A=samples/path/node-a.nat')
  expect([wrong.code, wrong.err]).toEqual([2, expect.stringContaining('no Node is named "NODE-A"')])
  const kernel = await path('business/a', 'business/b:8080', '--state', 'node-a=samples/path/node-a.conntrack')
  expect(kernel.err).toContain('such tables are printed by cilium-dbg bpf ct list global and bpf nat list')
})

test('-o hubble has the code of an error, and its name', async () => {
  const { out } = await path(...error, '--about', 'tcp,192.168.1.10:34567,8.8.8.8:443', ...state, '-o', 'hubble')
  const rows = out
    .trim()
    .split('\n')
    .map((row) => JSON.parse(row).flow)
  expect(rows.map(({ l4 }) => l4.ICMPv4)).toEqual(rows.map(() => ({ type: 3, code: 3 })))
  expect(rows[0].Summary).toBe('ICMPv4 DestinationUnreachable(Port)')
})

test('a ping of the wrong family is refused with the right one, and a node’s kernel answers it', async () => {
  const wrong = await path('2001:db8::9', 'fc00::1', '--proto', 'icmp')
  expect([wrong.code, wrong.err]).toEqual([2, expect.stringMatching(/no addresses of IPv4.*; add --proto icmpv6/)])
  const ping = await path('business/a', 'node/node-b', '--proto', 'icmp')
  expect(ping.out).toContain('it reaches the node node-b itself as 192.168.1.11, whose kernel answers it')
})
