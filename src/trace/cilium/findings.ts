/** Every finding about a walk through Cilium's nodes: its code, how bad it is, and what it means. */
import type { Finding, FindingTable } from '#base/finding'

export const pathFindings = {
  'path.native-range': {
    severity: 'error',
    meaning:
      'Cilium routes natively and masquerades without the native range being set, with which the agent does not start.',
  },
  'path.dsr-mode': {
    severity: 'error',
    meaning:
      'The way in which DSR carries a Service’s address does not go with the tunnel, so that the agent does not start.',
  },
  'path.egress-masquerade': {
    severity: 'error',
    meaning: 'Egress gateways are on without what they need, so that the agent does not start.',
  },
  'path.state-unread': { severity: 'warning', meaning: 'Rows of a given state cannot be read; the others count.' },
  'path.state-node': {
    severity: 'warning',
    meaning: 'A given state does not say whose node it is; the sender’s is taken.',
  },
} as const satisfies FindingTable

export type PathFindingCode = keyof typeof pathFindings

export function pathFinding(code: PathFindingCode, told: Omit<Finding, 'code' | 'severity'>): Finding {
  return { code, severity: pathFindings[code].severity, ...told }
}
