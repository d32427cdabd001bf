/** What `explain` answers of one Service: layers in the order a packet meets them, each with facts and findings. */
import type { Finding, Severity } from '#base/finding'

export const layerNames = [
  'name',
  'service',
  'slices',
  'pods',
  'rules',
  'conntrack',
  'policy',
  'traffic-policy',
] as const

export type LayerName = (typeof layerNames)[number]

export type LayerStatus = 'ok' | 'warning' | 'error' | 'skipped'

/** `evidence` is what shows it: addresses, rule lines, pods; the remedy is the finding's `hint`. */
export type ExplainFinding = Finding & { readonly evidence: readonly string[] }

export type LayerTable = { readonly columns: readonly string[]; readonly rows: readonly (readonly string[])[] }

export type Layer = {
  readonly layer: LayerName
  readonly status: LayerStatus
  /** Sentences that hold whether something is wrong or not. */
  readonly facts: readonly string[]
  readonly table?: LayerTable
  readonly findings: readonly ExplainFinding[]
}

export type Explanation = {
  /** `namespace/name`. */
  readonly service: string
  /** What is wrong, in one sentence. */
  readonly sentence: string
  readonly layers: readonly Layer[]
  readonly findings: readonly ExplainFinding[]
  /** A trace came out `unknown`, or the rules given do not hold the Services: part of the answer is open. */
  readonly isUndecided: boolean
}

export type LayerParts = Omit<Layer, 'layer' | 'status'>

const rank: Readonly<Record<Severity, number>> = { error: 0, warning: 1, info: 2 }

/** The status is that of the worst finding, which comes first; an `info` is none. */
export function layerOf(layer: LayerName, { facts, findings, table }: LayerParts): Layer {
  const has = (severity: Finding['severity']): boolean => findings.some((finding) => finding.severity === severity)
  const status = has('error') ? 'error' : has('warning') ? 'warning' : 'ok'
  return {
    layer,
    status,
    facts,
    ...(table !== undefined && table.rows.length > 0 && { table }),
    findings: findings.toSorted((a, b) => rank[a.severity] - rank[b.severity]),
  }
}
