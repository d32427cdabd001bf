/** What lint tells of policies: each code with what it means. */
import type { Finding, FindingTable } from '#base/finding'
import type { PolicySource } from '#compile/policy/policy-rule'

export const lintFindings = {
  'policy.other-semantics': {
    severity: 'warning',
    meaning: 'Policies of Cilium are in the input and Kubernetes’ semantics are asked for, which know nothing of them.',
  },
  'policy.no-workloads': {
    severity: 'warning',
    meaning: 'Of two inputs to compare one holds no workload, so that all connections of the other differ.',
  },
  'policy.selects-nothing': {
    severity: 'warning',
    meaning: 'The subject of a policy matches no pod (and no node) of the input, so that the policy does nothing.',
  },
  'policy.peer-matches-nothing': {
    severity: 'warning',
    meaning: 'A peer of a rule matches nothing in the input.',
  },
  'policy.undecided-peer': {
    severity: 'info',
    meaning: 'Whom a peer of a rule matches the input cannot tell; answers that depend on it are unknown.',
  },
  'policy.namespace-unlabelled': {
    severity: 'warning',
    meaning: 'A namespaceSelector asks for a label that no namespace of the input has.',
  },
  'policy.isolates-by-accident': {
    severity: 'warning',
    meaning:
      'A policy with rules for one direction closes the other one whole, because policyTypes names it, or is missing.',
  },
  'policy.rules-without-type': {
    severity: 'warning',
    meaning: 'A policy has rules for a direction that its policyTypes do not name; Kubernetes ignores them.',
  },
  'policy.no-policy-types': {
    severity: 'info',
    meaning: 'A NetworkPolicy does not say its policyTypes; the API server fills them in by the rules there are.',
  },
  'policy.no-namespace': {
    severity: 'info',
    meaning: 'A policy does not say its namespace, so that it lands wherever kubectl points; it is read as in default.',
  },
  'policy.no-protocol': {
    severity: 'info',
    meaning: 'A port of a rule does not say its protocol, which makes it TCP.',
  },
  'policy.no-such-port': {
    severity: 'warning',
    meaning:
      'A rule names a port that no container of the pods it is about has; for a number that is a hint, for a name it means no connection.',
  },
  'policy.dns-blocked': {
    severity: 'warning',
    meaning: 'Pods that may send somewhere cannot ask the cluster’s DNS over UDP or TCP.',
  },
  'policy.redundant-rule': {
    severity: 'info',
    meaning: 'Another rule allows or denies all that a rule does; without it nothing changes.',
  },
  'policy.shadowed-rule': {
    severity: 'warning',
    meaning: 'What goes before it decides all that a rule matches, in another way; the rule never has any effect.',
  },
  'policy.overlapping-ranges': {
    severity: 'warning',
    meaning:
      'Of two ranges of addresses in one rule one holds the other, or lets in what the other makes an exception of.',
  },
  'policy.empty-rule': {
    severity: 'warning',
    meaning:
      'A rule of a Cilium policy has no members ([{}]): in Cilium that allows nothing, where it would allow all in a NetworkPolicy.',
  },
  'policy.empty-peers': {
    severity: 'warning',
    meaning: 'A list of peers of a Cilium policy is empty: it matches nobody, where a missing one matches everybody.',
  },
  'policy.all-blocked': {
    severity: 'info',
    meaning: 'Policies close a direction of pods whole: no rule allows anything.',
  },
  'policy.all-allowed': {
    severity: 'info',
    meaning: 'Policies isolate pods in a direction, and then a rule allows everything.',
  },
} as const satisfies FindingTable

export type LintCode = keyof typeof lintFindings

export type LintNote = { readonly message: string; readonly path?: string; readonly hint?: string }

export function lintFinding(
  code: LintCode,
  { object, origin }: Pick<PolicySource, 'object' | 'origin'>,
  note: LintNote,
): Finding {
  return { code, severity: lintFindings[code].severity, object, origin, ...note }
}
