/** The finding codes of this room, with what each means. */
import type { Finding, FindingTable } from '#base/finding'

export const findingCodes = {
  'trace.no-rules': {
    severity: 'warning',
    meaning: "The rulesets given hold no rules of the packet's address family.",
  },
  'trace.missing-table': {
    severity: 'warning',
    meaning: 'The dump lacks a table whose rules could change the answer.',
  },
  'trace.more-branches': { severity: 'info', meaning: 'More answers depend on the packet than are listed.' },
} as const satisfies FindingTable

export function traceFinding(code: keyof typeof findingCodes, message: string, hint: string): Finding {
  return { code, severity: findingCodes[code].severity, message, hint }
}
