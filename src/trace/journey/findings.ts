/** What a journey rests on that the input did not tell, and where flows that were recorded say otherwise. */
import type { Finding, FindingTable } from '#base/finding'

export const journeyFindings = {
  'path.assumed-masquerade': {
    severity: 'info',
    meaning:
      'A pod’s packet leaves the cluster, and that its source is translated there is assumed of the network plugin.',
  },
  'path.backend-unmet': {
    severity: 'warning',
    meaning: 'The backend that was asked for is none that the packet could go to; another one, or none, was followed.',
  },
  'path.cilium-policies': {
    severity: 'warning',
    meaning: 'The input has policies of Cilium’s, which a walk between kube-proxy nodes does not ask.',
  },
  'path.node-without-object': {
    severity: 'warning',
    meaning: 'A packet passes a node that the input has no Node object of: its addresses are not known.',
  },
  'path.state-bad-line': {
    severity: 'warning',
    meaning: 'A line of the state that was given is no tracked connection; it is left out.',
  },
} as const satisfies FindingTable

export function journeyFinding(code: keyof typeof journeyFindings, message: string, hint: string): Finding {
  return { code, severity: journeyFindings[code].severity, message, hint }
}
