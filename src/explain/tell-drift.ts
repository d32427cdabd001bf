/** Drift of a node's rules as findings: what differs in one sentence, what shows it, and what to do on that node. */
import { listOf } from '#base/text'
import { printShare } from '#trace/print-trace'
import type { NodeAnswers } from './answer-nodes'
import type { Drift } from './compare-rules'
import type { ExplainFinding } from './explanation'
import { explainFinding, type FindingCode } from './findings'
import type { ServiceView } from './service-view'

/** One finding a code, in the order in which the codes came up. */
export function tellDrift(
  view: ServiceView,
  answers: NodeAnswers,
  drifts: readonly Drift[],
): readonly ExplainFinding[] {
  const byCode = new Map<FindingCode, Drift[]>()
  for (const drift of drifts) byCode.set(drift.code, [...(byCode.get(drift.code) ?? []), drift])
  return [...byCode].map(([code, members]) => {
    const unique = (texts: readonly string[]): readonly string[] => [...new Set(texts)]
    const subjects = unique(members.map(({ subject }) => subject))
    const destinations = unique(members.map(({ destination }) => destination))
    return explainFinding(code, {
      about: view.service.meta,
      message: messageOf(code, { label: answers.label, subjects, destinations, part: partOf(members) }),
      evidence: unique(members.map(({ evidence }) => evidence))
        .slice(0, 10)
        .map((text) => `${answers.label}: ${text}`),
      hint: hintOf(code, syncHint(view, answers)),
    })
  })
}

type Said = {
  readonly label: string
  readonly subjects: readonly string[]
  readonly destinations: readonly string[]
  readonly part: string
}

/** The share that the subjects take together, of the destination where that is most. */
function partOf(members: readonly Drift[]): string {
  const sums = new Map<string, Map<string, number>>()
  for (const { destination, subject, share = 0 } of members) {
    const shares = sums.get(destination) ?? new Map<string, number>()
    sums.set(destination, shares.set(subject, share))
  }
  const totals = [...sums.values()].map((shares) => [...shares.values()].reduce((sum, share) => sum + share, 0))
  const most = Math.max(0, ...totals)
  return most > 0.9999 ? 'all connections' : `${printShare(most)} of connections`
}

function messageOf(code: FindingCode, { label, subjects, destinations, part }: Said): string {
  const at = listOf(destinations, 4)
  const what = listOf(subjects, 6)
  switch (code) {
    case 'explain.endpoint-missing-from-rules':
      return `the rules of ${label} leave out ${what} at ${at}`
    case 'explain.rule-to-no-endpoint':
      return `the rules of ${label} send ${part} to ${at} on to ${what}, which is no endpoint of the Service: those connections fail`
    case 'explain.rule-to-foreign-pod':
      return `the rules of ${label} send ${part} to ${at} on to ${what}, which is not a pod of the Service`
    case 'explain.rule-to-unready-endpoint':
      return `the rules of ${label} send ${part} to ${at} on to ${what}, which takes no new connections`
    case 'explain.rule-to-other-endpoint':
      return `the rules of ${label} send ${part} to ${at} on to ${what}, which traffic policy or hints do not choose there`
    case 'explain.partly-untranslated':
      return `part of the connections to ${at} meet no rule of ${label} that sends them on: they leave by routing and time out`
    case 'explain.rules-stop-packets':
      return `the rules of ${label} stop packets to ${at}, though there are endpoints`
    case 'explain.no-refusal':
      return `the rules of ${label} do not refuse packets to ${at}, which has no endpoints: clients hang instead of failing at once`
    case 'explain.undecided':
      return `what ${label} does with ${at} depends on something that the input does not tell`
    default:
      return `the rules of ${label} differ at ${at}`
  }
}

function hintOf(code: FindingCode, sync: string): string {
  switch (code) {
    case 'explain.rules-stop-packets':
      return 'the rule named is the one to mend'
    case 'explain.no-refusal':
      return `kube-proxy’s REJECT stands in table filter: mend the rule that the packet meets before it, or the jumps to KUBE-SERVICES that are missing`
    case 'explain.undecided':
      return 'trace the destination by itself (portolan trace) and say more of the packet'
    default:
      return sync
  }
}

/** Names the pod of kube-proxy on that node where the input has it. */
function syncHint({ input }: ServiceView, { node, given }: NodeAnswers): string {
  if (given?.findings.some(({ code }) => code === 'ruleset.both-variants') === true) {
    return 'flush the iptables variant that kube-proxy of that node no longer writes: the kernel runs both'
  }
  const proxy = [...input.cluster.pods.values()].find(
    (pod) => pod.nodeName === node && node !== undefined && pod.meta.labels['k8s-app'] === 'kube-proxy',
  )
  const who =
    proxy === undefined
      ? 'kube-proxy of that node'
      : `kube-proxy of that node (pod ${proxy.meta.namespace}/${proxy.meta.name})`
  return `the rules are older than the slices: see the log of ${who}, and restart it if it does not sync`
}
