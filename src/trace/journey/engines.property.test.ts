/** Both modes of kube-proxy take every packet to the same ends with the same answer, and each end is allowed as the policy evaluator says. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseIp } from '#base/ip'
import { walk, web, world } from '../../../test/journey/ask-journey'
import { networkPolicy, pod } from '../../../test/policy/policy-objects'
import { seedOfRun } from '../../../test/random/random'
import { evaluate } from '../policy/evaluate'
import { partyOfIp } from '../policy/world'

const traffic = fc.constantFrom('Cluster', 'Local')
const cluster = fc.record({
  externalTrafficPolicy: traffic,
  internalTrafficPolicy: traffic,
  hasAffinity: fc.boolean(),
  /** Of the pods b and c, and of another one on the third node. */
  serves: fc.tuple(fc.boolean(), fc.boolean(), fc.boolean()),
  isClosed: fc.boolean(),
  masqueradeAll: fc.boolean(),
})
const packet = fc.record({
  source: fc.constantFrom('shop/a', 'shop/b', 'shop/c', 'node/n1', 'node/n3', '198.51.100.7'),
  target: fc.constantFrom(
    '10.96.0.50:80',
    '192.168.1.1:30080',
    '192.168.1.3:30080',
    '10.244.2.30:8080',
    '203.0.113.9:80',
  ),
  entryNode: fc.constantFrom('n1', 'n2', 'n3'),
})

function worldOf(
  one: typeof cluster extends fc.Arbitrary<infer T> ? T : never,
  datapath: 'iptables' | 'nftables',
  isEach = false,
) {
  const app = (at: number): string => (one.serves[at] === true ? 'web' : 'idle')
  const status = { loadBalancer: { ingress: [{ ip: '203.0.113.9' }] } }
  const spec = {
    type: 'LoadBalancer',
    externalTrafficPolicy: one.externalTrafficPolicy,
    internalTrafficPolicy: one.internalTrafficPolicy,
    ...(one.hasAffinity && { sessionAffinity: 'ClientIP' }),
  }
  const closed = networkPolicy('shop/closed', {
    podSelector: { matchLabels: { app: 'web' } },
    ingress: [{ from: [{ podSelector: { matchLabels: { app: 'client' } } }] }],
  })
  const objects = [
    { ...web(spec), status },
    pod('shop/b', { app: app(0) }, { ip: '10.244.1.20' }),
    pod('shop/c', { app: app(1) }, { ip: '10.244.2.30', nodeName: 'n2' }),
    pod('shop/d', { app: app(2) }, { ip: '10.244.3.40', nodeName: 'n3' }),
    pod('shop/e', { app: app(2) }, { ip: '10.244.3.41', nodeName: 'n3' }),
    pod('shop/f', { app: app(0) }, { ip: '10.244.2.31', nodeName: 'n2' }),
    ...(one.isClosed ? [closed] : []),
  ]
  const detectLocal = { kind: 'ClusterCIDR', cidrs: ['10.244.0.0/16'] } as const
  const settings = { detectLocal, masqueradeAll: one.masqueradeAll }
  return world({ datapath, objects, setting: { settings, ...(isEach && { remembered: [elsewhere] }) } })
}

/** Where nodes remember a client each endpoint is walked for itself, also those that nothing tells apart. */
const elsewhere = { node: 'n1', table: 'set affinity-none', row: '192.0.2.1', isNew: false }

test('iptables and nftables mode agree, and so does the policy evaluator', () => {
  let delivered = 0
  fc.assert(
    fc.property(cluster, fc.array(packet, { minLength: 3, maxLength: 6 }), (one, packets) => {
      const [first, second] = [worldOf(one, 'iptables'), worldOf(one, 'nftables')]
      const each = worldOf(one, 'iptables', true)
      for (const { source, target, entryNode } of packets) {
        const more = source.includes('/') ? {} : { entryNode: target.startsWith('203') ? entryNode : undefined }
        const ask = { ...(more.entryNode !== undefined && { entryNode: more.entryNode }) }
        const [a, b] = [walk(first, source, target, ask), walk(second, source, target, ask)]
        const told = ({ request, reply }: typeof a) => ({
          kind: request.verdict.kind,
          targets: [...request.targets].sort((x, y) => (x.address < y.address ? -1 : 1)),
          reply: reply?.verdict.kind,
        })
        // Of iptables only INPUT and FORWARD reject at outer addresses (docs/fidelity.md).
        const isFromNode = source.startsWith('node/') && target.startsWith('203') && a.request.targets.length === 0
        if (!isFromNode) expect(told(b)).toEqual(told(a))
        const full = walk(each, source, target, ask)
        expect([a.request, a.reply]).toEqual([full.request, full.reply])
        for (const { address } of a.request.targets) {
          const ip = parseIp(address.slice(0, address.lastIndexOf(':')))
          const end = ip === undefined ? undefined : partyOfIp(first.policies, ip)
          const own = first.setting.cluster.pods.get(source)
          if (end?.kind !== 'pod' || own === undefined) continue
          const port = Number(address.slice(address.lastIndexOf(':') + 1))
          const answer = evaluate(first.policies, {
            source: { kind: 'pod', pod: own },
            target: end,
            protocol: 'TCP',
            port,
          })
          // A masqueraded packet is its node's.
          const isOwnAddress = a.request.steps.at(-1)?.packet.source.startsWith(own.podIPs[0] ?? '-') === true
          if (isOwnAddress) expect([source, address, answer.allowed]).toEqual([source, address, true])
          delivered++
        }
      }
    }),
    { seed: seedOfRun(), numRuns: 25 },
  )
  expect(delivered).toBeGreaterThan(20)
})
