/** Packets between kube-proxy nodes, in both modes: each node’s rules, routing, policies at both ends, and the answer. */
import { describe, expect, test } from 'vitest'
import type { Pod } from '#model/pod'
import { rows, steps, walk, web, world } from '../../../test/journey/ask-journey'
import { networkPolicy, node, pod } from '../../../test/policy/policy-objects'
import { parseConntrackLines } from '../conntrack-entry'

const sentence = (of: ReturnType<typeof walk>) => of.request.verdict.because[0].sentence

describe.each(['iptables', 'nftables'] as const)('%s mode', (datapath) => {
  const plain = world({ datapath })

  test('a pod of the same node is reached by its interface, and its answer comes back', () => {
    const walked = walk(plain, 'shop/a', '10.244.1.20:8080')
    expect(walked.request.verdict.kind).toBe('allowed')
    expect(steps(walked.request).filter((one) => !/(?:ROUTING|FORWARD):/.test(one))).toEqual([
      'n1 shop/a pod: sent',
      'n1 routing: to the pod’s interface',
      'n1 shop/a policy egress: let through',
      'n1 shop/b policy ingress: let through',
      'n1 shop/b pod: delivered',
    ])
    expect(walked.reply?.verdict.because[0].code).toBe('path.answered')
    expect(rows(walked)).toEqual([
      'n1 tcp      6 60 SYN_RECV src=10.244.1.10 dst=10.244.1.20 sport=40000 dport=8080 src=10.244.1.20 dst=10.244.1.10 sport=8080 dport=40000 mark=0 use=1',
    ])
  })

  test('a pod of another node is routed to it, and both nodes track the connection', () => {
    const walked = walk(plain, 'shop/a', '10.244.2.30:8080')
    expect(steps(walked.request)).toContain('n1 routing: to node n2 (192.168.1.2)')
    expect(steps(walked.request).at(-1)).toBe('n2 shop/c pod: delivered')
    expect(steps(walked.reply)).toContain('n2 routing: to node n1 (192.168.1.1)')
    expect(walked.after.map(({ node }) => node)).toEqual(['n1', 'n2'])
  })

  test('a ClusterIP is translated on the sending node, and the answer un-translated there', () => {
    const walked = walk(plain, 'shop/a', '10.96.0.50:80', { backend: '10.244.2.30:8080' })
    expect(steps(walked.request)).toContain('n1 PREROUTING: sent to 10.244.2.30:8080, for 10.96.0.50 (50 %)')
    expect(walked.request.targets).toEqual([
      { address: '10.244.1.20:8080', share: 0.5 },
      { address: '10.244.2.30:8080', share: 0.5 },
    ])
    expect(steps(walked.reply)).toContain('n1 POSTROUTING: source becomes 10.96.0.50:80')
    expect(walked.reply?.verdict.because[0].code).toBe('path.answered')
    expect(rows(walked)).toEqual([
      'n1 tcp      6 60 SYN_RECV src=10.244.1.10 dst=10.96.0.50 sport=40000 dport=80 src=10.244.2.30 dst=10.244.1.10 sport=8080 dport=40000 mark=0 use=1',
      'n2 tcp      6 60 SYN_RECV src=10.244.1.10 dst=10.244.2.30 sport=40000 dport=8080 src=10.244.2.30 dst=10.244.1.10 sport=8080 dport=40000 mark=0 use=1',
    ])
  })

  test('a pod that its own Service sends to itself sees the node as the client, whatever policies say', () => {
    const closed = world({ datapath, objects: [web(), networkPolicy('shop/deny', { podSelector: {}, ingress: [] })] })
    const walked = walk(closed, 'shop/b', '10.96.0.50:80', { backend: '10.244.1.20:8080' })
    const source = walked.request.steps.find(({ at }) => at.hook === 'POSTROUTING')?.packet.source
    expect(source).toMatch(/^192\.168\.1\.1:\d+$/)
    expect(steps(walked.request).at(-1)).toBe('n1 shop/b pod: delivered (50 %)')
    expect(walked.reply?.steps.at(-1)?.packet).toMatchObject({
      source: '10.96.0.50:80',
      destination: '10.244.1.20:40000',
    })
  })

  test('a pod that goes out is hidden behind its node, which is assumed where no rule says so', () => {
    const walked = walk(plain, 'shop/a', '8.8.8.8:443')
    expect(walked.request.targets).toEqual([{ address: '8.8.8.8:443', share: 1 }])
    expect(walked.findings.map(({ code }) => code)).toEqual(['path.assumed-masquerade'])
    expect(rows(walked)).toEqual([
      'n1 tcp      6 60 SYN_RECV src=10.244.1.10 dst=8.8.8.8 sport=40000 dport=443 src=8.8.8.8 dst=192.168.1.1 sport=443 dport=40000 mark=0 use=1',
    ])
    expect(walked.reply?.verdict.because[0].code).toBe('path.answered')
  })

  test('what ip-masq-agent leaves alone keeps the pod’s address', () => {
    const config = 'nonMasqueradeCIDRs: [8.8.8.0/24]'
    const meta = { namespace: 'kube-system', name: 'ip-masq-agent' }
    const agent = { apiVersion: 'v1', kind: 'ConfigMap', metadata: meta, data: { config } }
    const own = world({ datapath, objects: [agent] })
    expect(walk(own, 'shop/a', '8.8.8.8:443').request.steps.at(-1)?.packet.source).toBe('10.244.1.10:40000')
    expect(walk(own, 'shop/a', '8.8.4.4:443').request.steps.at(-1)?.packet.source).toBe('192.168.1.1:40000')
    expect(walk(own, 'shop/a', '8.8.4.4:443').findings).toEqual([])
  })

  test('a node port of a node without a backend goes on to another node, as that node’s own packet', () => {
    const walked = walk(plain, '198.51.100.7', '192.168.1.3:30080', { backend: '10.244.1.20:8080' })
    expect(walked.request.steps.at(-1)?.packet.source).toMatch(/^192\.168\.1\.3:/)
    expect(steps(walked.reply).filter((one) => one.includes('becomes'))).toEqual([
      'n3 PREROUTING: destination becomes 198.51.100.7:40000',
      'n3 POSTROUTING: source becomes 192.168.1.3:30080',
    ])
    expect(walked.reply?.verdict.because[0].code).toBe('path.answered')
  })

  test('with externalTrafficPolicy Local the client keeps its address, and the wrong node drops', () => {
    const local = world({ datapath, objects: [web({ externalTrafficPolicy: 'Local' })] })
    const right = walk(local, '198.51.100.7', '192.168.1.1:30080')
    expect(right.request.steps.at(-1)?.packet).toMatchObject({
      source: '198.51.100.7:40000',
      destination: '10.244.1.20:8080',
    })
    expect(right.reply?.steps.at(-1)?.packet.source).toBe('192.168.1.1:30080')
    const wrong = walk(local, '198.51.100.7', '192.168.1.3:30080')
    expect(wrong.request.verdict.kind).toBe('dropped')
    expect(steps(wrong.request).at(-1)).toBe('n3 INPUT: dropped')
    expect(wrong.reply).toBeUndefined()
    expect(wrong.after).toEqual([])
  })

  test('a load balancer’s address is taken by the node that is named, else by one with a backend where traffic stays local', () => {
    const status = { loadBalancer: { ingress: [{ ip: '203.0.113.9' }] } }
    const balanced = {
      ...web({ type: 'LoadBalancer', externalTrafficPolicy: 'Local', selector: { app: 'web' } }),
      status,
    }
    const one = world({ datapath, objects: [balanced, pod('shop/b', { app: 'other' }, { ip: '10.244.1.20' })] })
    const walked = walk(one, '198.51.100.7', '203.0.113.9:80')
    expect(steps(walked.request)[0]).toBe('world wire: to node n2')
    expect(walked.request.targets).toEqual([{ address: '10.244.2.30:8080', share: 1 }])
    expect(walked.reply?.steps.at(-1)?.packet.source).toBe('203.0.113.9:80')
    expect(walk(one, '198.51.100.7', '203.0.113.9:80', { entryNode: 'n3' }).request.verdict.kind).toBe('dropped')
  })

  test('a client that a node remembers goes where it went before', () => {
    const service = web({ sessionAffinity: 'ClientIP' })
    const first = walk(world({ datapath, objects: [service] }), 'shop/a', '10.96.0.50:80', {
      backend: '10.244.2.30:8080',
    })
    const remembered = first.after.filter(({ table }) => table !== 'conntrack')
    expect(remembered).toHaveLength(1)
    const again = walk(world({ datapath, objects: [service], setting: { remembered } }), 'shop/a', '10.96.0.50:80')
    expect(again.request.targets).toEqual([{ address: '10.244.2.30:8080', share: 1 }])
    const other = walk(world({ datapath, objects: [service], setting: { remembered } }), 'shop/b', '10.96.0.50:80')
    expect(other.request.targets).toHaveLength(2)
  })

  test('a Service without endpoints is rejected, and nothing is remembered of it', () => {
    const walked = walk(world({ datapath, objects: [web({ selector: { app: 'none' } })] }), 'shop/a', '10.96.0.50:80')
    expect(walked.request.verdict.kind).toBe('rejected')
    expect(steps(walked.request).at(-1)).toBe('n1 FORWARD: rejected')
    expect(walked.after).toEqual([])
  })

  test('a process of a node is translated in OUTPUT, and its answer in INPUT', () => {
    const walked = walk(plain, 'node/n1', '10.96.0.50:80')
    expect(steps(walked.request)[1]).toBe('n1 OUTPUT: sent to 10.244.1.20:8080, for 10.96.0.50 (50 %)')
    expect(steps(walked.reply)).toContain('n1 INPUT: source becomes 10.96.0.50:80')
    expect(walked.reply?.verdict.because[0].code).toBe('path.answered')
  })

  test('policies stop it at either end, told with the policy; of two backends one may be closed', () => {
    const only = networkPolicy('shop/web', {
      podSelector: { matchLabels: { app: 'web' } },
      ingress: [{ from: [{ podSelector: { matchLabels: { app: 'web' } } }] }],
    })
    const denied = walk(world({ datapath, objects: [web(), only] }), 'shop/a', '10.96.0.50:80')
    expect(denied.request.verdict.kind).toBe('denied')
    expect(denied.request.verdict.because[0]).toMatchObject({
      code: 'path.policy-denied',
      object: { kind: 'NetworkPolicy', name: 'web' },
    })
    const shut = networkPolicy('shop/out', { podSelector: { matchLabels: { app: 'client' } }, egress: [] })
    const policyTypes = walk(world({ datapath, objects: [web(), shut] }), 'shop/a', '10.244.2.30:8080')
    expect(policyTypes.request.verdict.kind).toBe('allowed')
    const closed = pod('shop/c', { app: 'web', closed: 'yes' }, { ip: '10.244.2.30', nodeName: 'n2' })
    const some = networkPolicy('shop/some', { podSelector: { matchLabels: { closed: 'yes' } }, ingress: [] })
    const half = walk(world({ datapath, objects: [web(), closed, some] }), 'shop/a', '10.96.0.50:80')
    expect(half.request.verdict.kind).toBe('denied')
    expect(half.request.verdict.because.map((one) => one.sentence.split(':')[0])).toEqual([
      '50 % of connections',
      '50 % of connections',
    ])
    expect(half.request.targets).toEqual([{ address: '10.244.1.20:8080', share: 0.5 }])
  })

  test('a connection that is tracked goes on where it went, though nobody is there any more', () => {
    const text =
      'tcp 6 431999 ESTABLISHED src=10.244.1.10 dst=10.96.0.50 sport=40000 dport=80 src=10.244.2.99 dst=10.244.1.10 sport=8080 dport=40000 [ASSURED] mark=0 use=1'
    const conntrack = new Map([['n1', parseConntrackLines(text).entries]])
    const walked = walk(world({ datapath, setting: { conntrack } }), 'shop/a', '10.96.0.50:80')
    expect(walked.request.verdict.because[0].code).toBe('path.no-holder')
    expect(walked.before.map(({ isNew }) => isNew)).toEqual([false])
    expect(sentence(walked)).toContain('10.244.2.99')
  })

  test('an echo request reaches a pod and is answered; a ClusterIP answers none', () => {
    const walked = walk(plain, 'shop/a', '10.244.2.30', { protocol: 'ICMP', sourcePort: 7 })
    expect(walked.reply?.verdict.because[0].code).toBe('path.answered')
    expect(rows(walked)[0]).toBe(
      'n1 icmp     1 30 src=10.244.1.10 dst=10.244.2.30 type=8 code=0 id=7 src=10.244.2.30 dst=10.244.1.10 type=0 code=0 id=7 mark=0 use=1',
    )
    expect(walk(plain, 'shop/a', '10.96.0.50', { protocol: 'ICMP' }).request.verdict.kind).not.toBe('allowed')
  })
})

