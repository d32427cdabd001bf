/** Findings on standard error: the worst first, many of one kind cut short. */
import { type Finding, printFinding, type Severity } from '#base/finding'
import { countOf } from '#base/text'
import type { Io } from './io'

const rank: Readonly<Record<Severity, number>> = { error: 0, warning: 1, info: 2 }

/** How many findings of one code are shown before the rest is counted. */
const mostOfOneCode = 10

export function printFindings(io: Io, findings: readonly Finding[]): void {
  const shown = new Map<string, number>()
  const sorted = [...findings].sort((a, b) => rank[a.severity] - rank[b.severity])
  for (const finding of sorted) {
    const count = (shown.get(finding.code) ?? 0) + 1
    shown.set(finding.code, count)
    if (count <= mostOfOneCode) io.err(`${printFinding(finding)}\n`)
  }
  for (const [code, count] of shown) {
    if (count > mostOfOneCode)
      io.err(`… and ${countOf(count - mostOfOneCode, 'more finding', 'more findings')} [${code}]\n`)
  }
}
