/** The rules of nodes: where they send packets to the Service, and how that differs from what its slices ask for. */
import { compareText, countOf, listOf } from '#base/text'
import type { Service } from '#model/service'
import { printShare } from '#trace/print-trace'
import { adoptFinding } from './adopt-finding'
import { answersShown, type NodeAnswers } from './answer-nodes'
import { compareAffinity } from './compare-affinity'
import { compareNodes } from './compare-nodes'
import { compareRules, type Drift } from './compare-rules'
import { compareShares } from './compare-shares'
import { compareVariants, tellVariants } from './compare-variants'
import { type ExplainFinding, type Layer, type LayerTable, layerOf } from './explanation'
import { explainFinding } from './findings'
import { isRepresentative, printDestination } from './list-destinations'
import { placeFinding } from './place-finding'
import type { ServiceView } from './service-view'
import { tellDrift } from './tell-drift'
import { tellNoRules } from './tell-no-rules'
import type { Answer } from './trace-node'

export function explainRules(view: ServiceView, nodes: readonly NodeAnswers[]): Layer {
  const { service } = view
  if (service.type === 'ExternalName' || nodes.every(({ destinations }) => destinations.length === 0)) {
    const why = service.type === 'ExternalName' ? 'an ExternalName' : 'a headless'
    const fact = `${why} Service has no rules: clients connect to what its name answers`
    return { layer: 'rules', status: 'skipped', facts: [fact], findings: [] }
  }
  const settings = view.findings.filter((finding) => placeFinding(finding) === 'rules')
  return layerOf('rules', {
    // A node has a walk for each family, and says the same of both.
    facts: [...new Set(nodes.flatMap((one) => factsOf(one, view.service))), ...unseenFact(view, nodes)],
    table: tableOf(nodes),
    findings: [
      ...tellNoRules(view, nodes),
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
    ...tellIncomplete(view, one),
    ...tellVariants(view, one),
    ...tellDrift(view, one, drifts),
    ...compareShares(view, one, drifts.length === 0),
    ...compareAffinity(view, one),
  ]
}

/** That no rule takes a packet shows nothing where rules are missing. */
function tellIncomplete({ service }: ServiceView, { given, label }: NodeAnswers): readonly ExplainFinding[] {
  if (given?.ruleset.isIncomplete !== true) return []
  const files = listOf(given.ruleset.files)
  return [
    explainFinding('explain.rules-incomplete', {
      about: service.meta,
      message: `${files} lacks part of the rules of ${label}, so they are not compared`,
      evidence: [`${files}: cut, one part of a ruleset, or listed without what sets and maps hold`],
      hint: 'take them again whole, into a file',
    }),
  ]
}

/** What a variant by itself shows says more than the same seen in both together. */
function joinDrifts(together: readonly Drift[], apart: readonly Drift[]): readonly Drift[] {
  const keyOf = ({ code, subject }: Drift): string => `${code} ${subject}`
  const known = new Set(apart.map(keyOf))
  return [...apart, ...together.filter((drift) => !known.has(keyOf(drift)))]
}

/** Of many nodes with endpoints of their own some are traced; what they do is alike. */
function unseenFact({ input }: ServiceView, nodes: readonly NodeAnswers[]): readonly string[] {
  const seen = new Set(nodes.flatMap(({ label, alike }) => [label, ...alike]))
  const left = input.cluster.nodes.size - seen.size
  if (input.node !== undefined || left <= 0 || nodes.some(({ given }) => given !== undefined)) return []
  return [`${countOf(left, 'node')} with endpoints of their own not traced: name one with --node`]
}

function factsOf(one: NodeAnswers, service: Service): readonly string[] {
  const { given, family, label, alike, node, plan } = one
  if (given === undefined) {
    const others = alike.length === 0 ? '' : `; the same on ${listOf(alike, 6)}`
    return [`computed for ${label}, no rules of a node were given${others}`]
  }
  const files = listOf(given.ruleset.files)
  if (!given.hasFamily) {
    return [`${files} holds no ${family === 'ipv4' ? 'IPv4' : 'IPv6'} rules: those of ${label} are not looked at`]
  }
  if (given.ruleset.isIncomplete === true) return [`${label}: the rules in ${files}, which are not whole`]
  if (given.isElsewhere) return [`the rules in ${files} do not hold the Services of ${label}`]
  const isLocal = plan.ports.some(({ usesLocalEndpoints }) => usesLocalEndpoints)
  const unnamed =
    node === undefined && isLocal
      ? `; say whose they are (--ruleset NODE=FILE) to judge what policy Local of ${service.meta.name} chooses`
      : ''
  return [`${label}: the rules in ${files}${unnamed}`]
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
