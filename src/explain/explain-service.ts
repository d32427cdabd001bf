/** One Service, layer by layer in the order a packet meets them, and the sentence that says what is wrong. */
import { answerNodes } from './answer-nodes'
import { explainConntrack } from './explain-conntrack'
import type { ExplainInput } from './explain-input'
import { explainName } from './explain-name'
import { explainPods } from './explain-pods'
import { explainPolicy } from './explain-policy'
import { explainRules } from './explain-rules'
import { explainServiceObject } from './explain-service-object'
import { explainSlices } from './explain-slices'
import { explainTraffic } from './explain-traffic'
import type { Explanation } from './explanation'
import { viewService } from './service-view'
import { writeSentence } from './write-sentence'

export function explainService(input: ExplainInput): Explanation {
  const view = viewService(input)
  const nodes = answerNodes(view)
  const layers = [
    explainName(view),
    explainServiceObject(view),
    explainSlices(view),
    explainPods(view),
    explainRules(view, nodes),
    explainConntrack(view),
    explainPolicy(view),
    explainTraffic(view, nodes),
  ]
  const findings = layers.flatMap((layer) => layer.findings)
  return {
    service: view.key,
    sentence: writeSentence(view, layers),
    layers,
    findings,
    isUndecided:
      findings.some(({ code }) => code === 'explain.undecided' || code === 'explain.policy-undecided') ||
      nodes.some(({ given }) => given?.hasFamily === true && given.isElsewhere),
  }
}
