/** Errors of ICMP between kube-proxy nodes; test/kernel/journey-errors.test.ts holds the same to the kernel. */
import { expect, test } from 'vitest'
import { parseEndpoint } from '#base/ip'
import type { WalkInner } from '#model/walk'
import { type AskWalk, walk, world } from '../../../test/journey/ask-journey'
import { parseConntrackLines } from '../conntrack-entry'

function inner(text: string, protocol: WalkInner['protocol'] = 'TCP'): WalkInner {
  const [source, destination] = text.split(' ').map((end) => parseEndpoint(end))
  if (source?.port === undefined || destination?.port === undefined) throw new Error(`${text} is no packet`)
  const { ip, port } = destination
  return { protocol, source: source.ip, sourcePort: source.port, destination: ip, port }
}

const rows =
  'tcp 6 431999 ESTABLISHED src=10.244.1.10 dst=10.96.0.50 sport=40000 dport=80 src=10.244.2.30 dst=10.244.1.10 sport=8080 dport=40000 [ASSURED] mark=0 use=1\n' +
  'icmp 1 29 src=10.244.1.10 dst=8.8.8.8 type=8 code=0 id=7 src=8.8.8.8 dst=192.168.1.1 type=0 code=0 id=7 mark=0 use=1'
const conntrack = new Map([['n1', parseConntrackLines(rows).entries]])
const error: AskWalk = { protocol: 'ICMP', icmpType: 3, icmpCode: 3, isReplyWanted: false }

function ask(
  source: string,
  target: string,
  about: WalkInner | undefined,
  datapath: 'iptables' | 'nftables' = 'iptables',
) {
  const one = world({ datapath, setting: { conntrack } })
  return walk(one, source, target, { ...error, ...(about !== undefined && { about }) })
}

test.each(['iptables', 'nftables'] as const)(
  '%s: from a router on the way it comes from the Service, as an answer would',
  (datapath) => {
    const { request, before, after, reply } = ask(
      '192.168.1.254',
      '10.244.1.10',
      inner('10.244.1.10:40000 10.244.2.30:8080'),
      datapath,
    )
    expect([request.verdict.kind, request.steps.at(-1)?.packet, reply]).toEqual([
      'allowed',
      {
        protocol: 'ICMP type 3 code 3',
        source: '10.96.0.50',
        destination: '10.244.1.10',
        about: 'TCP 10.244.1.10:40000 → 10.96.0.50:80',
      },
      undefined,
    ])
    expect(after).toEqual(before)
    const changed = request.steps.flatMap(({ changes = [] }) => changes.map(({ field }) => field))
    expect(changed).toEqual(['source', 'destination inside'])
    expect(request.steps.at(-1)?.because).toBe('policies let errors about a connection through')
  },
)

test('about a masqueraded ping it goes on to the pod, by the identifier inside', () => {
  const { request } = ask('203.0.113.1', '192.168.1.1', inner('192.168.1.1:7 8.8.8.8:0', 'ICMP'))
  expect([request.verdict.kind, request.steps.at(-1)?.packet]).toEqual([
    'allowed',
    {
      protocol: 'ICMP type 3 code 3',
      source: '203.0.113.1',
      destination: '10.244.1.10',
      about: 'ICMP id 7 10.244.1.10 → 8.8.8.8',
    },
  ])
})

test.each([
  ['nothing is told', undefined],
  ['nobody tracks it', inner('10.244.1.10:41000 10.244.2.30:8080')],
  ['somebody else sent it', inner('10.244.1.11:40000 10.244.2.30:8080')],
])('where %s of what it is about it is INVALID, and no row is left', (_, about) => {
  const { request, after } = ask('192.168.1.254', '10.244.1.10', about)
  expect([request.verdict.kind, request.verdict.because[0].rule]).toEqual([
    'dropped',
    expect.stringContaining('--ctstate INVALID -j DROP'),
  ])
  expect(after.filter(({ isNew }) => isNew)).toEqual([])
  expect(request.steps.find(({ at }) => at.hook === 'PREROUTING')?.because).toContain('INVALID to the rules')
  const other = ask('192.168.1.254', '10.244.1.10', about, 'nftables')
  expect([other.request.verdict.kind, other.after.filter(({ isNew }) => isNew)]).toEqual(['allowed', []])
})

test('an error of a pod that nobody tracks leaves under the pod’s address', () => {
  const { request } = ask('shop/c', '8.8.8.8', undefined, 'nftables')
  expect([request.verdict.kind, request.steps.at(-1)?.packet.source]).toEqual(['allowed', '10.244.2.30'])
})

test('a ping to a node is answered by its kernel, where no process listens', () => {
  const one = world()
  const ping = walk(one, 'shop/a', '192.168.1.2', { protocol: 'ICMP' })
  expect(ping.request.verdict.because[0].sentence).toBe('delivered to node n2, whose kernel answers it')
  expect(ping.reply?.verdict.kind).toBe('allowed')
})
