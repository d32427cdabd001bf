/** Random NetworkPolicies: what the evaluator says of a connection is what becomes of real packets under naive rules. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseIp } from '#base/ip'
import type { Cluster } from '#model/cluster'
import { evaluate } from '#trace/policy/evaluate'
import { kubernetesSemantics } from '#trace/policy/k8s-semantics'
import type { Party } from '#trace/policy/party'
import { preparePolicies } from '#trace/policy/world'
import { clusterOfPolicies, policyObjects } from '../random/policy-objects'
import { randomOf } from '../random/random'
import {
  nodeIp,
  nodeName,
  outsideIps,
  type PolicySketch,
  podIps,
  portPool,
  protocolPool,
  randomPolicies,
  smallerPolicies,
} from '../random/random-policies'
import { describeKernel } from './describe-kernel'
import { naivePolicyRules } from './naive-policy-rules'
import { type PolicyLaboratory, type Probe, startLaboratory } from './policy-laboratory'
import { runCases, type Trouble } from './run-cases'

const probesOfCase = 160
const packetCount = Number(process.env.PORTOLAN_FUZZ_PACKETS ?? 12_000)

function probesOf({ seed }: PolicySketch): readonly Probe[] {
  const random = randomOf(seed + 7_000_000)
  const ends = [...podIps, ...outsideIps, nodeIp]
  const framers = random.some([...podIps, ...outsideIps], 4)
  return Array.from({ length: probesOfCase }, (): Probe => {
    const source = random.pickFrom(ends) ?? nodeIp
    const target = random.pickFrom(ends.filter((ip) => ip !== source)) ?? nodeIp
    // Frames of each sender take a program of their own, and the node has no link to send any from.
    const protocol = framers.includes(source) ? random.pick(protocolPool) : random.pick(['TCP', 'UDP'] as const)
    return { source, target, protocol, port: random.pick(portPool) }
  })
}

function partyOf(cluster: Cluster, address: string): Party {
  const node = cluster.nodes.get(nodeName)
  if (address === nodeIp && node !== undefined) return { kind: 'node', node }
  const pod = [...cluster.pods.values()].find(({ podIPs }) => podIPs.includes(address))
  if (pod !== undefined) return { kind: 'pod', pod }
  const ip = parseIp(address)
  if (ip === undefined) throw new Error(`${address} is no address`)
  return { kind: 'address', ip }
}

describeKernel('random policies', () => {
  let laboratory: PolicyLaboratory
  let sent = 0
  const seen = new Map<string, number>()
  const count = (what: string): void => void seen.set(what, (seen.get(what) ?? 0) + 1)

  beforeAll(() => {
    laboratory = startLaboratory({ nodeIp, ips: [...podIps, ...outsideIps], ports: portPool })
  })
  afterAll(() => laboratory?.close())

  function check(sketch: PolicySketch): Trouble | undefined {
    const cluster = clusterOfPolicies(sketch)
    const world = preparePolicies(cluster, { semantics: kubernetesSemantics })
    const script = naivePolicyRules(sketch)
    const probes = probesOf(sketch)
    laboratory.load(script)
    const results = laboratory.send(probes)
    sent += probes.length
    for (const [at, probe] of probes.entries()) {
      const { protocol, port } = probe
      const source = partyOf(cluster, probe.source)
      const target = partyOf(cluster, probe.target)
      const answer = evaluate(world, { source, target, protocol, port })
      const result = results[at]
      count(`${protocol} ${result === 'open' ? 'open' : 'closed'}`)
      if (answer.allowed === (result === 'open')) continue
      const shown = `${probe.source} -> ${probe.target} ${protocol} ${port}: computed ${answer.allowed}, packets ${result}`
      return { what: 'a verdict is not what became of the packet', shown: `${shown}\n${script}` }
    }
    return undefined
  }

  test('every verdict is what became of the packet', () => {
    runCases(
      {
        make: randomPolicies,
        check,
        sent: () => sent,
        smaller: smallerPolicies,
        print: (sketch) => JSON.stringify(policyObjects(sketch), undefined, 1),
      },
      packetCount,
    )
    console.log([...seen].map(([what, times]) => `${what} ${times}`).join(', '))
    const wanted = protocolPool.flatMap((protocol) => [`${protocol} open`, `${protocol} closed`])
    expect(wanted.filter((what) => (seen.get(what) ?? 0) < 50)).toEqual([])
  })
})
