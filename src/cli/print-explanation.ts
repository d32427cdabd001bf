/** An explanation as text: each layer with its mark, facts, table and findings, and last the sentence. */
import { printOrigin, printRef, type Severity } from '#base/finding'
import { plainText, printTable } from '#base/text'
import type { ExplainFinding, Explanation, Layer, LayerName, LayerStatus, LayerTable } from '#explain/explanation'

export type ExplanationPrinting = {
  /** Whole tables. */
  readonly isWide: boolean
  readonly hasColour: boolean
}

const titles: Readonly<Record<LayerName, string>> = {
  name: 'name',
  service: 'Service',
  slices: 'slices and conditions',
  pods: 'pods',
  rules: 'node rules',
  conntrack: 'connection tracking',
  policy: 'network policy',
  'traffic-policy': 'masquerade and traffic policy',
}

const marks: Readonly<Record<LayerStatus, string>> = { ok: '✓', warning: '!', error: '✗', skipped: '–' }

const colours: Readonly<Record<LayerStatus | Severity, number>> = {
  ok: 32,
  info: 36,
  warning: 33,
  error: 31,
  skipped: 90,
}

export function printExplanation(explanation: Explanation, printing: ExplanationPrinting): string {
  const layers = explanation.layers.map((layer) => printLayer(layer, printing))
  const paint = painter(printing)
  const { findings } = explanation
  const worst = findings.some(({ severity }) => severity === 'error')
    ? 'error'
    : findings.some(({ severity }) => severity === 'warning')
      ? 'warning'
      : 'ok'
  return `${layers.join('')}\n${paint(worst, plainText(explanation.sentence))}\n`
}

type Paint = (what: LayerStatus | Severity, text: string) => string

function painter({ hasColour }: ExplanationPrinting): Paint {
  return (what, text) => (hasColour ? `\u001b[${colours[what]}m${text}\u001b[0m` : text)
}

function printLayer(layer: Layer, printing: ExplanationPrinting): string {
  const paint = painter(printing)
  const lines = [
    `${paint(layer.status, marks[layer.status])} ${titles[layer.layer]}`,
    ...layer.facts.map((fact) => `    ${plainText(fact)}`),
    ...(layer.table === undefined ? [] : tableLines(layer.table, printing.isWide)),
    ...layer.findings.flatMap((finding) => findingLines(finding, paint)),
  ]
  return `${lines.join('\n')}\n`
}

/** Long tables are cut unless all is asked for. */
const mostRows = 12

function tableLines({ columns, rows }: LayerTable, isWide: boolean): readonly string[] {
  const shown = isWide ? rows : rows.slice(0, mostRows)
  const lines = printTable(columns, shown).trimEnd().split('\n')
  const left = rows.length - shown.length
  return [...lines, ...(left === 0 ? [] : [`… and ${left} more (-o wide shows all)`])].map((line) => `      ${line}`)
}

/** What it is, where it is, what shows it, what to do. */
function findingLines(finding: ExplainFinding, paint: Paint): readonly string[] {
  const { severity, message, code, evidence, hint } = finding
  const place = placeOf(finding)
  const under = [
    ...(place === '' ? [] : [`at      ${place}`]),
    ...evidence.map((text, at) => `${at === 0 ? 'proof   ' : '        '}${text}`),
    ...(hint === undefined ? [] : [`remedy  ${hint}`]),
  ]
  return [
    `    ${paint(severity, severity)}: ${plainText(message)} [${code}]`,
    ...under.map((text) => `      ${plainText(text)}`),
  ]
}

function placeOf({ object, path, origin }: ExplainFinding): string {
  const ref = object === undefined ? '' : printRef(object)
  const where = [ref, path ?? ''].filter((part) => part !== '').join(' ')
  const file = origin === undefined ? '' : printOrigin(origin)
  return where === '' ? file : file === '' ? where : `${where} (${file})`
}
