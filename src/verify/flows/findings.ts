/** Where a recorded flow and the walk of its packet say different things. */
import type { Finding, FindingTable } from '#base/finding'

export const flowCheckFindings = {
  'flow-check.let-through': {
    severity: 'error',
    meaning:
      'A packet that was dropped is let through by what the objects imply: the node holds something else, or did.',
  },
  'flow-check.dropped': {
    severity: 'error',
    meaning: 'A packet that was let through is dropped by what the objects imply before the place where it was seen.',
  },
  'flow-check.other-reason': {
    severity: 'warning',
    meaning: 'A packet was dropped, and for another reason than the objects imply.',
  },
  'flow-check.other-identity': {
    severity: 'error',
    meaning: 'An end of a recorded flow had another identity or other labels than the objects imply.',
  },
  'flow-check.other-holder': {
    severity: 'warning',
    meaning: 'An address of a recorded flow belongs to another pod now, or to none.',
  },
  'flow-check.open': {
    severity: 'info',
    meaning: 'What becomes of a recorded flow’s packet cannot be told from the input.',
  },
} as const satisfies FindingTable

export type FlowCheckCode = keyof typeof flowCheckFindings

export function flowCheckFinding(code: FlowCheckCode, told: Omit<Finding, 'code' | 'severity'>): Finding {
  return { code, severity: flowCheckFindings[code].severity, ...told }
}
