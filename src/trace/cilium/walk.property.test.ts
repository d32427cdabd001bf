/** For random policies a walk ends as the evaluator says, and for random Services it has the targets that kube-proxy's rules have. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Family } from '#base/ip'
import { selectSlices } from '#compile/endpointslices/select-slices'
import { parseSave } from '#compile/iptables/parse-save'
import { printSave } from '#compile/iptables/print-save'
import { savedRuleset } from '#compile/iptables/render-iptables'
import { rulesetOf } from '#compile/nftables/ruleset'
import type { ServicePortPlan } from '#compile/services/service-plan'
import { parseCluster } from '#manifests/parse-cluster'
import { ciliumVersions } from '#model/cilium-version'
import type { Target } from '#model/trace'
import type { WalkProtocol } from '#model/walk'
import { askedIp, pathWorld, preparePath } from '../../../test/cilium/ask-path'
import { askCilium } from '../../../test/policy/ask-cilium'
import type { Raw } from '../../../test/policy/policy-objects'
import { ciliumPolicies } from '../../../test/random/arbitrary-cilium-policies'
import { clusterOfSketch, rulesOfSketch } from '../../../test/random/cluster-objects'
import { tableOfSketch } from '../../../test/random/nftables-table'
import { nodeAddresses, nodeName, places } from '../../../test/random/node-layout'
import { seedOfRun } from '../../../test/random/random'
import { randomCluster } from '../../../test/random/random-cluster'
import { traceRuleset } from '../trace-ruleset'
import { prepareCilium } from './cilium-net'
import { walkCilium } from './walk-cilium'

const senders = ['A', 'B', 'C', 'D', 'node-a', 'node-b', '203.0.113.9', '8.8.8.8']
const receivers = ['A', 'B', 'C', 'D', 'node-a', 'node-b', '203.0.113.9', '8.8.8.8']
const connections: readonly (readonly [WalkProtocol, number])[] = [
  ['TCP', 80],
  ['TCP', 8080],
  ['UDP', 80],
  ['ICMP', 8],
]
const pods = ['A', 'B', 'C', 'D']

/** Between two that are no pods no policy is asked. */
const pairs = senders.flatMap((source) =>
  receivers
    .filter((target) => target !== source && (pods.includes(source) || pods.includes(target)))
    .map((target) => [source, target] as const),
)

const config = { 'routing-mode': 'tunnel', 'tunnel-protocol': 'vxlan' }

function asRow(data: Readonly<Record<string, string>>): Raw {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'cilium-config', namespace: 'kube-system' }, data }
}

test.each(ciliumVersions)('Cilium %s: a walk is allowed where policy at both ends allows it', (version) => {
  fc.assert(
    fc.property(ciliumPolicies, (objects) => {
      const asked = askCilium([...pathWorld, asRow(config), ...objects], { version })
      const { walk } = preparePath(objects, { version, config })
      for (const [source, target] of pairs) {
        for (const [protocol, port] of connections) {
          const words = `${protocol} ${port}`
          const ends = ['egress', 'ingress'].map((direction) =>
            direction === 'egress' && !pods.includes(source)
              ? 'allowed'
              : direction === 'ingress' && !pods.includes(target)
                ? 'allowed'
                : asked.at(direction as 'egress', source, target, words),
          )
          const first = ends.find((one) => one !== 'allowed') ?? 'allowed'
          const found = walk(source, protocol === 'ICMP' ? target : `${target}:${port}`, { protocol })
          expect(found.fate, `${source} to ${target} ${words}`).toBe(first)
          expect(found.back, `${source} to ${target} ${words}, back`).toBe(first === 'allowed' ? 'allowed' : 'none')
        }
      }
    }),
    { numRuns: 5, seed: 11 },
  )
})

const extra = (family: Family): string => {
  const podIp = places[family].localPodIp(77)
  const items: readonly Raw[] = [
    asRow({ 'kube-proxy-replacement': 'true', 'bpf-lb-sock-hostns-only': 'true' }),
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { namespace: 'x', name: 'client' },
      spec: { nodeName, containers: [{ name: 'main' }] },
      status: { phase: 'Running', podIPs: [{ ip: podIp }] },
    },
  ]
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items })
}

type Asked = {
  readonly address: string
  readonly port: number
  readonly protocol: 'tcp' | 'udp'
  readonly isInside: boolean
}

