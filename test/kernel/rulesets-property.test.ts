/** Random rulesets in the style of people against a kernel: every packet walks as traced, first ones and later ones. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Family } from '#base/ip'
import { layoutSpec } from '../random/node-layout'
import { randomOf } from '../random/random'
import { printRuleset, type RulesetSketch, randomRuleset, smallerRulesets } from '../random/random-ruleset'
import { randomTraffic } from '../random/random-traffic'
import { checkRuleset } from './check-ruleset'
import { describeKernel } from './describe-kernel'
import { createNode, type KernelNode } from './kernel-node'
import { loadNftables } from './rules'
import { runCases } from './run-cases'
import { bySender, type SentPacket } from './sent-packet'
import { printTally, type Tally } from './tally'
import { startTrace, type TraceReader } from './trace-reader'

const packetCount = Number(process.env.PORTOLAN_FUZZ_PACKETS ?? 600)

/** Without a rule that needs it the kernel tracks no connections, and then it asks no nat chain either. */
const tracking = 'table inet tracking { chain unused { ct state invalid; }; }'

function packetsOf({ seed, family }: RulesetSketch): readonly SentPacket[] {
  const random = randomOf(seed + 1_000_000)
  return bySender(Array.from({ length: 60 }, (_, number) => randomTraffic(random, family, number)))
}

function print({ sets, ...sketch }: RulesetSketch): string {
  const shown = printRuleset({ sets, ...sketch })
    .split('\n')
    .filter((line) => /^(\*|-A)| DROP /.test(line))
  return [...sets.split('\n').filter((line) => line.startsWith('add')), ...shown].join('\n')
}

describeKernel('random rulesets', () => {
  const tally: Tally = new Map()
  let node: KernelNode
  let reader: TraceReader

  beforeAll(() => {
    node = createNode(layoutSpec)
    reader = startTrace(node)
    expect(loadNftables(node, tracking)).toMatchObject({ ok: true })
  })
  afterAll(() => {
    reader?.close()
    node?.close()
  })

  test('every packet walks as traced', () => {
    const refused: string[] = []
    const { count } = runCases(
      {
        make: (seed) => randomRuleset(seed, (seed % 2 === 0 ? 'ipv4' : 'ipv6') satisfies Family),
        check: (sketch) => checkRuleset({ node, reader, tally, refused }, sketch, packetsOf(sketch)),
        sent: () => tally.get('packets') ?? 0,
        smaller: smallerRulesets,
        print,
      },
      packetCount,
    )
    console.log(printTally(tally))
    // What the generator does not know to be wrong is left out of a ruleset: seldom, or it would try nothing.
    expect(refused.length, refused.join('\n')).toBeLessThanOrEqual(count)
    const wanted = ['dropped', 'rejected', 'left', 'delivered', 'came back on lo', 'later packet']
    expect(wanted.filter((kind) => !tally.has(kind))).toEqual([])
  })
})
