/** The finding codes of this room, with what each means. */
import type { Finding, FindingTable } from '#base/finding'

export const findingCodes = {
  'ruleset.bad-line': {
    severity: 'error',
    meaning: 'A line that should declare a chain cannot be read; what the chain does at its end is unknown.',
  },
  'ruleset.bad-rule': {
    severity: 'error',
    meaning:
      'A rule line cannot be read in whole, for instance because it was cut; an answer that depends on it is unknown.',
  },
  'ruleset.not-applied': {
    severity: 'error',
    meaning: 'A line that deletes, replaces or inserts a rule names a chain or a rule that is not there.',
  },
  'ruleset.set-twice': { severity: 'warning', meaning: 'An ipset is created twice; the later one is used.' },
  'ruleset.foreign-lines': {
    severity: 'info',
    meaning: 'Lines that are not part of a ruleset, such as a shell prompt, were passed over.',
  },
  'ruleset.cut': {
    severity: 'warning',
    meaning: 'A table has no COMMIT: the dump ends too early, and what its last chains do is unknown.',
  },
  'ruleset.table-twice': {
    severity: 'warning',
    meaning: 'A table of one family and variant is given twice; the later one is used.',
  },
  'ruleset.table-guessed': {
    severity: 'info',
    meaning: 'Rules without a table name (iptables -S) were taken for the table whose built-in chains they show.',
  },
  'ruleset.missing-chain': { severity: 'warning', meaning: 'A rule jumps to a chain that the dump does not hold.' },
  'ruleset.bad-set-member': {
    severity: 'warning',
    meaning: 'A member of an ipset cannot be read, or its set was not created before.',
  },
  'ruleset.loop': { severity: 'error', meaning: 'A chain leads back to itself, which the kernel refuses.' },
} as const satisfies FindingTable

export type FindingCode = keyof typeof findingCodes

/** A finding about a line of a ruleset. */
export function rulesetFinding(
  code: FindingCode,
  told: { readonly message: string; readonly file: string; readonly line: number; readonly hint?: string },
): Finding {
  const { message, file, line, hint } = told
  const finding = { code, severity: findingCodes[code].severity, message, origin: { file, line } }
  return hint === undefined ? finding : { ...finding, hint }
}
