/** The client's address in a node's rules: where the source is translated, and pods that reach themselves. */
import { parseEndpoint, printIp } from '#base/ip'
import { listOf } from '#base/text'
import type { NodeAnswers } from './answer-nodes'
import { sourceWords } from './choose-sources'
import type { ExplainFinding } from './explanation'
import { explainFinding } from './findings'
import { type Destination, isExternal, printDestination } from './list-destinations'
import type { ServiceView } from './service-view'
import { type Answer, masqueradeOf, traceNode } from './trace-node'

export function compareSource(view: ServiceView, answers: NodeAnswers): readonly ExplainFinding[] {
  if (answers.given === undefined || answers.given.isElsewhere) return []
  return [...compareMasquerade(view, answers), ...compareHairpin(view, answers)]
}

function compareMasquerade(view: ServiceView, answers: NodeAnswers): readonly ExplainFinding[] {
  const wrong = pairsOf(answers).flatMap(({ actual, wanted }) => {
    const [is, should] = [masqueradeOf(actual), masqueradeOf(wanted)]
    if (is === should || is === 'some' || should === 'some' || !isComparable(view, answers, actual)) return []
    const did = is === 'always' ? 'is translated to an address of the node' : 'is left as it is'
    const rule = actual.trace.masquerade[0]?.rule
    const from =
      actual.source === undefined ? sourceWords[actual.from] : `${sourceWords[actual.from]} (${actual.source})`
    const shown = rule === undefined ? '' : `, by ${rule}`
    return [
      {
        is,
        from: actual.from,
        text: `${printDestination(actual.destination)} from ${from}: the source ${did}${shown}`,
      },
    ]
  })
  const [first] = wrong
  if (first === undefined) return []
  const clients = [...new Set(wrong.map(({ from }) => sourceWords[from]))]
  const isLost = first.is === 'always'
  return [
    explainFinding('explain.masquerade-differs', {
      about: view.service.meta,
      message: isLost
        ? `the rules of ${answers.label} translate the source of packets from ${listOf(clients)}, which should keep their address`
        : `the rules of ${answers.label} leave the source of packets from ${listOf(clients)}, so answers do not come back through the node`,
      evidence: wrong.slice(0, 10).map(({ text }) => `${answers.label}: ${text}`),
      hint: isLost
        ? 'compare kube-proxy’s clusterCIDR, masqueradeAll and detectLocalMode with the range the pods really have'
        : 'see that chains KUBE-MARK-MASQ and KUBE-POSTROUTING are whole, and that nothing before them accepts the packet',
    }),
  ]
}

/**
 * Where it is not known how kube-proxy tells local traffic, only what never depends on that can be compared. A rule that
 * translates pods and excepts some range was told the wrong range; one that excepts none may be masqueradeAll.
 */
function isComparable({ settings }: ServiceView, { plan }: NodeAnswers, { from, destination, trace }: Answer): boolean {
  if (plan.localTraffic !== undefined) return plan.localTraffic.kind === 'source' || from !== 'pod'
  if (isExternal(destination)) return from === 'outside'
  const hasRange = trace.masquerade.every(({ rule }) => /! -s |saddr != /.test(rule))
  return from === 'pod' && settings.masqueradeAll !== true && hasRange
}

/** Answers that both lead to endpoints. */
export function pairsOf({
  given,
  expected,
}: NodeAnswers): readonly { readonly actual: Answer; readonly wanted: Answer }[] {
  return (given?.answers ?? []).flatMap((actual) => {
    const wanted = expected.find((one) => one.destination === actual.destination && one.from === actual.from)
    const both = wanted !== undefined && actual.trace.targets.length > 0 && wanted.trace.targets.length > 0
    return both ? [{ actual, wanted }] : []
  })
}

/** How many endpoints are asked whether they reach themselves: each costs a trace over all of them. */
function mostHairpins(endpoints: number): number {
  return Math.max(1, Math.min(20, Math.floor(2000 / endpoints)))
}

/** Without translation the pod would get its own packet and answer itself past the node. */
function compareHairpin(view: ServiceView, answers: NodeAnswers): readonly ExplainFinding[] {
  const wrong = pairsOf(answers)
    .filter(({ actual }) => actual.from === 'pod' && actual.destination.kind === 'cluster IP')
    .flatMap(({ actual }) => {
      const own = actual.trace.targets.map(({ address }) => address).filter((address) => isPodOf(view, address))
      return own
        .slice(0, mostHairpins(own.length))
        .filter((address) => !isHairpinTranslated(answers, actual.destination, address))
    })
  if (wrong.length === 0) return []
  const pods = [...new Set(wrong)]
  return [
    explainFinding('explain.hairpin-not-masqueraded', {
      about: view.service.meta,
      message: `by the rules of ${answers.label}, ${listOf(pods, 6)} cannot reach itself through the Service: its source is not translated`,
      evidence: pods.slice(0, 10).map((address) => `${answers.label}: from ${address} to itself: the source stays`),
      hint: 'each endpoint chain needs its rule "-s POD -j KUBE-MARK-MASQ"; after that the bridge’s hairpin mode decides',
    }),
  ]
}

function isPodOf({ pods, holders }: ServiceView, address: string): boolean {
  const ip = parseEndpoint(address)
  const text = ip === undefined ? '' : printIp(ip.ip)
  return !holders.nodes.has(text) && pods.some(({ podIPs }) => podIPs.includes(text))
}

function isHairpinTranslated({ given }: NodeAnswers, destination: Destination, address: string): boolean {
  const source = parseEndpoint(address)?.ip
  if (given === undefined || source === undefined) return true
  const sources = { pod: source, node: undefined, outside: undefined }
  const answers = traceNode({ ...given.rules, isBrief: true }, [destination], sources)
  const own = answers.find(({ from }) => from === 'pod')
  return own === undefined || own.trace.masquerade.length > 0
}
