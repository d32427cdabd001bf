/** The matrix and lint's advice with cluster-wide policies, host-networked pods, and Cilium's semantics, over random policies. */
import { expect, test } from 'vitest'
import { buildCluster } from '#manifests/build-cluster'
import type { RawRecord } from '#manifests/text/raw-object'
import type { Cluster } from '#model/cluster'
import { ciliumSemantics } from '#trace/policy/cilium-semantics'
import { evaluate } from '#trace/policy/evaluate'
import { kubernetesSemantics } from '#trace/policy/k8s-semantics'
import type { Semantics } from '#trace/policy/semantics'
import { type PolicyWorld, preparePolicies } from '#trace/policy/world'
import { policyObjects } from '../../../test/random/policy-objects'
import { randomOf, seedOfRun } from '../../../test/random/random'
import { nodeIp, nodeName, portPool, protocolPool, randomPolicies } from '../../../test/random/random-policies'
import { randomTiers } from '../../../test/random/random-tiers'
import { buildMatrix } from './build-matrix'
import { idleRules } from './lint-shadows'
import { plainRows } from './print-matrix'

const seed = seedOfRun()
const seeds = Array.from({ length: 24 }, (_, at) => seed + at)

function clusterOf(number: number): Cluster {
  const tiers = randomTiers(randomOf(number + 1_000_003)).map(({ kind, name, spec }) => {
    const version = kind === 'ClusterNetworkPolicy' ? 'v1alpha2' : 'v1alpha1'
    return { apiVersion: `policy.networking.k8s.io/${version}`, kind, metadata: { name }, spec }
  })
  const other = { name: 'node-b', ip: '192.168.9.9' }
  const objects = [
    ...policyObjects(randomPolicies(number)),
    nodeObject(other.name, other.ip),
    hostPod('host-a', nodeName, nodeIp),
    hostPod('host-b', other.name, other.ip),
    ...tiers,
  ]
  const raw = objects.map((value) => ({
    kind: String(value.kind),
    apiVersion: String(value.apiVersion),
    value,
    origin: { file: 'f' },
  }))
  return buildCluster(raw).value
}

function nodeObject(name: string, address: string): RawRecord {
  const conditions = [{ type: 'Ready', status: 'True' }]
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name },
    status: { addresses: [{ type: 'InternalIP', address }], conditions },
  }
}

function hostPod(name: string, node: string, ip: string): RawRecord {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: 'x', name, labels: { app: 'a' } },
    spec: { nodeName: node, hostNetwork: true, containers: [{ name: 'main' }] },
    status: { phase: 'Running', podIP: ip, podIPs: [{ ip }], hostIP: ip },
  }
}

/** True, false, or null for what stands behind `unknown`. */
function stateIn(conn: string | undefined, protocol: string, port: number): boolean | null {
  const parts = (conn ?? '').split('; ')
  if (holds(parts, protocol, port)) return true
  const unknown = parts.flatMap((part) => (part.startsWith('unknown ') ? [part.slice(8)] : []))
  return holds(unknown, protocol, port) ? null : false
}

function holds(parts: readonly string[], protocol: string, port: number): boolean {
  return parts.some((part) => {
    if (part === 'All Connections') return true
    if (!part.startsWith(`${protocol} `)) return false
    return part
      .slice(protocol.length + 1)
      .split(',')
      .some((range) => {
        const [from = 0, to = from] = range.split('-').map(Number)
        return port >= from && port <= to
      })
  })
}

function compare(world: PolicyWorld, number: number): number {
  const { rows, workloads } = buildMatrix(world)
  const byPair = new Map(rows.map(({ src, dst, conn }) => [`${src.name} ${dst.name}`, conn]))
  const random = randomOf(number)
  let compared = 0
  for (const src of workloads) {
    for (const dst of workloads) {
      if (src === dst) continue
      for (const protocol of protocolPool) {
        const port = random.pick(portPool)
        const [source, target] = [src.members[0], dst.members[0]]
        const { allowed } = evaluate(world, { source, target, protocol, port })
        const conn = byPair.get(`${src.name} ${dst.name}`)
        compared++
        if (stateIn(conn, protocol, port) !== allowed) {
          expect.fail(
            `seed ${number}, ${world.semantics.name}: ${src.name} => ${dst.name} ${protocol} ${port}: ${conn}, evaluated ${allowed}`,
          )
        }
      }
    }
  }
  return compared
}

test(`with tiers and host-networked pods the matrix is what evaluation pair by pair says (seed ${seed})`, () => {
  const total = seeds.reduce((sum, number) => {
    const world = preparePolicies(clusterOf(number), { semantics: kubernetesSemantics })
    return sum + compare(world, number)
  }, 0)
  expect(total).toBeGreaterThan(3000)
})

test('as Cilium reads policies the matrix is what evaluation pair by pair says', () => {
  const total = seeds.reduce((sum, number) => {
    const cluster = clusterOf(number)
    const world = preparePolicies(cluster, { semantics: ciliumSemantics(cluster) })
    return sum + compare(world, number)
  }, 0)
  expect(total).toBeGreaterThan(3000)
})

test('without the rules of any tier that lint calls redundant or shadowed the matrix is the same', () => {
  const kinds = new Set<string>()
  for (const number of seeds) {
    const cluster = clusterOf(number)
    const world = preparePolicies(cluster, { semantics: kubernetesSemantics })
    const idle = idleRules({ world })
    for (const { policy, isShadowed } of idle) kinds.add(`${policy.tier} ${isShadowed ? 'shadowed' : 'redundant'}`)
    const gone = new Set(
      idle.map(
        ({ policy, rule }) =>
          `${policy.source.object.kind} ${policy.source.object.namespace}/${policy.source.object.name} ${rule.path}`,
      ),
    )
    const without: Semantics = {
      ...kubernetesSemantics,
      compile: (from) =>
        kubernetesSemantics.compile(from).map((policy) => ({
          ...policy,
          rules: policy.rules.filter(
            ({ path }) =>
              !gone.has(
                `${policy.source.object.kind} ${policy.source.object.namespace}/${policy.source.object.name} ${path}`,
              ),
          ),
        })),
    }
    const rest = buildMatrix(preparePolicies(cluster, { semantics: without })).rows
    expect(plainRows(rest), `seed ${number}`).toEqual(plainRows(buildMatrix(world).rows))
  }
  expect([...kinds].sort()).toEqual(
    expect.arrayContaining(['admin redundant', 'admin shadowed', 'baseline shadowed', 'normal shadowed']),
  )
})
