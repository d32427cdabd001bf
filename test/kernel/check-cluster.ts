/** Puts the rules of a sketched cluster on nodes of both engines, sends packets, and tells the first thing that is not as computed. */
import { parseSave } from '#compile/iptables/parse-save'
import { printRestore } from '#compile/iptables/print-restore'
import { printSave } from '#compile/iptables/print-save'
import { fullTables, savedRuleset } from '#compile/iptables/render-iptables'
import type { Ruleset } from '#compile/iptables/rule'
import { rulesOfSketch } from '../random/cluster-objects'
import { nodeAddresses } from '../random/node-layout'
import type { ClusterSketch } from '../random/random-cluster'
import { answerDifference } from './compare-answers'
import { comparePaths } from './compare-paths'
import type { KernelNode } from './kernel-node'
import { createRecentLists } from './recent-lists'
import { loadRules, saveRules, tablesOfSave } from './rules'
import type { Trouble } from './run-cases'
import type { SentPacket } from './sent-packet'
import { type Tally, tallyPackets } from './tally'
import { tracePackets } from './trace-packets'
import type { TraceReader } from './trace-reader'

/** One node for each engine. `tally` counts what the packets met. */
export type ClusterRig = {
  readonly nft: KernelNode
  readonly legacy: KernelNode
  readonly reader: TraceReader
  readonly tally: Tally
}

/** The packets of one call are sent after those of the calls before it, whose connections are forgotten. */
export type Calls = readonly (readonly SentPacket[])[]

export function checkCluster(rig: ClusterRig, sketch: ClusterSketch, calls: Calls): Trouble | undefined {
  const loaded = loadBoth(rig, sketch)
  if ('trouble' in loaded) return loaded.trouble
  const lists = createRecentLists()
  const nodeIps = nodeAddresses[sketch.family]
  for (const packets of calls) {
    const outcomes = tracePackets({ node: rig.nft, reader: rig.reader }, packets)
    lists.expect(outcomes)
    tallyPackets(rig.tally, outcomes)
    for (const seen of outcomes) {
      const compared = comparePaths(
        seen,
        { ruleset: loaded.ruleset, nodeIps },
        {
          isPossible: (path) => lists.allows(path, seen.packet.source),
        },
      )
      if (compared.difference !== undefined)
        return { what: 'the walk is not as traced', shown: compared.difference.shown }
      const difference = answerDifference(seen, compared)
      if (difference !== undefined) return { what: 'the answer is not what happened', shown: difference }
    }
    lists.learn(outcomes)
  }
  return undefined
}

type Loaded = { readonly ruleset: Ruleset } | { readonly trouble: Trouble }

/** The restore text loads in both engines, what they save is what is computed, and that text reads back as itself. */
function loadBoth(rig: ClusterRig, sketch: ClusterSketch): Loaded {
  const { family } = sketch
  const { sync } = rulesOfSketch(sketch)
  const restore = printRestore(fullTables(sync))
  for (const variant of ['nft', 'legacy'] as const) {
    const node = rig[variant]
    const loaded = loadRules(node, { variant, family }, restore)
    if (!loaded.ok) return { trouble: { what: `${variant} refuses the rules`, shown: loaded.message } }
    const saved = tablesOfSave(saveRules(node, { variant, family }))
    const computed = printSave(savedRuleset(sync, variant === 'nft' ? 'nf_tables' : 'legacy'), { date: 'now' })
    const difference = firstDifference(saved, tablesOfSave(computed))
    if (difference !== undefined) return { trouble: { what: `${variant} saves something else`, shown: difference } }
  }
  const text = printSave(savedRuleset(sync), { date: 'now' })
  const [ruleset, ...others] = parseSave(text, 'save').rulesets
  if (ruleset === undefined || others.length > 0) return { trouble: { what: 'the save is read wrongly', shown: text } }
  const again = printSave(ruleset, { date: 'now' })
  return again === text
    ? { ruleset }
    : { trouble: { what: 'the save is read wrongly', shown: firstDifference([again], [text]) ?? '' } }
}

function firstDifference(saved: readonly string[], computed: readonly string[]): string | undefined {
  const [left, right] = [saved.join('').split('\n'), computed.join('').split('\n')]
  const at = left.findIndex((line, index) => line !== right[index])
  if (at === -1 && left.length === right.length) return undefined
  const place = at === -1 ? left.length : at
  return `line ${place + 1}\nsaved    ${left[place] ?? '–'}\ncomputed ${right[place] ?? '–'}`
}
