/** Matrices and their differences as text, CSV, DOT and Markdown. */
import { compareText, plainText } from '#base/text'
import type { MatrixChange } from './diff-matrices'
import type { MatrixEnd, MatrixRow } from './matrix'

export type PlainRow = { readonly src: string; readonly dst: string; readonly conn: string }

export function plainRows(rows: readonly MatrixRow[]): readonly PlainRow[] {
  return rows.map(({ src, dst, conn }) => ({ src: src.name, dst: dst.name, conn }))
}

/** `shop/web[Deployment] => shop/db[StatefulSet] : TCP 5432`. */
export function printRow({ src, dst, conn }: MatrixRow): string {
  return plainText(`${src.name} => ${dst.name} : ${conn}`)
}

/** Pods to come stand under a heading of their own. */
export function printMatrixText(rows: readonly MatrixRow[]): string {
  const { real, imagined } = splitRows(rows)
  const section = imagined.length === 0 ? '' : `\nPods that do not exist yet:\n${linesOf(imagined.map(printRow))}`
  return `${linesOf(real.map(printRow))}${section}`
}

export function splitRows(rows: readonly MatrixRow[]): {
  readonly real: readonly MatrixRow[]
  readonly imagined: readonly MatrixRow[]
} {
  const isImagined = ({ src, dst }: MatrixRow): boolean => src.kind === 'imagined' || dst.kind === 'imagined'
  return { real: rows.filter((row) => !isImagined(row)), imagined: rows.filter(isImagined) }
}

function linesOf(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('')
}

export function printMatrixCsv(rows: readonly MatrixRow[]): string {
  return linesOf([
    'src,dst,conn',
    ...rows.map(({ src, dst, conn }) => [src.name, dst.name, conn].map(csvCell).join(',')),
  ])
}

/** RFC 4180, with line feeds. */
function csvCell(text: string): string {
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export function printMatrixMarkdown(rows: readonly MatrixRow[]): string {
  const lines = rows.map(({ src, dst, conn }) => `| ${[src.name, dst.name, conn].map(markdownCell).join(' | ')} |`)
  return linesOf(['| src | dst | conn |', '|---|---|---|', ...lines])
}

function markdownCell(text: string): string {
  return plainText(text).replaceAll('|', '\\|')
}

/** A box a namespace; what is outside, and pods to come, stand beside them. */
export function printMatrixDot(rows: readonly MatrixRow[]): string {
  const ends = new Map<string, MatrixEnd>()
  for (const { src, dst } of rows) for (const end of [src, dst]) ends.set(end.name, end)
  const namespaces = new Map<string, MatrixEnd[]>()
  const others: MatrixEnd[] = []
  for (const end of [...ends.values()].sort((a, b) => compareText(a.name, b.name))) {
    if (end.kind !== 'workload' && end.kind !== 'service') others.push(end)
    else namespaces.set(end.namespace, [...(namespaces.get(end.namespace) ?? []), end])
  }
  const boxes = [...namespaces].sort(([a], [b]) => compareText(a, b))
  return linesOf([
    'digraph connections {',
    '  rankdir=LR',
    '  node [shape=box, fontname="sans-serif"]',
    '  edge [fontname="sans-serif", fontsize=10]',
    ...boxes.flatMap(([namespace, own], at) => [
      `  subgraph cluster_${at} {`,
      `    label=${quote(namespace)}`,
      ...own.map(({ name }) => `    ${quote(name)} [label=${quote(name.slice(namespace.length + 1))}]`),
      '  }',
    ]),
    ...others.map(({ name, kind }) => `  ${quote(name)} [shape=${kind === 'outside' ? 'ellipse' : 'note'}]`),
    ...rows.map(({ src, dst, conn }) => `  ${quote(src.name)} -> ${quote(dst.name)} [label=${quote(conn)}]`),
    '}',
  ])
}

function quote(text: string): string {
  return `"${plainText(text).replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
}

const signs = { added: '+', removed: '-', changed: '~' } as const

/** `~ shop/a[Pod] => shop/b[Pod] : TCP 80 -> TCP 80,443`. */
export function printDiffText(changes: readonly MatrixChange[]): string {
  return linesOf(
    changes.map(({ change, src, dst, before, after }) =>
      plainText(
        `${signs[change]} ${src} => ${dst} : ${[before, after].filter((one) => one !== undefined).join(' -> ')}`,
      ),
    ),
  )
}

export function printDiffCsv(changes: readonly MatrixChange[]): string {
  const rows = changes.map(({ change, src, dst, before = '', after = '' }) => [change, src, dst, before, after])
  return linesOf([['change', 'src', 'dst', 'before', 'after'], ...rows].map((row) => row.map(csvCell).join(',')))
}

export function printDiffMarkdown(changes: readonly MatrixChange[]): string {
  const rows = changes.map(({ change, src, dst, before = '', after = '' }) => [change, src, dst, before, after])
  const lines = rows.map((row) => `| ${row.map(markdownCell).join(' | ')} |`)
  return linesOf(['| change | src | dst | before | after |', '|---|---|---|---|---|', ...lines])
}
