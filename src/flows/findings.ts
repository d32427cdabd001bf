/** What the reading of flows files tells: each code with what it means. */
import type { Finding, FindingTable } from '#base/finding'

export const flowFindings = {
  'flows.cut-short': {
    severity: 'error',
    meaning: 'A row of a flows file ends in its middle; it is left out, and the rows after it are read.',
  },
  'flows.not-json': { severity: 'error', meaning: 'A part of a flows file is no JSON; it is left out.' },
  'flows.not-a-flow': {
    severity: 'warning',
    meaning: 'An object of a flows file is no flow of the broker’s or of Hubble’s, or lacks what a flow must have.',
  },
  'flows.no-port': {
    severity: 'warning',
    meaning: 'A flow does not tell the port that was connected to, so that no rule can allow it.',
  },
  'flows.unknown-protocol': {
    severity: 'warning',
    meaning: 'The protocol of a flow is none that policies know, so that no rule can allow it.',
  },
  'flows.unknown-decision': {
    severity: 'warning',
    meaning: 'Whether a flow was let through is not told in words that are known, so that no rule is made of it.',
  },
  'flows.more-pages': {
    severity: 'warning',
    meaning: 'A flows file is one page of the broker’s answer, and the flows of the pages after it are not in it.',
  },
  'flows.passed-over': {
    severity: 'info',
    meaning:
      'Entries of a Hubble file that tell of no new connection of a pod: replies, events of layer 7, lost events.',
  },
  'flows.more': { severity: 'warning', meaning: 'More rows of a flows file have the same fault than are listed.' },
} as const satisfies FindingTable

export type FlowFindingCode = keyof typeof flowFindings

export function flowFinding(code: FlowFindingCode, note: Omit<Finding, 'code' | 'severity'>): Finding {
  return { code, severity: flowFindings[code].severity, ...note }
}
