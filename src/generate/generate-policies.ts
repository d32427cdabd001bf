/** From gathered flows to policies, one for each workload, with the proof that they deny none of the flows they came from. */
import type { Finding } from '#base/finding'
import { countOf, listOf } from '#base/text'
import { allowDns } from './allow-dns'
import { chooseTargets, type Target, type TargetChoice } from './choose-targets'
import { collectRules, type TargetRules } from './collect-rules'
import { policyName } from './describe-target'
import { generateFinding } from './findings'
import { type Gathering, type LeftOut, observedIndex } from './gather-flows'
import { printPolicy } from './policy-text'
import { type PolicyKind, type Proof, provePolicies } from './prove-policies'
import { renderCiliumPolicy } from './render-cilium-policy'
import { renderNetworkPolicy } from './render-network-policy'

export type { PolicyKind, Proof } from './prove-policies'

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
  /** `shop-db-deployment-networkpolicy.yaml`. */
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
  const index = observedIndex(gathering)
  const { targets, findings, known } = chooseTargets(gathering, index, choice)
  const all = collectRules(gathering, index, targets)
  const told = all.flatMap((rules) => tellRules(rules, allowsDns === true))
  if (allowsDns === true) allowDns(index, all)
  const render = kind === 'networkpolicy' ? renderNetworkPolicy : renderCiliumPolicy
  const policies = all.map((rules): GeneratedPolicy => {
    const { target } = rules
    const name = policyName(target)
    const fileName = `${target.namespace}-${name}-${kind}.yaml`
    return { namespace: target.namespace, name, target, fileName, text: printPolicy(render(rules)) }
  })
  const proof = provePolicies(
    policies.map(({ text }) => text),
    { gathering, index, kind },
  )
  return { policies, findings: [...findings, ...told, ...tellLeftOut(gathering)], proof, known }
}

function tellRules({ target, ingress, egress }: TargetRules, allowsDns: boolean): readonly Finding[] {
  const { kind, namespace, name, isRecorded } = target
  const object = { kind, namespace, name }
  if (ingress.size + egress.size === 0) {
    const rest = allowsDns ? 'everything but the DNS' : 'everything'
    const message = `nothing that could be allowed was seen of it: its policy denies ${rest}`
    return [generateFinding('generate.nothing-seen', { message, object })]
  }
  if (isRecorded) return []
  const message = 'nothing was recorded at its own pods: what it sends is not known, and its policy denies it'
  return [generateFinding('generate.only-peers-told', { message, object })]
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
