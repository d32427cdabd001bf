/** From gathered flows to policies, one for each workload, with the proof that they deny none of the flows they came from. */
import type { Finding, ObjectRef } from '#base/finding'
import { compareText, countOf, listOf } from '#base/text'
import { allowDns } from './allow-dns'
import { chooseTargets, type Target, type TargetChoice } from './choose-targets'
import { collectRules, type TargetRules } from './collect-rules'
import { generateFinding } from './findings'
import { type Gathering, type LeftOut, observedIndex } from './gather-flows'
import { type PolicyKind, policyName } from './policy-name'
import { printPolicy } from './policy-text'
import { type Proof, provePolicies } from './prove-policies'
import { renderCiliumPolicy } from './render-cilium-policy'
import { renderNetworkPolicy } from './render-network-policy'
import { type RuleDraft, strangersOf } from './rule-draft'
import { surroundingsOf } from './select-pods'

export type { PolicyKind } from './policy-name'
export type { Proof } from './prove-policies'

export type GenerateOptions = {
  readonly kind: PolicyKind
  readonly choice: TargetChoice
  /** Adds a rule for the cluster's DNS to every policy. */
  readonly allowsDns?: boolean
}

export type GeneratedPolicy = {
  readonly namespace: string
  readonly name: string
  readonly target: Pick<Target, 'kind' | 'name'>
  /** `shop.db-deployment.networkpolicy.yaml`. */
  readonly fileName: string
  readonly text: string
}

export type Generated = {
  /** By namespace, name and kind of the workload. */
  readonly policies: readonly GeneratedPolicy[]
  readonly findings: readonly Finding[]
  readonly proof: Proof
  /** `namespace/Kind/name` of all that is known, for a choice that fits none. */
  readonly known: readonly string[]
}

/** The same for any order in which the flows were gathered. */
export function generatePolicies(gathering: Gathering, { kind, choice, allowsDns }: GenerateOptions): Generated {
  const surroundings = surroundingsOf(observedIndex(gathering), kind)
  const { targets, findings, known } = chooseTargets(gathering, surroundings, choice)
  const all = collectRules(gathering, surroundings, targets)
  const told = all.flatMap((rules) => tellRules(rules, allowsDns === true))
  if (allowsDns === true) allowDns(surroundings, all)
  const render = kind === 'networkpolicy' ? renderNetworkPolicy : renderCiliumPolicy
  const policies = all.map((rules): GeneratedPolicy => {
    const { target } = rules
    const name = policyName(target)
    // A namespace has no dot, so that no two policies have one file.
    const fileName = `${target.namespace}.${name}.${kind}.yaml`
    return { namespace: target.namespace, name, target, fileName, text: printPolicy(render(rules)) }
  })
  const proof = provePolicies(
    policies.map(({ text }) => text),
    { gathering, surroundings, kind },
  )
  const unheld = targets.flatMap((target) => tellUnheld(target, proof))
  return { policies, findings: [...findings, ...told, ...unheld, ...tellLeftOut(gathering)], proof, known }
}

/** A policy that holds for none of the pods proves nothing of them. */
function tellUnheld(target: Target, { held }: Proof): readonly Finding[] {
  const { kind, namespace, name, isHostNetwork, isRecorded } = target
  if (!isRecorded || isHostNetwork || held.has(`${namespace}/${policyName(target)}`)) return []
  const message =
    'its policy selects none of the pods that flows were recorded at: they had other labels than it has now'
  const hint = 'let flows be recorded at the pods that it has now, and generate its policy from those'
  return [{ ...generateFinding('generate.selects-nobody', { message, object: { kind, namespace, name } }), hint }]
}

function tellRules({ target, ingress, egress, untold }: TargetRules, allowsDns: boolean): readonly Finding[] {
  const { kind, namespace, name, isRecorded } = target
  const object = { kind, namespace, name }
  const notes = [...tellStrangers(object, [...ingress.values(), ...egress.values()]), ...tellUntold(object, untold)]
  if (ingress.size + egress.size === 0) {
    const rest = allowsDns ? 'everything but the DNS' : 'everything'
    const message = `nothing that could be allowed was seen of it: its policy denies ${rest}`
    return [generateFinding('generate.nothing-seen', { message, object })]
  }
  if (isRecorded) return notes
  const message = 'nothing was recorded at its own pods: what it sends is not known, and its policy denies it'
  return [generateFinding('generate.only-peers-told', { message, object }), ...notes]
}

function tellUntold(object: ObjectRef, untold: ReadonlySet<string>): readonly Finding[] {
  if (untold.size === 0) return []
  const names = listOf([...untold].sort(compareText))
  const message = `the endpoints or target ports of ${names} are not known: its rule is as the connection was seen, and will not let it through where these are others`
  const hint = 'give Services and EndpointSlices with --from'
  return [generateFinding('generate.service-untold', { message, object, hint })]
}

function tellStrangers(object: ObjectRef, drafts: readonly RuleDraft[]): readonly Finding[] {
  const strangers = [...new Set(drafts.flatMap(strangersOf))].sort(compareText)
  if (strangers.length === 0) return []
  const message = `rules of its policy hold for ${listOf(strangers)} too, whose pods have the labels of a peer that was seen`
  const hint = 'give them a label that the peer lacks, or the peer one that they lack'
  return [generateFinding('generate.lets-others', { message, object, hint })]
}

const reasons: Readonly<Record<LeftOut, string>> = {
  'no-port': 'without the port that was connected to',
  protocol: 'of a protocol without ports',
  'no-namespace': 'of a pod without a namespace',
  'no-address': 'without the peer’s address',
  'not-an-address': 'with a peer that is no address',
  loopback: 'of a pod’s loopback',
  itself: 'of a pod with itself',
  'link-local': 'with a link-local address',
}

function tellLeftOut({ leftOut }: Gathering): readonly Finding[] {
  if (leftOut.size === 0) return []
  const parts = (Object.keys(reasons) as LeftOut[]).flatMap((reason) => {
    const count = leftOut.get(reason)
    return count === undefined ? [] : [`${count} ${reasons[reason]}`]
  })
  const total = [...leftOut.values()].reduce((sum, count) => sum + count, 0)
  const message = `of ${countOf(total, 'row')} no rule is made: ${listOf(parts)}`
  return [generateFinding('generate.flows-left-out', { message })]
}
