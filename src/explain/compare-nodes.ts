/** Nodes against each other: those that should answer alike and do not. */
import { compareText, listOf } from '#base/text'
import type { NodeAnswers } from './answer-nodes'
import { addressesOf } from './compare-rules'
import type { ExplainFinding } from './explanation'
import { explainFinding } from './findings'
import { isRepresentative } from './list-destinations'
import type { ServiceView } from './service-view'
import type { Answer } from './trace-node'

type Said = { readonly label: string; readonly is: string; readonly should: string }

/** One finding for the Service: where nodes differ in one port, they mostly do in all. */
export function compareNodes(view: ServiceView, nodes: readonly NodeAnswers[]): readonly ExplainFinding[] {
  const byPlace = new Map<string, Said[]>()
  for (const { given, expected, label } of nodes) {
    for (const actual of given?.answers ?? []) {
      const wanted = expected.find((one) => one.destination === actual.destination && one.from === actual.from)
      if (wanted === undefined || !isRepresentative(actual)) continue
      const place = placeOf(actual)
      const list = byPlace.get(place) ?? []
      list.push({ label, is: answerText(actual), should: answerText(wanted) })
      byPlace.set(place, list)
    }
  }
  const disagreeing = [...byPlace].flatMap(([place, said]) => disagreement(said).map((texts) => ({ place, texts })))
  const [first] = disagreeing
  if (first === undefined) return []
  return [
    explainFinding('explain.nodes-disagree', {
      about: view.service.meta,
      message: `nodes that should answer alike do not at ${listOf([...new Set(disagreeing.map(({ place }) => place))], 4)}: ${first.texts.join('; ')}`,
      evidence: disagreeing.slice(0, 10).flatMap(({ place, texts }) => texts.map((text) => `${place}: ${text}`)),
      hint: 'the node whose answer is not that of the slices does not sync: see the other findings about it',
    }),
  ]
}

/** A node port is the same port on every node, at an address of its own. */
function placeOf({ destination }: Answer): string {
  const { kind, address, port, protocol } = destination
  return kind === 'node port' ? `node port ${port}/${protocol}` : `${address} port ${port}/${protocol}`
}

function answerText(answer: Answer): string {
  const targets = [...addressesOf(answer)].sort(compareText)
  if (targets.length > 0) return `sends to ${listOf(targets, 6)}`
  const { kind } = answer.trace.verdict
  return kind === 'allowed' ? 'has no rule for it' : `says ${kind}`
}

/** Among the nodes that should say the same, the groups that say different things. */
function disagreement(said: readonly Said[]): readonly (readonly string[])[] {
  const byShould = new Map<string, Map<string, string[]>>()
  for (const { label, is, should } of said) {
    const groups = byShould.get(should) ?? new Map<string, string[]>()
    byShould.set(should, groups)
    groups.set(is, [...(groups.get(is) ?? []), label])
  }
  return [...byShould.values()]
    .filter((groups) => groups.size > 1)
    .map((groups) => [...groups].map(([is, labels]) => `${listOf(labels, 6)} ${is}`))
}
