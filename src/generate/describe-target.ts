/** What a policy says of itself: its name, labels and annotations, and the comments on top. */
import { compareText, countOf, listOf } from '#base/text'
import { printInstant, printNaive } from '#flows/instant'
import type { Target } from './choose-targets'
import type { TargetRules } from './collect-rules'
import { policyName } from './policy-name'

export function metadataOf({ target, firstSeen, lastSeen }: TargetRules): object {
  const { namespace, kind, name } = target
  const isLabel = name.length <= 63
  return {
    name: policyName(target),
    namespace,
    labels: {
      ...(isLabel && { 'app.kubernetes.io/name': name }),
      'app.kubernetes.io/managed-by': 'portolan',
    },
    annotations: {
      'portolan.dev/workload': `${kind}/${name}`,
      ...(firstSeen !== undefined && { 'portolan.dev/observed-from': printInstant(firstSeen) }),
      ...(lastSeen !== undefined && { 'portolan.dev/observed-until': printInstant(lastSeen) }),
    },
  }
}

const mostRefused = 20

/** `isCilium` tells which policy would hold for host-network pods. */
export function headerOf(rules: TargetRules, isCilium: boolean): readonly string[] {
  const { target, refused } = rules
  const lines = [...(target.isHostNetwork ? hostWarning(target, isCilium) : [])]
  if (target.alsoSelects.length > 0) {
    lines.push(`its selector takes in the pods of ${listOf(target.alsoSelects)} too, which have the same labels`)
  }
  if (rules.ingress.size + rules.egress.size === 0) {
    lines.push('nothing was seen that could be allowed: everything is denied')
  } else if (!target.isRecorded && rules.firstSeen !== undefined) {
    lines.push('nothing was recorded at its own pods: the rules are what its peers recorded')
  }
  const told = [...refused.values()].sort((a, b) => compareText(a.text, b.text))
  for (const { text, hits, lastSeen } of told.slice(0, mostRefused)) {
    lines.push(
      `not allowed when it was seen, and no reason for a rule: ${text}, ${countOf(hits, 'time')}, last at ${printNaive(lastSeen)}`,
    )
  }
  if (told.length > mostRefused) lines.push(`and ${told.length - mostRefused} more that were not allowed`)
  return lines
}

function hostWarning({ namespace, name }: Target, isCilium: boolean): readonly string[] {
  const selector = isCilium ? 'endpointSelector' : 'podSelector'
  return [
    `WARNING: the pods of ${namespace}/${name} have their node's network: a ${selector} does not match them`,
    'WARNING: this policy shows what was seen, and does not restrict them',
    'WARNING: to restrict them, write a CiliumClusterwideNetworkPolicy with a nodeSelector',
  ]
}
