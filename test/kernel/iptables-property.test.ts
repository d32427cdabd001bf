/** Random clusters against a kernel: their rules load and save back as computed, and packets walk them as traced. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Family } from '#base/ip'
import { compareText } from '#base/text'
import { rulesOfSketch } from '../random/cluster-objects'
import { layoutSpec } from '../random/node-layout'
import { randomOf, seedOfRun } from '../random/random'
import { type ClusterSketch, randomCluster, smallerClusters } from '../random/random-cluster'
import { randomPacket } from '../random/random-packets'
import { type Calls, checkCluster, type Rig, type Trouble } from './check-cluster'
import { describeKernel } from './describe-kernel'
import { createNode } from './kernel-node'
import { addAccounting } from './rules'
import type { SentPacket } from './sent-packet'
import { printTally, wantedKinds } from './tally'
import { startTrace } from './trace-reader'

const packetCount = Number(process.env.PORTOLAN_FUZZ_PACKETS ?? 600)
const packetsOfCall = 40

/** A second call repeats clients of the first, for what the rules remember of them. */
function callsOf(sketch: ClusterSketch): Calls {
  const random = randomOf(sketch.seed + 1_000_000)
  const { plan } = rulesOfSketch(sketch)
  const first = Array.from({ length: packetsOfCall }, (_, number) => randomPacket(random, plan, number))
  const again = random.some(first, 20).map((packet, at) => ({
    ...packet,
    ...(packet.sourcePort !== undefined && { sourcePort: 11_000 + at }),
    ...(packet.icmp !== undefined && { icmp: { ...packet.icmp, id: 300 + at } }),
  }))
  return [bySender(first), bySender(again)]
}

/** Neighbours from one sender go out together, which is much faster. */
function bySender(packets: readonly SentPacket[]): readonly SentPacket[] {
  return packets.toSorted((a, b) => compareText(a.from, b.from))
}

function explain(rig: Rig, found: Found): string {
  const smallest = shrink(rig, found)
  const { sketch, trouble } = smallest
  return [
    `${trouble.what} is not as computed; PORTOLAN_SEED=${sketch.seed} begins with this cluster, here made smaller:`,
    JSON.stringify(sketch),
    trouble.shown,
  ].join('\n')
}

type Found = { readonly sketch: ClusterSketch; readonly calls: Calls; readonly trouble: Trouble }

function shrink(rig: Rig, found: Found): Found {
  for (const sketch of smallerClusters(found.sketch)) {
    const trouble = checkCluster(rig, sketch, found.calls)
    if (trouble !== undefined) return shrink(rig, { ...found, sketch, trouble })
  }
  return found
}

describeKernel('random clusters', () => {
  let rig: Rig

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
    const seed = seedOfRun()
    let [sent, cases] = [0, 0]
    while (sent < packetCount) {
      const family: Family = cases % 2 === 0 ? 'ipv4' : 'ipv6'
      const sketch = randomCluster(seed + cases, family)
      const calls = callsOf(sketch)
      const trouble = checkCluster(rig, sketch, calls)
      if (trouble !== undefined) expect.fail(explain(rig, { sketch, calls, trouble }))
      sent += calls.flat().length
      cases++
    }
    console.log(`${sent} packets through the rules of ${cases} clusters from seed ${seed}: ${printTally(rig.tally)}`)
    expect(wantedKinds.filter((kind) => !rig.tally.has(kind))).toEqual([])
  })
})
