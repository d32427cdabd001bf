/** The rules of nodes: where they send packets to the Service, and how that differs from what its slices ask for. */
import { compareText, listOf } from '#base/text'
import type { SkipReason } from '#compile/services/service-plan'
import { printShare } from '#trace/print-trace'
import { adoptFinding } from './adopt-finding'
import { mostGroups, type NodeAnswers } from './answer-nodes'
import { compareAffinity } from './compare-affinity'
import { compareNodes } from './compare-nodes'
import { compareRules, type Drift } from './compare-rules'
import { compareShares } from './compare-shares'
import { compareVariants, tellVariants } from './compare-variants'
import { type ExplainFinding, type Layer, type LayerTable, layerOf } from './explanation'
import { explainFinding } from './findings'
import { isExternal, printDestination } from './list-destinations'
import { placeFinding } from './place-finding'
import type { ServiceView } from './service-view'
import { tellDrift } from './tell-drift'
import { type Answer, outcomeText } from './trace-node'

export function explainRules(view: ServiceView, nodes: readonly NodeAnswers[]): Layer {
  const { service } = view
  if (service.type === 'ExternalName' || nodes.every(({ destinations }) => destinations.length === 0)) {
    const why = service.type === 'ExternalName' ? 'an ExternalName' : 'a headless'
    const fact = `${why} Service has no rules: clients connect to what its name answers`
    return { layer: 'rules', status: 'skipped', facts: [fact], findings: [] }
  }
  const settings = view.findings.filter((finding) => placeFinding(finding) === 'rules')
  return layerOf('rules', {
    facts: nodes.flatMap((one) => factsOf(one, view)),
    table: tableOf(nodes),
    findings: [
      ...noRules(view, nodes),
      ...nodes.flatMap((one) => driftOf(view, one)),
      ...compareNodes(view, nodes),
      ...settings.map((finding) => adoptFinding(finding)),
    ],
  })
}

function driftOf(view: ServiceView, one: NodeAnswers): readonly ExplainFinding[] {
  const drifts = joinDrifts(compareRules(view, one), compareVariants(view, one))
  const told = (one.given?.findings ?? []).map((finding) => adoptFinding(finding, { label: one.label, name: one.node }))
  return [
    ...told,
    ...tellVariants(view, one),
    ...tellDrift(view, one, drifts),
    ...compareShares(view, one, drifts.length === 0),
    ...compareAffinity(view, one),
  ]
}

/** What a variant by itself shows says more than the same seen in both together. */
function joinDrifts(together: readonly Drift[], apart: readonly Drift[]): readonly Drift[] {
  const keyOf = ({ code, subject }: Drift): string => `${code} ${subject}`
  const known = new Set(apart.map(keyOf))
  return [...apart, ...together.filter((drift) => !known.has(keyOf(drift)))]
}

function factsOf(one: NodeAnswers, { input, service }: ServiceView): readonly string[] {
  const { given, family, label, alike, node, plan } = one
  if (given === undefined) {
    const others = alike.length === 0 ? '' : `; the same on ${listOf(alike, 6)}`
    const left = input.cluster.nodes.size - alike.length - 1
    const unseen = left >= mostGroups ? '; nodes beyond the first are not traced: name one with --node' : ''
    return [`computed for ${label}, no rules of a node were given${others}${unseen}`]
  }
  const files = listOf(given.ruleset.files)
  if (!given.hasFamily) {
    return [`${files} holds no ${family === 'ipv4' ? 'IPv4' : 'IPv6'} rules: those of ${label} are not looked at`]
  }
  if (given.isElsewhere) return [`the rules in ${files} do not hold the Services of ${label}`]
  const isLocal = plan.ports.some(({ usesLocalEndpoints }) => usesLocalEndpoints)
  const unnamed =
    node === undefined && isLocal
      ? `; say whose they are (--ruleset NODE=FILE) to judge what policy Local of ${service.meta.name} chooses`
      : ''
  return [`${label}: the rules in ${files}${unnamed}`]
}

export function answersShown({ given, expected }: NodeAnswers): readonly Answer[] {
  return given === undefined ? expected : given.answers
}

/** The class of clients that each kind of address is for. */
function isRepresentative({ destination, from }: Answer): boolean {
  return from === (isExternal(destination) ? 'outside' : 'pod')
}

function tableOf(nodes: readonly NodeAnswers[]): LayerTable {
  const rows = nodes.flatMap((one) =>
    answersShown(one)
      .filter(isRepresentative)
      .map((answer) => [
        one.node ?? one.label,
        printDestination(answer.destination),
        answer.destination.kind,
        answer.trace.verdict.kind,
        targetsText(answer),
      ]),
  )
  return { columns: ['NODE', 'SENT TO', 'WHICH IS', 'VERDICT', 'GOES TO'], rows }
}

/** Equal shares are told once. */
export function targetsText({ trace }: Answer): string {
  const { targets } = trace
  const [first] = targets
  if (first === undefined) return trace.verdict.kind === 'allowed' ? 'no rule takes it' : ''
  const isEven = targets.every(({ share }) => Math.abs(share - first.share) < 0.0005)
  if (!isEven)
    return listOf(
      targets.map(({ address, share }) => `${address} ${printShare(share)}`),
      4,
    )
  const texts = listOf(targets.map(({ address }) => address).sort(compareText), 4)
  return targets.length === 1 ? texts : `${texts}, ${printShare(first.share)} each`
}

/** Packets that no rule takes though the address is the Service's; a refusal for want of endpoints is another matter. */
function noRules(view: ServiceView, nodes: readonly NodeAnswers[]): readonly ExplainFinding[] {
  const lost = nodes.flatMap((one) =>
    answersShown(one).flatMap((answer) => {
      const wanted = one.expected.find(
        (other) => other.destination === answer.destination && other.from === answer.from,
      )
      const isRefused = wanted?.trace.verdict.kind === 'rejected' || wanted?.trace.verdict.kind === 'dropped'
      const isLost = answer.trace.verdict.kind === 'allowed' && answer.trace.targets.length === 0 && !isRefused
      return isLost && isRepresentative(answer) ? [{ one, answer }] : []
    }),
  )
  if (lost.length === 0) return []
  const places = [...new Set(lost.map(({ answer }) => printDestination(answer.destination)))]
  const labels = [...new Set(lost.flatMap(({ one }) => [one.label, ...one.alike]))]
  const skipped = nodes.flatMap(({ plan }) => plan.skipped)[0]?.why
  const { because, hint } = skipped === undefined ? notSynced : skipWords[skipped]
  return [
    explainFinding('explain.no-rules', {
      about: view.service.meta,
      message: `no rule of ${listOf(labels, 4)} takes packets to ${listOf(places, 4)}, because ${because}: they leave by routing, and clients time out`,
      evidence: lost
        .slice(0, 10)
        .map(({ one, answer }) => `${one.label}: ${printDestination(answer.destination)}: ${outcomeText(answer)}`),
      hint,
    }),
  ]
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