describe.each(['iptables', 'nftables'] as const)('IPv6, %s mode', (datapath) => {
  const six = (name: string, ip: string, range: string) => ({
    ...node(name, ip),
    spec: { podCIDRs: [range] },
  })
  const objects = [
    six('n1', 'fd00:192::1', 'fd00:10:1::/64'),
    six('n2', 'fd00:192::2', 'fd00:10:2::/64'),
    pod('shop/a', { app: 'client' }, { ip: 'fd00:10:1::a' }),
    pod('shop/b', { app: 'other' }, { ip: 'fd00:10:1::b' }),
    pod('shop/c', { app: 'web' }, { ip: 'fd00:10:2::c', nodeName: 'n2' }),
    web({ clusterIP: 'fd00:96::50', ipFamilies: ['IPv6'] }),
  ]
  const settings = { detectLocal: { kind: 'ClusterCIDR', cidrs: ['fd00:10::/32'] } } as const
  const one = world({ datapath, objects, setting: { settings } })

  test('a ClusterIP and a node port, there and back', () => {
    const inside = walk(one, 'shop/a', '[fd00:96::50]:80')
    expect(inside.request.targets).toEqual([{ address: '[fd00:10:2::c]:8080', share: 1 }])
    expect(inside.reply?.verdict.because[0].code).toBe('path.answered')
    expect(rows(inside)[0]).toBe(
      'n1 tcp      6 60 SYN_RECV src=fd00:10:1::a dst=fd00:96::50 sport=40000 dport=80 src=fd00:10:2::c dst=fd00:10:1::a sport=8080 dport=40000 mark=0 use=1',
    )
    const outside = walk(one, '2001:db8::7', '[fd00:192::1]:30080')
    expect(outside.request.steps.at(-1)?.packet.source).toMatch(/^\[fd00:192::1\]:\d+$/)
    expect(outside.reply?.verdict.because[0].code).toBe('path.answered')
  })
})

