/** The finding codes of compiled policies, with what each means. */
import type { Finding, FindingTable } from '#base/finding'

export const policyFindings = {
  'policy.agent-refuses': {
    severity: 'error',
    meaning:
      "The API server takes a policy, but Cilium's agent of the version asked for refuses it and enforces nothing of it.",
  },
  'policy.port-name-disputed': {
    severity: 'warning',
    meaning:
      'A rule of egress names a port that pods give to different numbers: up to 1.19 Cilium looks the name up among all pods together, and leaves such a port out.',
  },
  'policy.not-read': {
    severity: 'warning',
    meaning: 'The network plugin of the version asked for does not read policies of this kind.',
  },
} as const satisfies FindingTable

export function policyFinding(code: keyof typeof policyFindings, rest: Omit<Finding, 'code' | 'severity'>): Finding {
  return { code, severity: policyFindings[code].severity, ...rest }
}