/** What both must answer alike; the rest, and addresses that two Services have, stand in docs/fidelity.md. */
function destinationsOf(ports: readonly ServicePortPlan[], nodeIp: string): readonly Asked[] {
  const all = ports.flatMap((plan) => {
    const { port, protocol, nodePort } = plan
    if (protocol === 'sctp') return []
    const outer = [...plan.externalIPs, ...plan.loadBalancerVIPs].map((address) => ({ address, port, protocol }))
    const node = nodePort === 0 ? [] : [{ address: nodeIp, port: nodePort, protocol }]
    const isAlike = !plan.isInternalLocal && plan.loadBalancerSourceRanges.length === 0
    return [
      { address: plan.clusterIP, port, protocol, isInside: true, isAlike: true },
      ...outer.map((one) => ({ ...one, isInside: true, isAlike })),
      ...[...outer, ...node].map((one) => ({ ...one, isInside: false, isAlike: true })),
    ]
  })
  const keyOf = ({ address, port, protocol, isInside }: Asked): string => `${address} ${port} ${protocol} ${isInside}`
  const times = new Map<string, number>()
  for (const one of all) times.set(keyOf(one), (times.get(keyOf(one)) ?? 0) + 1)
  return all.filter((one) => one.isAlike && times.get(keyOf(one)) === 1)
}

function textOf(targets: readonly Target[]): readonly string[] {
  const shares = new Map<string, number>()
  for (const { address, share } of targets) shares.set(address, (shares.get(address) ?? 0) + share)
  return [...shares].map(([address, share]) => `${address} ${share.toFixed(3)}`).sort()
}

test('a Service has the targets that the rules of iptables and nftables give it', () => {
  const seed = seedOfRun()
  let count = 0
  for (let at = 0; at < 16; at++) {
    const family = at % 2 === 0 ? 'ipv4' : 'ipv6'
    const drawn = randomCluster(seed + at, family)
    const services = drawn.services.map((one) => ({ ...one, publishesNotReady: false }))
    const place = places[family]
    const detectLocal = { kind: 'ClusterCIDR', cidrs: [place.clusterCidr] } as const
    const sketch = { ...drawn, services, settings: { detectLocal } }
    const added = parseCluster(extra(family)).value
    const plain = clusterOfSketch(sketch)
    const cluster = {
      ...plain,
      pods: new Map([...plain.pods, ...added.pods]),
      configMaps: new Map([...plain.configMaps, ...added.configMaps]),
    }
    const net = prepareCilium(cluster, { slices: selectSlices(plain, 'computed').value })
    const { plan, sync } = rulesOfSketch(sketch)
    const { rulesets } = parseSave(printSave(savedRuleset(sync), { date: 'now' }), 'save')
    const nft = rulesetOf([tableOfSketch(sketch, '1.34')])
    const client = cluster.pods.get('x/client')
    const outside = askedIp(place.outsideIp(5))
    for (const { address, port, protocol, isInside } of destinationsOf(plan.ports, place.nodeIps[0])) {
      const source = isInside ? askedIp(place.localPodIp(77)) : outside
      const packet = { source, destination: askedIp(address), destinationPort: port, protocol }
      const known = { packet, nodeIps: nodeAddresses[family], isBrief: true }
      const byIptables = textOf(traceRuleset({ ...known, rulesets }).value.targets)
      const byNftables = textOf(traceRuleset({ ...known, rulesets: [], nft }).value.targets)
      const walk = walkCilium(net, {
        source: isInside && client !== undefined ? { ip: source, pod: client, node: nodeName } : { ip: source },
        destination: { ip: packet.destination },
        protocol: protocol === 'tcp' ? 'TCP' : 'UDP',
        sourcePort: 43210,
        port,
        entryNode: nodeName,
        isReplyWanted: false,
      })
      const isService = walk.request.steps.some(({ did }) => did === 'found the Service')
      const found = isService ? textOf(walk.request.targets) : []
      const title = `PORTOLAN_SEED=${seed + at}: ${isInside ? 'inside' : 'outside'} to ${address}:${port}/${protocol}`
      expect(found, title).toEqual(byIptables)
      expect(found, title).toEqual(byNftables)
      count++
    }
  }
  expect(count).toBeGreaterThan(60)
})
