/** What the generator tells beside its policies: each code with what it means. */
import type { Finding, FindingTable } from '#base/finding'

export const generateFindings = {
  'generate.no-labels': {
    severity: 'warning',
    meaning:
      'No label is known that all pods of a workload have and that outlives a roll-out, so that no policy can select it.',
  },
  'generate.bad-name': {
    severity: 'warning',
    meaning:
      'A workload, its namespace or its labels have names that no API server takes, so that no policy can be made.',
  },
  'generate.selects-nobody': {
    severity: 'warning',
    meaning:
      'A policy selects none of the pods that flows were recorded at, whose labels were other ones: it restricts nothing that was seen.',
  },
  'generate.lets-others': {
    severity: 'warning',
    meaning:
      'Pods of another workload have the same labels as a peer that was seen, so that its rule holds for them as well.',
  },
  'generate.service-untold': {
    severity: 'warning',
    meaning:
      'What is behind a Service, or at which port, is not known: policies are asked after its address is translated, and the rule may not match.',
  },
  'generate.selects-others': {
    severity: 'warning',
    meaning:
      'The labels that select a workload’s pods are also on pods of another workload, which its policy holds for too.',
  },
  'generate.only-peers-told': {
    severity: 'warning',
    meaning: 'Nothing was recorded at a workload’s own pods: its policy rests on what its peers recorded.',
  },
  'generate.nothing-seen': {
    severity: 'warning',
    meaning: 'Nothing that could be allowed was seen of a workload: its policy denies everything.',
  },
  'generate.host-network': {
    severity: 'warning',
    meaning: 'The pods of a workload have their node’s network, which policies for pods do not hold for.',
  },
  'generate.flows-left-out': {
    severity: 'info',
    meaning:
      'Flows of which no rule can be made: without a port or an address, of another protocol, within a pod or a node.',
  },
  'generate.not-recorded': {
    severity: 'info',
    meaning: 'Workloads at whose pods nothing was recorded get no policy unless they are named.',
  },
} as const satisfies FindingTable

export type GenerateCode = keyof typeof generateFindings

export function generateFinding(code: GenerateCode, note: Omit<Finding, 'code' | 'severity'>): Finding {
  return { code, severity: generateFindings[code].severity, ...note }
}
