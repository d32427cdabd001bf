/** A node with rules of both iptables variants: what the one that stands behind the other would do with packets. */

import { listOf } from '#base/text'
import type { Ruleset, Variant } from '#compile/iptables/rule'
import { makersOf } from '#verify/recognise-node'
import type { NodeAnswers } from './answer-nodes'
import { chooseSources } from './choose-sources'
import { addressesOf, classifyTargets, type Drift } from './compare-rules'
import type { ExplainFinding } from './explanation'
import { explainFinding } from './findings'
import type { ServiceView } from './service-view'
import { traceNode } from './trace-node'

/** Dead targets of each variant by itself: the kernel runs both, and either may come first. */
export function compareVariants(view: ServiceView, answers: NodeAnswers): readonly Drift[] {
  const { given, expected, destinations } = answers
  if (given === undefined || given.isElsewhere || given.rules.rulesets.length < 2) return []
  const sources = chooseSources(view, answers.family, answers.node)
  return given.rules.rulesets.flatMap((ruleset) => {
    const alone = traceNode({ ...given.rules, rulesets: [ruleset] }, destinations, sources)
    return alone.flatMap((actual) => {
      const wanted = expected.find((one) => one.destination === actual.destination && one.from === actual.from)
      if (wanted === undefined) return []
      return classifyTargets({ view, answers, actual, wanted }, [...addressesOf(actual)], 'any').map((drift) => ({
        ...drift,
        evidence: `${drift.evidence} (in the ${variantOf(ruleset)} rules)`,
      }))
    })
  })
}

function variantOf({ variant }: { readonly variant?: Variant }): string {
  return variant ?? 'other'
}

/** Two makers in two variants, as a second controller that writes the variant kube-proxy does not. */
export function tellVariants(view: ServiceView, { given, label, family }: NodeAnswers): readonly ExplainFinding[] {
  const rulesets = given?.ruleset.rulesets.filter((one) => one.family === family && 'variant' in one) ?? []
  const holding = rulesets.filter(hasRules)
  const variants = new Set(holding.map(variantOf))
  if (variants.size < 2 || given?.findings.some(({ code }) => code === 'ruleset.both-variants') === true) return []
  return [
    explainFinding('explain.two-variants', {
      about: view.service.meta,
      message: `${label} holds rules of both iptables variants, and the kernel runs both: a packet must pass the one and the other`,
      evidence: holding.map(
        (one) => `${label}: ${variantOf(one)}: ${listOf(makersOf([one])) || 'rules of nobody known'}`,
      ),
      hint: 'let every program of the node use the same iptables variant, and flush the other',
    }),
  ]
}

function hasRules({ tables }: Ruleset): boolean {
  return [...tables.values()].some(({ chains }) => [...chains.values()].some(({ rules }) => rules.length > 0))
}
