/** Shares of connections: whether a node's rules spread them evenly, and the cascade that only looks as if it did not. */
import { countOf, listOf } from '#base/text'
import { printShare } from '#trace/print-trace'
import type { NodeAnswers } from './answer-nodes'
import { addressesOf } from './compare-rules'
import type { ExplainFinding } from './explanation'
import { explainFinding } from './findings'
import { printDestination } from './list-destinations'
import type { ServiceView } from './service-view'
import { type Answer, lineText } from './trace-node'

/** That a cascade is even is worth a word where nothing else is wrong. */
export function compareShares(
  view: ServiceView,
  { given, label }: NodeAnswers,
  mayTellCascade: boolean,
): readonly ExplainFinding[] {
  const findings: ExplainFinding[] = []
  const seen = new Set<string>()
  let tellsCascade = mayTellCascade
  for (const answer of given?.answers ?? []) {
    const targets = [...addressesOf(answer)].join()
    if (answer.trace.targets.length < 2 || seen.has(targets)) continue
    seen.add(targets)
    if (isUneven(answer)) findings.push(unequal(view, answer, label))
    else if (tellsCascade && answer.trace.targets.length > 2 && chancesOf(answer).length > 0) {
      tellsCascade = false
      findings.push(cascade(view, answer, label))
    }
  }
  return findings
}

/** Old daemons wrote probabilities with five decimals; what that leaves uneven is not worth a word. */
function isUneven({ trace }: Answer): boolean {
  const shares = trace.targets.map(({ share }) => share)
  const [least, most] = [Math.min(...shares), Math.max(...shares)]
  return most - least > 0.002 * most + 0.0002
}

/** The probabilities on the way, as the rules have them: `0.33333333349 (node.save:12)`. */
function chancesOf({ trace, linesIn }: Answer): readonly string[] {
  const chances = trace.hops.flatMap(({ rule = '', at }) => {
    const chance = /--probability (\S+)/.exec(rule)?.[1]
    return chance === undefined ? [] : [`${chance}${lineText(at.line, linesIn)}`]
  })
  return [...new Set(chances)]
}

function unequal({ service }: ServiceView, answer: Answer, label: string): ExplainFinding {
  const shares = answer.trace.targets.map(({ address, share }) => `${address} gets ${printShare(share)}`)
  const [chances, destination] = [chancesOf(answer), printDestination(answer.destination)]
  return explainFinding('explain.unequal-shares', {
    about: service.meta,
    message: `the rules of ${label} spread ${destination} unevenly: ${listOf(shares, 6)}`,
    evidence: [
      `${label}: ${destination}: ${listOf(shares)}`,
      ...(chances.length === 0 ? [] : [`${label}: probabilities of the chain: ${listOf(chances)}`]),
    ],
    hint: 'a rule of the chain is missing, doubled or edited: let kube-proxy of that node write it again (restart it)',
  })
}

function cascade({ service }: ServiceView, answer: Answer, label: string): ExplainFinding {
  const { targets } = answer.trace
  return explainFinding('explain.cascade', {
    about: service.meta,
    message: `the probabilities in the rules grow, as each is of what is left over; together each of the ${countOf(targets.length, 'endpoint')} gets ${printShare(targets[0]?.share ?? 0)}`,
    evidence: [`${label}: ${listOf(chancesOf(answer))}, and the rest`],
    hint: 'if one pod still gets more, clients keep connections open: look at those, not at the rules',
  })
}