test('a port of a ClusterIP that no Service has is lost in iptables mode and rejected in nftables mode', () => {
  const of = (datapath: 'iptables' | 'nftables') => walk(world({ datapath }), 'shop/a', '10.96.0.50:81').request.verdict
  expect(of('iptables')).toMatchObject({ kind: 'dropped', because: [{ code: 'path.no-rule' }] })
  expect(of('nftables').kind).toBe('rejected')
})

test('a pod whose node the input does not tell is an open question', () => {
  const { cluster } = world().setting
  const { nodeName: _, ...lost } = cluster.pods.get('shop/c') as Pod
  const one = world({ setting: { cluster: { ...cluster, pods: new Map(cluster.pods).set('shop/c', lost) } } })
  expect(walk(one, 'shop/a', '10.244.2.30:80').request.verdict).toMatchObject({
    kind: 'unknown',
    because: [{ code: 'path.unknown-node' }],
  })
  expect(walk(one, 'shop/c', '10.244.1.10:80').request.verdict.kind).toBe('unknown')
})

test('an address in a pod range that no pod has ends at that node', () => {
  const { verdict } = walk(world(), 'shop/a', '10.244.2.99:80').request
  expect(verdict).toMatchObject({ kind: 'dropped', because: [{ code: 'path.no-holder' }] })
})

