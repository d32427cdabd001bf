/**
 * Flows files: JSON lines, an array, or pages of the broker's API, in either shape of its rows, and what Hubble prints. Text may
 * come in chunks; a row that is cut short costs itself alone.
 */
import type { Finding, Parsed } from '#base/finding'
import { type FlowFindingCode, flowFinding } from './findings'
import type { ObservedFlow } from './observed-flow'
import { isBrokerRow, readBrokerRow } from './read-flows-file-broker'
import { isHubbleRow, readHubbleRow } from './read-flows-file-hubble'
import { isRow, type Row, type RowReading } from './read-flows-file-row'
import { type RecordedFlow, readRecordedFlow, settleReplies } from './recorded-flow-hubble'

export type RowsFileReader<T> = {
  readonly add: (chunk: string) => readonly T[]
  /** What was found, once all chunks were added. */
  readonly end: () => readonly Finding[]
}

export type FlowsFileReader = RowsFileReader<ObservedFlow>

/** The whole text at once. */
export function readFlowsFile(text: string, file = 'flows'): Parsed<readonly ObservedFlow[]> {
  return readWhole(flowsFileReader(file), text)
}

/** Hubble's flows as packets: where each was seen, by whom it was dropped, replies among them. */
export function readHubbleFile(text: string, file = 'flows'): Parsed<readonly RecordedFlow[]> {
  const read: ReadRow<RecordedFlow> = (row, line, reading) =>
    isHubbleRow(row) ? readRecordedFlow(row, line, reading) : unknown(reading)
  const { value, findings } = readWhole(rowsFileReader(file, read), text)
  return { value: settleReplies(value), findings }
}

function readWhole<T>(reader: RowsFileReader<T>, text: string): Parsed<readonly T[]> {
  const value = reader.add(text)
  return { value, findings: reader.end() }
}

type ReadRow<T> = (row: Row, line: number, reading: RowReading) => T | undefined

type Scan = {
  /** Text of a row whose end is still to come. */
  pending: string
  depth: number
  isInText: boolean
  isEscaped: boolean
  isAtLineStart: boolean
  line: number
  /** Where the pending row began. */
  startLine: number
  /** Beyond a place that is no JSON everything up to the line's end is passed over. */
  isSkipping: boolean
}

type Reading = {
  readonly file: string
  readonly findings: Finding[]
  readonly counts: Map<FlowFindingCode, number>
}

export function flowsFileReader(file: string): FlowsFileReader {
  return rowsFileReader(file, (row, _, reading) =>
    isBrokerRow(row) ? readBrokerRow(row, reading) : isHubbleRow(row) ? readHubbleRow(row, reading) : unknown(reading),
  )
}

function rowsFileReader<T>(file: string, read: ReadRow<T>): RowsFileReader<T> {
  const scan: Scan = {
    pending: '',
    depth: 0,
    isInText: false,
    isEscaped: false,
    isAtLineStart: true,
    line: 1,
    startLine: 1,
    isSkipping: false,
  }
  const reading: Reading = { file, findings: [], counts: new Map() }
  return {
    add: (chunk) => {
      const flows: T[] = []
      scanChunk(scan, chunk, { flows, reading, read })
      return flows
    },
    end: () => {
      if (scan.depth > 0) tellCut(reading, scan.startLine)
      return [...reading.findings, ...countMore(reading)]
    },
  }
}

type Sink<T> = { readonly flows: T[]; readonly reading: Reading; readonly read: ReadRow<T> }

const [newline, quote, backslash, open, close] = [10, 34, 92, 123, 125]

