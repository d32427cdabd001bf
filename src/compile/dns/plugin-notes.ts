/** What reading the Corefile's plugins finds out beside their options: findings, each at its line. */
import type { Finding, Origin } from '#base/finding'
import type { Directive } from './corefile'
import { corefileFinding, type DnsFindingCode } from './findings'

export type Notes = {
  readonly findings: readonly Finding[]
  /** An option or value that CoreDNS refuses. */
  readonly bad: (at: Directive, problem: string) => void
  readonly note: (
    code: DnsFindingCode,
    at: Directive,
    told: { readonly message: string; readonly hint?: string },
  ) => void
}

export function takeNotes(origin: Origin): Notes {
  const findings: Finding[] = []
  const note: Notes['note'] = (code, at, told) => {
    findings.push(corefileFinding(code, { origin: { ...origin, index: `data.Corefile line ${at.line}` }, ...told }))
  }
  return { findings, note, bad: (at, problem) => note('dns.bad-option', at, { message: `${problem}; it is left out` }) }
}
