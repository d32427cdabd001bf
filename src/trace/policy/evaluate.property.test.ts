/** Properties of the evaluator under Kubernetes' semantics, over random policies of every kind. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseIp } from '#base/ip'
import { type PolicyProtocol, policyProtocols } from '#compile/policy/policy-rule'
import { buildCluster } from '#manifests/build-cluster'
import type { RawRecord } from '#manifests/text/raw-object'
import type { Cluster } from '#model/cluster'
import { decideNaively, type NaiveEnd, type NaiveWorld } from '../../../test/policy/naive-evaluator'
import { policyObjects } from '../../../test/random/policy-objects'
import { randomOf } from '../../../test/random/random'
import { nodeIp, nodeName, outsideIps, portPool, randomPolicies } from '../../../test/random/random-policies'
import { randomTiers } from '../../../test/random/random-tiers'
import { decide, portsBetween } from './decide'
import { evaluate } from './evaluate'
import { kubernetesSemantics } from './k8s-semantics'
import type { Party } from './party'
import { commonFamily, nearnessOf } from './party-facts'
import { classOf, type PolicyWorld, preparePolicies } from './world'

const seed = Number(process.env.PORTOLAN_SEED ?? 20261201)
const otherNode = { name: 'node-b', ip: '192.168.9.9', labels: { zone: 'b', 'kubernetes.io/hostname': 'node-b' } }
const nodeLabels = { 'kubernetes.io/hostname': nodeName }

type Case = { readonly naive: NaiveWorld; readonly objects: readonly RawRecord[] }

function caseOf(number: number): Case {
  const sketch = randomPolicies(number)
  const tiers = randomTiers(randomOf(number + 1_000_003))
  const [node, ...rest] = policyObjects(sketch)
  const other = {
    ...node,
    metadata: { name: otherNode.name, labels: otherNode.labels },
    status: { addresses: [{ type: 'InternalIP', address: otherNode.ip }], conditions: [] },
  }
  const policies = tiers.map(({ kind, name, spec }) => {
    const version = kind === 'ClusterNetworkPolicy' ? 'v1alpha2' : 'v1alpha1'
    return { apiVersion: `policy.networking.k8s.io/${version}`, kind, metadata: { name }, spec }
  })
  const named = { ...node, metadata: { name: nodeName, labels: nodeLabels } }
  return { naive: { sketch, tiers, podNode: nodeName }, objects: [named, other, ...rest, ...policies] }
}

function build(objects: readonly RawRecord[]): Cluster {
  const raw = objects.map((value) => ({
    kind: String(value.kind),
    apiVersion: String(value.apiVersion),
    value,
    origin: { file: 'f' },
  }))
  return buildCluster(raw).value
}

function worldOf(objects: readonly RawRecord[]): PolicyWorld {
  return preparePolicies(build(objects), { semantics: kubernetesSemantics })
}

type End = { readonly naive: NaiveEnd; readonly party: Party }

function endsOf({ naive }: Case, { cluster }: PolicyWorld): readonly End[] {
  const pods = naive.sketch.pods.flatMap((pod): End[] => {
    const found = cluster.pods.get(`${pod.namespace}/${pod.name}`)
    return found === undefined ? [] : [{ naive: { kind: 'pod', pod }, party: { kind: 'pod', pod: found } }]
  })
  const nodes = [{ name: nodeName, ip: nodeIp, labels: nodeLabels }, otherNode].flatMap((node): End[] => {
    const found = cluster.nodes.get(node.name)
    return found === undefined ? [] : [{ naive: { kind: 'node', ...node }, party: { kind: 'node', node: found } }]
  })
  const addresses = outsideIps.flatMap((text): End[] => {
    const ip = parseIp(text)
    return ip === undefined ? [] : [{ naive: { kind: 'address', ip: text }, party: { kind: 'address', ip } }]
  })
  return [...pods, ...nodes, ...addresses]
}

function* pairsOf(ends: readonly End[]): Generator<readonly [End, End]> {
  for (const source of ends) {
    for (const target of ends) if (source.party.kind === 'pod' || target.party.kind === 'pod') yield [source, target]
  }
}

type Point = { readonly protocol: PolicyProtocol; readonly port: number }

function decideParties(world: PolicyWorld, source: Party, target: Party, at: Point): string {
  const family = commonFamily(world.cluster, source, target)
  const [from, to] = [source, target].map((party) => classOf(world, party, family).id)
  return decide(world, { source: from ?? -1, target: to ?? -1, ...at, nearness: nearnessOf(source, target) })
}

const points: readonly Point[] = [
  ...portPool.flatMap((port) => (['TCP', 'UDP', 'SCTP'] as const).map((protocol) => ({ protocol, port }))),
  { protocol: 'ICMP', port: 8 },
]
const numbers = fc.integer({ min: 0, max: 2 ** 30 })

test(`classes decide as asking every rule of every connection does (seed ${seed})`, () => {
  const seen = new Set<string>()
  fc.assert(
    fc.property(numbers, (number) => {
      const one = caseOf(number)
      const world = worldOf(one.objects)
      for (const [source, target] of pairsOf(endsOf(one, world))) {
        for (const at of points) {
          const expected = decideNaively(one.naive, { source: source.naive, target: target.naive, ...at })
          const found = decideParties(world, source.party, target.party, at)
          seen.add(expected)
          if (found !== expected)
            expect({ number, source, target, at, found }).toEqual({ number, source, target, at, found: expected })
        }
      }
    }),
    { seed, numRuns: 25 },
  )
  expect([...seen].sort()).toEqual(['allowed', 'denied', 'unknown'])
})

test(`what is decided fast is what is evaluated with reasons, which are never missing (seed ${seed})`, () => {
  fc.assert(
    fc.property(numbers, fc.constantFrom(...points), (number, at) => {
      const one = caseOf(number)
      const world = worldOf(one.objects)
      for (const [{ party: source }, { party: target }] of pairsOf(endsOf(one, world))) {
        const { allowed, ingress, egress } = evaluate(world, { source, target, ...at })
        const told = allowed === null ? 'unknown' : allowed ? 'allowed' : 'denied'
        expect(told).toBe(decideParties(world, source, target, at))
        for (const { because, tiers, decision, changes } of [ingress, egress]) {
          expect(because[0].sentence.length).toBeGreaterThan(10)
          expect(tiers).not.toBe('')
          if (decision !== 'allowed') expect(changes.length).toBeGreaterThan(0)
        }
      }
    }),
    { seed, numRuns: 15 },
  )
})

test(`the order of the input does not matter (seed ${seed})`, () => {
  fc.assert(
    fc.property(numbers, fc.constantFrom(...points), (number, at) => {
      const one = caseOf(number)
      const world = worldOf(one.objects)
      const turned = worldOf([...one.objects].reverse())
      const others = endsOf(one, turned)
      const ends = endsOf(one, world)
      for (const [i, source] of ends.entries()) {
        for (const [j, target] of ends.entries()) {
          const [from, to] = [others[i], others[j]]
          if (from === undefined || to === undefined) throw new Error('a party is lost')
          expect(evaluate(turned, { source: from.party, target: to.party, ...at }).allowed).toBe(
            evaluate(world, { source: source.party, target: target.party, ...at }).allowed,
          )
        }
      }
    }),
    { seed, numRuns: 8 },
  )
})

test(`a rule more in a NetworkPolicy takes no connection away (seed ${seed})`, () => {
  fc.assert(
    fc.property(numbers, numbers, (number, more) => {
      const one = caseOf(number)
      const donors = randomPolicies(more).policies
      const objects = one.objects.map((object) => {
        if (object.kind !== 'NetworkPolicy') return object
        const spec = object.spec as RawRecord
        const added = Object.fromEntries(
          (['ingress', 'egress'] as const).flatMap((side) => {
            // An egress rule in a policy without any would add the type Egress.
            const rules = spec[side]
            const gift = donors.flatMap((donor) => donor.spec[side] ?? [])
            return Array.isArray(rules) && rules.length > 0 ? [[side, [...rules, ...gift]]] : []
          }),
        )
        return { ...object, spec: { ...spec, ...added } }
      })
      const [before, after] = [worldOf(one.objects), worldOf(objects)]
      const [ends, others] = [endsOf(one, before), endsOf(one, after)]
      for (const [i, source] of ends.entries()) {
        for (const [j, target] of ends.entries()) {
          for (const at of points.slice(0, 6)) {
            if (decideParties(before, source.party, target.party, at) !== 'allowed') continue
            const [from, to] = [others[i], others[j]]
            if (from === undefined || to === undefined) throw new Error('a party is lost')
            expect(decideParties(after, from.party, to.party, at)).toBe('allowed')
          }
        }
      }
    }),
    { seed, numRuns: 10 },
  )
})

test(`the ports between two classes are those that are decided one by one (seed ${seed})`, () => {
  const port = fc.oneof(
    fc.constantFrom(1, 65535, ...portPool, ...portPool.map((one) => one + 1)),
    fc.integer({ min: 1, max: 65535 }),
  )
  fc.assert(
    fc.property(numbers, fc.array(port, { minLength: 4, maxLength: 12 }), (number, ports) => {
      const one = caseOf(number)
      const world = worldOf(one.objects)
      for (const [{ party: source }, { party: target }] of pairsOf(endsOf(one, world))) {
        const nearness = nearnessOf(source, target)
        const [from, to] = [classOf(world, source, 'ipv4').id, classOf(world, target, 'ipv4').id]
        const { allowed, unknown } = portsBetween(world, from, to, nearness)
        for (const protocol of policyProtocols.slice(0, 3)) {
          for (const number of ports) {
            const isIn = (ranges: typeof allowed): boolean =>
              (ranges.get(protocol) ?? []).some((range) => number >= range.from && number <= range.to)
            const told = isIn(allowed) ? 'allowed' : isIn(unknown) ? 'unknown' : 'denied'
            expect(told).toBe(decide(world, { source: from, target: to, protocol, port: number, nearness }))
          }
        }
      }
    }),
    { seed, numRuns: 10 },
  )
})