/** Braces alone are counted: whatever stands between two objects at the outside is brackets, commas and blanks. */
function scanChunk<T>(scan: Scan, chunk: string, sink: Sink<T>): void {
  let start = 0
  for (let at = 0; at < chunk.length; at++) {
    const code = chunk.charCodeAt(at)
    if (scan.isInText && code !== newline) {
      scanText(scan, code)
      continue
    }
    const isAtLineStart = scan.isAtLineStart
    scan.isAtLineStart = code === newline
    if (code === newline) {
      scan.line++
      scan.isSkipping = false
      // No JSON text holds a bare line break.
      if (scan.isInText) abandon(scan, sink.reading)
    } else if (scan.isSkipping) continue
    else if (code === open) {
      // No row inside of another begins at a line's start.
      if (scan.depth > 0 && isAtLineStart) abandon(scan, sink.reading)
      if (scan.depth === 0) {
        scan.startLine = scan.line
        start = at
      }
      scan.depth++
    } else if (scan.depth === 0) {
      if (!isBetween(code)) refuse(scan, sink.reading)
    } else if (code === quote) scan.isInText = true
    else if (code === close && --scan.depth === 0) {
      takeObject(scan.pending + chunk.slice(start, at + 1), scan.startLine, sink)
      scan.pending = ''
    }
  }
  if (scan.depth > 0) scan.pending += chunk.slice(start)
}

function scanText(scan: Scan, code: number): void {
  if (scan.isEscaped) scan.isEscaped = false
  else if (code === backslash) scan.isEscaped = true
  else if (code === quote) scan.isInText = false
}

/** Blanks, a byte-order mark, brackets and commas. */
function isBetween(code: number): boolean {
  return code <= 32 || code === 44 || code === 91 || code === 93 || code === 0xfeff
}

function abandon(scan: Scan, reading: Reading): void {
  tellCut(reading, scan.startLine)
  scan.depth = 0
  scan.isInText = false
  scan.isEscaped = false
  scan.pending = ''
}

function refuse(scan: Scan, reading: Reading): void {
  scan.isSkipping = true
  tell(reading, 'flows.not-json', {
    line: scan.line,
    message: 'here is no JSON object; the rest of the line is left out',
  })
}

function tellCut(reading: Reading, line: number): void {
  tell(reading, 'flows.cut-short', { line, message: 'the row that begins here is cut short; it is left out' })
}

function takeObject<T>(text: string, line: number, sink: Sink<T>): void {
  const value = parseObject(text)
  if (value === undefined) {
    tell(sink.reading, 'flows.not-json', { line, message: 'this object is no JSON; it is left out' })
    return
  }
  takeRow(value, line, sink)
}

function parseObject(text: string): Row | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isRow(value) ? value : undefined
  } catch {
    return undefined
  }
}

function takeRow<T>(row: Row, line: number, sink: Sink<T>): void {
  // A page of the broker's API as it came.
  if (Array.isArray(row.items)) {
    for (const item of row.items) takeRow(isRow(item) ? item : {}, line, sink)
    if (typeof row.next === 'string') tell(sink.reading, 'flows.more-pages', { line, message: morePages })
    return
  }
  const told = new Set<FlowFindingCode>()
  const reading: RowReading = {
    tell: (code, message) => {
      // The first fault of a kind is the cause of the others.
      if (!told.has(code)) tell(sink.reading, code, { line, message })
      told.add(code)
    },
  }
  const flow = sink.read(row, line, reading)
  if (flow !== undefined) sink.flows.push(flow)
}

const morePages =
  'this is one page of the broker’s answer, and more follow it; with Accept: application/x-ndjson all flows come at once'

function unknown(reading: RowReading): undefined {
  reading.tell('flows.not-a-flow', 'this object is neither a flow of the broker’s nor of Hubble’s; it is left out')
  return undefined
}

/** As many of one code as anybody reads. */
const mostOfOneCode = 20

function tell(
  reading: Reading,
  code: FlowFindingCode,
  note: { readonly line: number; readonly message: string },
): void {
  const count = (reading.counts.get(code) ?? 0) + 1
  reading.counts.set(code, count)
  if (count > mostOfOneCode || code === 'flows.passed-over') return
  reading.findings.push(flowFinding(code, { message: note.message, origin: { file: reading.file, line: note.line } }))
}

function countMore({ file, counts }: Reading): readonly Finding[] {
  return [...counts].flatMap(([code, count]): readonly Finding[] => {
    if (code === 'flows.passed-over') {
      const message = `${count} entries tell of no new connection of a pod and are passed over`
      return [flowFinding(code, { message, origin: { file } })]
    }
    const more = count - mostOfOneCode
    if (more <= 0) return []
    return [
      flowFinding('flows.more', { message: `${more} more rows are like those told as ${code}`, origin: { file } }),
    ]
  })
}
