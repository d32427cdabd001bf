/** kube-proxy's nftables tables in a kernel: packets walk them as traced, in every layout and family. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Family } from '#base/ip'
import type { Layout } from '#compile/nftables/layout'
import { parseNftList } from '#compile/nftables/parse-list'
import { printScript } from '#compile/nftables/print-script'
import { type Ruleset, rulesetOf } from '#compile/nftables/ruleset'
import type { RulesetTraceInput } from '#trace/trace-ruleset'
import { rulesOfSketch } from '../random/cluster-objects'
import { tableOfSketch } from '../random/nftables-table'
import { layoutSpec, nodeAddresses } from '../random/node-layout'
import { randomOf, seedOfRun } from '../random/random'
import { randomCluster } from '../random/random-cluster'
import { randomPacket, traceInputOf } from '../random/random-packets'
import { compareNftPaths } from './compare-nft-paths'
import { describeKernel } from './describe-kernel'
import { createNode, type KernelNode } from './kernel-node'
import { listRuleset, loadScript } from './nftables-kernel'
import { bySender } from './sent-packet'
import { tracePackets } from './trace-packets'
import { startTrace, type TraceReader } from './trace-reader'

const layouts: readonly Layout[] = ['1.31', '1.34', '1.36']
const packetsEach = 25
const caseCount = Math.max(
  1,
  Math.ceil(Number(process.env.PORTOLAN_FUZZ_PACKETS ?? 600) / (packetsEach * layouts.length)),
)

/** The rules as the kernel lists them, without the table that watches the packets. */
function heldRules(node: KernelNode): Ruleset {
  const { ruleset, findings } = parseNftList(listRuleset(node.namespace).text, 'kernel')
  expect(findings).toEqual([])
  return rulesetOf([...ruleset.tables.values()].filter((table) => table.name === 'kube-proxy'))
}

describeKernel('random clusters in nftables', () => {
  let node: KernelNode
  let reader: TraceReader

  beforeAll(() => {
    node = createNode(layoutSpec)
    reader = startTrace(node)
  })
  afterAll(() => {
    reader?.close()
    node?.close()
  })

  test('every packet walks as traced', { timeout: 3_600_000 }, () => {
    const seed = seedOfRun()
    let count = 0
    for (let at = 0; at < caseCount; at++) {
      const family: Family = at % 2 === 0 ? 'ipv4' : 'ipv6'
      const sketch = randomCluster(seed + at, family)
      const { plan } = rulesOfSketch(sketch)
      for (const layout of layouts) {
        const random = randomOf(seed + at)
        const wanted = rulesetOf([tableOfSketch(sketch, layout)])
        const drop =
          'table ip kube-proxy\ndelete table ip kube-proxy\ntable ip6 kube-proxy\ndelete table ip6 kube-proxy\n'
        const loaded = loadScript(node.namespace, `${drop}${printScript(wanted)}`)
        if (!loaded.ok) expect.fail(`seed ${seed + at}, layout ${layout}: ${loaded.message}`)
        const nft = heldRules(node)
        const packets = bySender(Array.from({ length: packetsEach }, (_, number) => randomPacket(random, plan, number)))
        for (const seen of tracePackets({ node, reader }, packets)) {
          const input: RulesetTraceInput = {
            ...traceInputOf(seen.packet, { rulesets: [], nodeIps: nodeAddresses[family] }),
            nft,
          }
          const difference = compareNftPaths(seen, input, nft)
          if (difference !== undefined) expect.fail(`seed ${seed + at}, layout ${layout}\n${difference}`)
          count++
        }
      }
    }
    process.stdout.write(`${count} packets walked nftables as traced, from seed ${seed}\n`)
    expect(count).toBeGreaterThanOrEqual(500)
  })
})
