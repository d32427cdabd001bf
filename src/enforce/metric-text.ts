/**
 * Series in Prometheus' text format 0.0.4. A node has up to 27,200 of them, which prom-client, hashing and escaping each
 * label of each, takes nearly three times as long for (`npm run bench -- --only metrics`).
 */
import type { Labels, MetricFamily } from './metric-series'
import type { NodeView } from './node-view'

export function printFamilies(families: readonly MetricFamily[], view: NodeView): string {
  return families.map((family) => printFamily(family, view)).join('\n')
}

function printFamily({ name, help, type, read }: MetricFamily, view: NodeView): string {
  let text = `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} ${type}\n`
  let shared: Labels | undefined
  let start = ''
  for (const sample of read(view)) {
    if (sample.shared !== shared) {
      shared = sample.shared
      start = printLabels(shared)
    }
    const own = printLabels(sample.own)
    const labels = start === '' || own === '' ? `${start}${own}` : `${start},${own}`
    text += `${name}${labels === '' ? '' : `{${labels}}`} ${sample.value}\n`
  }
  return text
}

function printLabels(labels: Labels): string {
  let text = ''
  for (const name in labels) text += `${text === '' ? '' : ','}${name}="${escapeLabel(labels[name] ?? '')}"`
  return text
}

function escapeLabel(value: string): string {
  if (!/[\\"\n]/.test(value)) return value
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}
