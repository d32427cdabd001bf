/** From objects to rows: each row with the object, field and part of the agent it comes from, as text, JSON and a drawing. */
import { printOrigin, printRef } from '#base/finding'
import { compareText, countOf } from '#base/text'
import type { DumpedMap, DumpedRow } from './dumped-map'
import { components, type RowSource } from './map-source'

export function explainMap({ layout, rows }: DumpedMap): string {
  return rows
    .map(
      (row) =>
        `${row.key}${row.value === '' ? '' : `  ${row.value.trim()}`}\n    ${chainOf(row.source)} → ${layout.name}\n`,
    )
    .join('')
}

function chainOf(source: RowSource): string {
  return `${describeSource(source)}${components[source.by]}`
}

function describeSource({ object, path, origin, note }: RowSource): string {
  const place =
    object === undefined ? '' : [printRef(object), path].filter((part) => part !== undefined && part !== '').join(' ')
  const where = origin === undefined ? '' : `, ${printOrigin(origin)}`
  const told = [place === '' ? '' : `${place}${where}`, note === undefined ? '' : `(${note})`].filter(
    (part) => part !== '',
  )
  return told.length === 0 ? '' : `${told.join(' ')} → `
}

export type ExplainedRow = {
  readonly map: string
  readonly key: string
  readonly value: string
  readonly from: unknown
}

export function explainedRows({ layout, rows }: DumpedMap): readonly ExplainedRow[] {
  return rows.map(({ key, value, source }) => {
    const { by, ...rest } = source
    return { map: layout.name, key, value: value.trim(), from: { ...rest, component: components[by] } }
  })
}

/** More of one kind than these stand as one box. */
const mostOfOneKind = 12

/** A Mermaid flowchart: objects, the parts of the agent that read them, and the maps that these write. */
export function drawMaps(maps: readonly DumpedMap[]): string {
  const drawing = startDrawing()
  for (const map of maps) if (map.rows.length > 0) drawMap(drawing, map)
  return `flowchart LR\n${[...drawing.boxes.values()].map(({ line }) => line).join('')}${[...drawing.arrows].join('')}`
}

type Box = { readonly id: string; readonly line: string }
type Drawing = { readonly boxes: Map<string, Box>; readonly arrows: Set<string> }

function startDrawing(): Drawing {
  return { boxes: new Map(), arrows: new Set() }
}

function drawMap(drawing: Drawing, { layout, rows }: DumpedMap): void {
  const target = boxOf(drawing, `map ${layout.name}`, `[("${layout.name}<br/>${countOf(rows.length, 'row')}")]`)
  for (const [by, own] of groupRows(rows, ({ source }) => source.by)) {
    const part = boxOf(drawing, `part ${by}`, `["${escapeLabel(components[by])}"]`)
    drawing.arrows.add(`  ${part} --> ${target}\n`)
    for (const [kind, ofKind] of groupRows(own, ({ source }) => source.object?.kind ?? '')) {
      if (kind === '') continue
      const names = [
        ...new Set(ofKind.map(({ source }) => (source.object === undefined ? '' : printRef(source.object)))),
      ]
      const labels = names.length > mostOfOneKind ? [countOf(names.length, kind)] : names.sort(compareText)
      for (const label of labels) {
        const box = boxOf(drawing, `object ${label}`, `(["${escapeLabel(label)}"])`)
        drawing.arrows.add(`  ${box} --> ${part}\n`)
      }
    }
  }
}

function groupRows<K>(rows: readonly DumpedRow[], keyOf: (row: DumpedRow) => K): ReadonlyMap<K, readonly DumpedRow[]> {
  const groups = new Map<K, DumpedRow[]>()
  for (const row of rows) {
    const key = keyOf(row)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [row])
    else group.push(row)
  }
  return groups
}

function boxOf({ boxes }: Drawing, key: string, shape: string): string {
  const known = boxes.get(key)
  if (known !== undefined) return known.id
  const id = `n${boxes.size + 1}`
  boxes.set(key, { id, line: `  ${id}${shape}\n` })
  return id
}

/** Quotes end a label, and a hash begins an entity. */
function escapeLabel(text: string): string {
  return text.replaceAll('#', '#35;').replaceAll('"', '#quot;').replaceAll('<', '#lt;').replaceAll('>', '#gt;')
}
