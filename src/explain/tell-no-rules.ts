/** Addresses of the Service that no rule of a node takes, and why that is so. */
import { listOf } from '#base/text'
import type { SkipReason } from '#compile/services/service-plan'
import { answersShown, type NodeAnswers } from './answer-nodes'
import type { ExplainFinding } from './explanation'
import { explainFinding } from './findings'
import { isRepresentative, printDestination } from './list-destinations'
import type { ServiceView } from './service-view'
import { type Answer, isStoppedAsUnknown, outcomeText } from './trace-node'

/** A refusal for want of endpoints is another matter. */
export function tellNoRules(view: ServiceView, nodes: readonly NodeAnswers[]): readonly ExplainFinding[] {
  const lost = nodes.flatMap((one) =>
    answersShown(one)
      .filter((answer) => isRepresentative(answer) && isTakenByNone(one, answer))
      .map((answer) => ({ one, answer })),
  )
  const [first] = lost
  if (first === undefined) return []
  const places = [...new Set(lost.map(({ answer }) => printDestination(answer.destination)))]
  const labels = [...new Set(lost.flatMap(({ one }) => [one.label, ...one.alike]))]
  const skipped = nodes.flatMap(({ plan }) => plan.skipped)[0]?.why
  const { because, hint } = skipped === undefined ? notSynced : skipWords[skipped]
  return [
    explainFinding('explain.no-rules', {
      about: view.service.meta,
      message: `no rule of ${listOf(labels, 4)} takes packets to ${listOf(places, 4)}, because ${because}: ${effectOf(first.answer)}`,
      evidence: lost
        .slice(0, 10)
        .map(({ one, answer }) => `${one.label}: ${printDestination(answer.destination)}: ${outcomeText(answer)}`),
      hint,
    }),
  ]
}

function isTakenByNone({ expected }: NodeAnswers, answer: Answer): boolean {
  const { verdict, targets } = answer.trace
  const wanted = expected.find((one) => one.destination === answer.destination && one.from === answer.from)
  const isStopped = wanted?.trace.verdict.kind === 'rejected' || wanted?.trace.verdict.kind === 'dropped'
  const isRefused = isStopped && wanted !== undefined && !isStoppedAsUnknown(wanted)
  return targets.length === 0 && !isRefused && (verdict.kind === 'allowed' || isStoppedAsUnknown(answer))
}

function effectOf({ trace }: Answer): string {
  if (trace.verdict.kind === 'allowed') return 'they leave by routing, and clients time out'
  return trace.verdict.kind === 'dropped'
    ? 'they are dropped as for no Service at all'
    : 'they are rejected as for no such port'
}

type Words = { readonly because: string; readonly hint: string }

const notSynced: Words = {
  because: 'the rules are older than the Service, or were flushed',
  hint: 'see that kube-proxy runs on that node and syncs (its log); restart it',
}

const skipWords: Readonly<Record<SkipReason, Words>> = {
  'other-proxy': {
    because: 'the label service.kubernetes.io/service-proxy-name leaves it to another proxy',
    hint: 'take the label away, or see that the proxy it names runs',
  },
  'headless-label': {
    because: 'the label service.kubernetes.io/headless hides it from kube-proxy',
    hint: 'take the label away: it is for slices, and the controller sets it',
  },
  headless: {
    because: 'kube-proxy passes over headless Services with all their addresses',
    hint: 'give it a cluster IP (make another Service: clusterIP cannot be changed), or take the external addresses away',
  },
  'external-name': { because: 'it is an ExternalName', hint: 'use the name' },
  'no-cluster-ip': { because: 'it has no cluster IP yet', hint: 'see why the API server allots none' },
  'no-cluster-ip-in-family': {
    because: 'it has no cluster IP of that family',
    hint: 'add the family to spec.ipFamilies',
  },
}
