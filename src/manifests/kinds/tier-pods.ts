/** The pods that a cluster-wide policy names, as its subject or as a peer. */

import type { LabelSelector } from '#model/selector'
import type { NamespacedPods } from '#model/tier-policy'
import { type Fields, has, mapAt, pathOf, report } from './fields'
import { checkKnown, refuse } from './policy-refusal'
import { readSelector, type SelectorProblem } from './policy-selector'
import type { TierGrammar } from './tier-grammar'

const everything: LabelSelector = { matchLabels: {}, matchExpressions: [] }

/** A subject that nothing can read makes the whole policy void. */
export function readSubject(subject: Fields, grammar: TierGrammar): NamespacedPods {
  const { pods, problems } = readPods(subject, grammar)
  for (const { fields, key, problem, hint } of problems) {
    const message = `the API server takes this object, but nothing that enforces it can read its subject: ${problem}; it is left out`
    report(fields, key, { code: 'policy.not-enforced', message, hint })
  }
  return { ...pods, path: pathOf(subject, '') }
}

/** `fields` holds `namespaces` or `pods`; problems are those of selectors, which a CRD's schema does not check. */
export function readPods(
  fields: Fields,
  grammar: TierGrammar,
): { readonly pods: NamespacedPods; readonly problems: readonly SelectorProblem[] } {
  const path = pathOf(fields, '')
  if (has(fields, 'namespaces')) {
    const read = readSelector(fields, 'namespaces')
    const namespaceSelector = read?.selector ?? everything
    return { pods: { kind: 'pods', path, namespaceSelector, podSelector: everything }, problems: read?.problems ?? [] }
  }
  const pods = mapAt(fields, 'pods')
  checkKnown(pods, ['namespaceSelector', 'podSelector'])
  const namespaces = readSelector(pods, 'namespaceSelector')
  const selected = readSelector(pods, 'podSelector')
  if (has(fields, 'pods') && selected === undefined) refuseMissing(pods, 'podSelector')
  if (has(fields, 'pods') && namespaces === undefined && !grammar.hasOptionalNamespaces) {
    refuseMissing(pods, 'namespaceSelector')
  }
  const namespaceSelector = namespaces?.selector ?? everything
  const podSelector = selected?.selector ?? everything
  return {
    pods: { kind: 'pods', path, namespaceSelector, podSelector },
    problems: [...(namespaces?.problems ?? []), ...(selected?.problems ?? [])],
  }
}

function refuseMissing(pods: Fields, key: string): void {
  refuse(pods, key, { problem: `pods are named without ${key}`, hint: `write ${key}: {} for all of them` })
}
