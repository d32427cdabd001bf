/** Random clusters against a kernel: their rules load and save back as computed, and packets walk them as traced. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Family } from '#base/ip'
import { rulesOfSketch } from '../random/cluster-objects'
import { layoutSpec } from '../random/node-layout'
import { randomOf } from '../random/random'
import { type ClusterSketch, randomCluster, smallerClusters } from '../random/random-cluster'
import { randomPacket } from '../random/random-packets'
import { type Calls, type ClusterRig, checkCluster } from './check-cluster'
import { describeKernel } from './describe-kernel'
import { createNode } from './kernel-node'
import { addAccounting } from './rules'
import { runCases } from './run-cases'
import { bySender } from './sent-packet'
import { printTally } from './tally'
import { startTrace } from './trace-reader'

const packetCount = Number(process.env.PORTOLAN_FUZZ_PACKETS ?? 600)

/** A second call repeats clients of the first, for what the rules remember of them. */
function callsOf(sketch: ClusterSketch): Calls {
  const random = randomOf(sketch.seed + 1_000_000)
  const { plan } = rulesOfSketch(sketch)
  const first = Array.from({ length: 60 }, (_, number) => randomPacket(random, plan, number))
  const again = random.some(first, 20).map((packet, at) => ({
    ...packet,
    ...(packet.sourcePort !== undefined && { sourcePort: 11_000 + at }),
    ...(packet.icmp !== undefined && { icmp: { ...packet.icmp, id: 300 + at } }),
  }))
  return [bySender(first), bySender(again)]
}

describeKernel('random clusters', () => {
  let rig: ClusterRig

  beforeAll(() => {
    const [nft, legacy] = [createNode(layoutSpec), createNode(layoutSpec)]
    rig = { nft, legacy, reader: startTrace(nft), tally: new Map() }
    for (const node of [nft, legacy]) {
      addAccounting(node, ['ct_state_invalid_dropped_pkts', 'localhost_nps_accepted_pkts'])
    }
  })
  afterAll(() => {
    rig?.reader.close()
    rig?.nft.close()
    rig?.legacy.close()
  })

  test('load and save back as computed, and every packet walks as traced', () => {
    // What fails must fail with the packets that were first sent, whatever Services are left.
    const calls = new Map<number, Calls>()
    const callsFor = (sketch: ClusterSketch): Calls => {
      const known = calls.get(sketch.seed) ?? callsOf(sketch)
      calls.set(sketch.seed, known)
      return known
    }
    runCases(
      {
        make: (seed) => randomCluster(seed, (seed % 2 === 0 ? 'ipv4' : 'ipv6') satisfies Family),
        check: (sketch) => checkCluster(rig, sketch, callsFor(sketch)),
        sent: () => rig.tally.get('packets') ?? 0,
        smaller: smallerClusters,
        print: (sketch) => JSON.stringify(sketch),
      },
      packetCount,
    )
    console.log(printTally(rig.tally))
    const wanted = [
      ...['dropped', 'rejected', 'left', 'delivered', 'came back on lo', 'from a process'],
      ...['destination translated', 'source translated', 'client remembered'],
    ]
    expect(wanted.filter((kind) => !rig.tally.has(kind))).toEqual([])
  })
})
