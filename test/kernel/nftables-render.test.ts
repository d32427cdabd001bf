/** kube-proxy's nftables tables in a kernel: what is computed loads, and the kernel lists it back word for word. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Layout } from '#compile/nftables/layout'
import { printScript } from '#compile/nftables/print-script'
import { rulesetOf, type Table } from '#compile/nftables/ruleset'
import { g1Table } from '../golden/nftables-g1'
import { ipv6Table } from '../golden/nftables-ipv6'
import { tableOfSketch } from '../random/nftables-table'
import { seedOfRun } from '../random/random'
import { type ClusterSketch, randomCluster, smallerClusters } from '../random/random-cluster'
import { describeKernel } from './describe-kernel'
import { createNamespaces, inside, removeNamespaces } from './namespace'
import { computedListing, linesOf, listRuleset, loadRuleset, loadScript } from './nftables-kernel'
import { mustRun } from './run-command'

const layouts: readonly Layout[] = ['1.31', '1.34', '1.36']
const caseCount = Number(process.env.PORTOLAN_FUZZ_TABLES ?? 60)

describeKernel('kube-proxy tables', () => {
  let namespace = ''

  beforeAll(() => {
    namespace = createNamespaces(['nft'])[0] ?? ''
  })
  afterAll(() => removeNamespaces([namespace]))

  /** What the kernel says against the table, undefined when it lists it as computed. */
  function trouble(table: Table): string | undefined {
    const ruleset = rulesetOf([table])
    const loaded = loadRuleset(namespace, ruleset)
    if (!loaded.ok) return loaded.message
    const [computed, listed] = [computedListing(ruleset), listRuleset(namespace)]
    return (
      firstDifference(computed.text.split('\n'), listed.text.split('\n')) ??
      firstDifference(linesOf(computed.json), linesOf(listed.json))
    )
  }

  test.each(layouts)('scenario G1 in layout %s', (layout) => {
    expect(trouble(g1Table(layout))).toBeUndefined()
  })

  test.each(layouts)('the IPv6 scenario in layout %s', (layout) => {
    expect(trouble(ipv6Table(layout))).toBeUndefined()
  })

  test('a script takes the place of the table that is there', () => {
    mustRun(inside(namespace, ['nft', 'flush', 'ruleset']))
    for (const layout of layouts) {
      const ruleset = rulesetOf([g1Table(layout)])
      const loaded = loadScript(namespace, printScript(ruleset))
      expect(loaded.ok ? '' : loaded.message).toBe('')
      expect(listRuleset(namespace).text).toBe(computedListing(ruleset).text)
    }
  })

  test('random clusters in every layout and family', () => {
    const seed = seedOfRun()
    for (let at = 0; at < caseCount; at++) {
      const sketch = randomCluster(seed + at, at % 2 === 0 ? 'ipv4' : 'ipv6')
      const layout = layouts[at % layouts.length] ?? '1.34'
      if (trouble(tableOfSketch(sketch, layout)) !== undefined) expect.fail(explain(shrink(sketch, layout), layout))
    }
  })

  function shrink(sketch: ClusterSketch, layout: Layout): ClusterSketch {
    const smaller = smallerClusters(sketch).find((one) => trouble(tableOfSketch(one, layout)) !== undefined)
    return smaller === undefined ? sketch : shrink(smaller, layout)
  }

  function explain(sketch: ClusterSketch, layout: Layout): string {
    const found = trouble(tableOfSketch(sketch, layout))
    return `PORTOLAN_SEED=${sketch.seed}, layout ${layout}: ${found}\n${JSON.stringify(sketch)}`
  }
})

function firstDifference(computed: readonly string[], listed: readonly string[]): string | undefined {
  const at = Array.from({ length: Math.max(computed.length, listed.length) }, (_, index) => index).find(
    (index) => computed[index] !== listed[index],
  )
  return at === undefined ? undefined : `line ${at + 1} computed ${computed[at]}\nlisted ${listed[at]}`
}
