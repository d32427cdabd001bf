/** The text of `conntrack -L` (also `-o extended`, `-E` and /proc/net/nf_conntrack) into tracked connections. */
import type { Finding } from '#base/finding'
import { countOf } from '#base/text'
import { type ConntrackEntry, parseConntrackLines } from '#trace/conntrack-entry'
import { findingCodes } from './findings'

export type ConntrackTable = {
  readonly file: string
  readonly entries: readonly ConntrackEntry[]
  readonly findings: readonly Finding[]
}

/** Never throws: a line that is no entry is told once, with how many there are. */
export function parseConntrack(text: string, file: string): ConntrackTable {
  const { entries, badLines } = parseConntrackLines(text)
  return { file, entries, findings: badLines.length === 0 ? [] : [tellBadLines(file, badLines)] }
}

function tellBadLines(file: string, bad: readonly number[]): Finding {
  const line = bad[0] ?? 1
  return {
    code: 'explain.conntrack-bad-line',
    severity: findingCodes['explain.conntrack-bad-line'].severity,
    message: `${countOf(bad.length, 'line')} that ${bad.length === 1 ? 'is' : 'are'} no tracked connection left out, the first in line ${line}`,
    origin: { file, line },
    hint: 'take the table with conntrack -L, without -o xml',
  }
}
