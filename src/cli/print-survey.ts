/** The table of `trace --all`: one row a target, with shares, source translation and what is odd. */
import { dump } from 'js-yaml'
import { countOf, printTable } from '#base/text'
import { printShare } from '#trace/print-trace'
import { type HiddenRule, summarizeHidden } from '#verify/survey-entry'
import { type SurveyRow, summarizeSurvey } from '#verify/survey-services'
import type { ExitCode } from './command'
import type { Io } from './io'

export type SurveyPrinting = {
  readonly rows: readonly SurveyRow[]
  readonly hidden: readonly HiddenRule[]
  /** Sentences about the whole. */
  readonly notes: readonly string[]
}

export function printSurvey(
  io: Io,
  { rows, hidden, notes }: SurveyPrinting,
  output: 'text' | 'wide' | 'json' | 'yaml',
): void {
  if (output === 'json') io.out(`${JSON.stringify(rows.map(surveyObject), undefined, 2)}\n`)
  else if (output === 'yaml') io.out(dump(rows.map(surveyObject)))
  else {
    const isWide = output === 'wide'
    const lines = rows.flatMap((row) => tableRows(row, isWide))
    const table = printTable(
      ['SERVICE', 'DESTINATION', 'VERDICT', 'TARGET', 'SHARE', 'SOURCE TRANSLATED', 'NOTE'],
      isWide ? lines : lines.map((line) => line.map(cut)),
    )
    const left = summarizeHidden(hidden)
    const parts = [...(rows.length === 0 ? [] : [table]), `${summarizeSurvey(rows)}\n`]
    for (const line of [...(left === undefined ? [] : [left]), ...notes]) parts.push(`${line}\n`)
    io.out(parts.join('\n'))
  }
}

const widestCell = 60

function cut(cell: string): string {
  return cell.length > widestCell ? `${cell.slice(0, widestCell - 1)}…` : cell
}

/** Bad news of a survey is a rule that does not do what it is for; a Service without endpoints is not. */
export function surveyCode(rows: readonly SurveyRow[]): ExitCode {
  if (rows.some((row) => row.trace.verdict.kind === 'unknown')) return 3
  return rows.some((row) => row.anomalies.length > 0) ? 1 : 0
}

function surveyObject({ name, destination, protocol, trace, anomalies }: SurveyRow): object {
  const { verdict, targets, masquerade, branches } = trace
  return {
    name,
    destination,
    protocol,
    verdict,
    targets,
    masquerade,
    anomalies,
    ...(branches === undefined ? {} : { branches }),
  }
}

/** Long lists of targets are cut unless all are asked for. */
const mostTargets = 6

function tableRows(row: SurveyRow, isWide: boolean): readonly (readonly string[])[] {
  const { trace } = row
  const start = [row.name, `${row.destination}/${row.protocol}`, trace.verdict.kind]
  const notes = [...row.anomalies, ...notesOf(row)]
  const source = sourceOf(row)
  if (trace.targets.length === 0) return [[...start, '', '', source, notes.join('; ')]]
  const shown = isWide ? trace.targets : trace.targets.slice(0, mostTargets)
  const rows = shown.map((target, index) => {
    const first = index === 0
    return [
      ...(first ? start : ['', '', '']),
      target.address,
      printShare(target.share),
      first ? source : '',
      first ? notes.join('; ') : '',
    ]
  })
  const left = trace.targets.length - shown.length
  return left === 0 ? rows : [...rows, ['', '', '', `… and ${left} more`, '', '', '']]
}

function notesOf({ trace }: SurveyRow): readonly string[] {
  const stopped =
    trace.verdict.kind === 'rejected' || trace.verdict.kind === 'dropped' ? [trace.verdict.because[0].sentence] : []
  const remembered = (trace.branches ?? []).filter((branch) => branch.when.includes('the client is in list')).length
  const others = (trace.branches ?? []).length - remembered
  return [
    ...stopped,
    ...(remembered > 0 ? ['clients stay with their endpoint'] : []),
    ...(others > 0 ? [`${countOf(others, 'other answer')} by source, interface or process`] : []),
  ]
}

/** A pod that reaches itself is the rule everywhere: it is not repeated in each row. */
function sourceOf({ trace }: SurveyRow): string {
  if (trace.masquerade.some((entry) => entry.condition === 'always')) return 'always'
  const own = trace.targets.flatMap(({ address }) => {
    const source = `the source is ${address.replace(/:\d+$/, '').replace(/^\[|\]$/g, '')}`
    return [source, `${source} and it is sent to ${address}`]
  })
  const isOwn = (condition: string): boolean => own.includes(condition)
  const rest = trace.masquerade.map((entry) => entry.condition).filter((condition) => !isOwn(condition))
  const hairpin = rest.length < trace.masquerade.length ? ['a pod reaches itself'] : []
  return [...rest, ...hairpin].join('; or ')
}