test('what a pod sends to itself stays in it; through its Service it goes out and back', () => {
  const denyAll = networkPolicy('shop/deny', { podSelector: {}, policyTypes: ['Ingress', 'Egress'] })
  const one = world({ objects: [web(), denyAll] })
  for (const target of ['10.244.1.20:8080', '127.0.0.1:8080']) {
    const walked = walk(one, 'shop/b', target)
    expect(walked.request.verdict).toMatchObject({ kind: 'allowed', because: [{ code: 'path.kept-in-pod' }] })
    expect([steps(walked.request), steps(walked.reply), rows(walked)]).toEqual([
      ['n1 shop/b loopback: stayed in the pod'],
      ['n1 shop/b loopback: stayed in the pod'],
      [],
    ])
  }
  const hairpin = walk(one, 'shop/b', '10.96.0.50:80', { backend: '10.244.1.20:8080' })
  expect(steps(hairpin.request)).toContain('n1 shop/b pod: delivered (50 %)')
})

test('what is for many receivers is an open question', () => {
  const { verdict } = walk(world(), 'shop/a', '224.0.0.251:5353', { protocol: 'UDP' }).request
  expect(verdict).toMatchObject({ kind: 'unknown', because: [{ code: 'path.many-receivers' }] })
})

test('policies of Cilium’s are not asked between kube-proxy nodes, and that is told', () => {
  const policy = {
    apiVersion: 'cilium.io/v2',
    kind: 'CiliumNetworkPolicy',
    metadata: { namespace: 'shop', name: 'deny' },
    spec: { endpointSelector: {}, ingress: [{}] },
  }
  const { request, findings } = walk(world({ objects: [web(), policy] }), 'shop/a', '10.244.1.20:8080')
  expect([request.verdict.kind, findings.map(({ code }) => code)]).toEqual(['allowed', ['path.cilium-policies']])
})

test('a hostPort is the network plugin’s, whose rules the input lacks', () => {
  const one = pod('shop/h', { app: 'h' }, { ip: '10.244.1.40' })
  const containers = [{ name: 'main', image: 'h', ports: [{ containerPort: 80, hostPort: 8088 }] }]
  const held = { ...one, spec: { ...(one.spec as object), containers } }
  const asked = world({ objects: [web(), held] })
  expect(walk(asked, '198.51.100.7', '192.168.1.1:8088').request.verdict).toMatchObject({
    kind: 'unknown',
    because: [{ code: 'path.host-port' }],
  })
  expect(walk(asked, '198.51.100.7', '192.168.1.2:8088').request.verdict.kind).toBe('allowed')
})
