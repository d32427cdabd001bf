/** A dumped map as text, JSON and raw bytes: as `cilium-dbg bpf … list` and `bpftool map dump` print it. */
import { compareText, countOf } from '#base/text'
import type { DumpedMap, DumpedRow } from './dumped-map'
import { printHex } from './struct-bytes'

/** Columns three blanks apart, and at least five wide. */
export function printColumns(lines: readonly (readonly string[])[]): string {
  const widths: number[] = []
  for (const line of lines) {
    for (const [column, cell] of line.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.length)
  }
  const cells = (line: readonly string[]): string =>
    line
      .map((cell, column) => (column === line.length - 1 ? cell : cell.padEnd(Math.max(5, (widths[column] ?? 0) + 3))))
      .join('')
  return lines.map((line) => `${cells(line).trimEnd()}\n`).join('')
}

export function printMapText({ rows, table }: DumpedMap): string {
  if (table.kind === 'columns') {
    if (rows.length === 0) return `${table.empty}\n`
    return printColumns([table.header, ...table.lines.flat()])
  }
  const lines = [...groupByKey(rows)].flatMap(([key, values]) =>
    values.map((value, index) => [index === 0 ? key : '', value]),
  )
  return printColumns([table.titles, ...lines])
}

/** Sorted by key; rows of one key stay together in their order. */
function groupByKey(rows: readonly DumpedRow[]): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>()
  for (const { key, value } of rows) {
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [value])
    else group.push(value)
  }
  return new Map([...groups].sort(([a], [b]) => compareText(a, b)))
}

export function mapJson({ rows, json }: DumpedMap): unknown {
  return json === undefined ? Object.fromEntries(groupByKey(rows)) : json()
}

/** One row a line and their number, as `bpftool map dump` prints them. */
export function printMapRaw(map: DumpedMap): string {
  const lines = map.rows.map((row) => `key: ${printHex(row.keyBytes)}  value: ${printHex(rowValue(map, row))}\n`)
  return `${lines.join('')}Found ${countOf(lines.length, 'element')}\n`
}

export function mapRawJson(map: DumpedMap): unknown {
  const bytes = (value: Uint8Array): readonly string[] =>
    Array.from(value, (byte) => `0x${byte.toString(16).padStart(2, '0')}`)
  return map.rows.map((row) => ({ key: bytes(row.keyBytes), value: bytes(rowValue(map, row)) }))
}

/** Of a map of maps the inner one's content, which says more than its number. */
function rowValue({ inner }: DumpedMap, row: DumpedRow): Uint8Array {
  const table = inner?.get(row)
  return table === undefined ? row.valueBytes : new Uint8Array(table.buffer)
}
