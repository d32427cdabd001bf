/** Session affinity: whether a node's rules keep clients as the Service asks, and as long. */
import type { NodeAnswers } from './answer-nodes'
import { pairsOf } from './compare-source'
import type { ExplainFinding } from './explanation'
import { explainFinding } from './findings'
import { printDestination } from './list-destinations'
import type { ServiceView } from './service-view'
import { memoryOf } from './trace-node'

/** With one endpoint there is nothing to remember. */
export function compareAffinity({ service }: ServiceView, answers: NodeAnswers): readonly ExplainFinding[] {
  for (const { actual, wanted } of pairsOf(answers)) {
    if (actual.from !== 'pod' || actual.trace.targets.length < 2 || wanted.trace.targets.length < 2) continue
    const [is, should] = [memoryOf(actual), memoryOf(wanted)]
    const isSame = is.remembers === should.remembers
    const differs = isSame && is.seconds !== undefined && should.seconds !== undefined && is.seconds !== should.seconds
    if (isSame && !differs) continue
    const asked = should.remembers ? `sessionAffinity ClientIP of ${service.affinitySeconds} s` : 'no session affinity'
    const found = is.remembers
      ? `keep clients with their endpoint${is.seconds === undefined ? '' : ` for ${is.seconds} s`}`
      : 'do not keep clients with an endpoint'
    return [
      explainFinding('explain.affinity-differs', {
        about: service.meta,
        path: 'spec.sessionAffinity',
        message: `the Service asks for ${asked}, and the rules of ${answers.label} ${found}`,
        evidence: [
          `${answers.label}: ${printDestination(actual.destination)}: ${is.rule ?? 'no rule notes its clients'}`,
        ],
        hint: 'the rules are older than the Service: see the log of kube-proxy of that node, and restart it if it does not sync',
      }),
    ]
  }
  return []
}
