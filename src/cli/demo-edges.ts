/**
 * Who talked to whom, out of the broker's edges: each pair of workloads and port once, whichever ends were watched. What went
 * through a Service stands at the backend that took it.
 */
import { compareText, printTable } from '#base/text'
import type { EdgeRecord } from '#wire/edge-record'

type Row = { readonly from: string; readonly to: string; readonly port: string; hits: number; readonly verdict: string }

export function edgeTable(edges: readonly EdgeRecord[]): string {
  const rows = new Map<string, Row & { readonly ends: Map<EdgeRecord['observedAt'], number> }>()
  for (const edge of edges) {
    const { from, to, port, protocol, decision, observedAt, hits } = edge
    if (to.kind === 'service') continue
    const row = { from: nameOf(from), to: nameOf(to), port: `${port}/${protocol}`, hits: 0, verdict: decision }
    const key = [row.from, row.to, row.port, decision].join(' ')
    const known = rows.get(key) ?? { ...row, ends: new Map() }
    rows.set(key, known)
    known.ends.set(observedAt, (known.ends.get(observedAt) ?? 0) + hits)
    // A connection that was seen at both ends is one.
    known.hits = Math.max(...known.ends.values())
  }
  const sorted = [...rows.values()].sort(
    (a, b) => compareText(a.to, b.to) || compareText(a.port, b.port) || b.hits - a.hits || compareText(a.from, b.from),
  )
  return printTable(
    ['FROM', 'TO', 'PORT', 'SEEN', 'VERDICT'],
    sorted.map(({ from, to, port, hits, verdict }) => [from, to, port, String(hits), verdict]),
  )
}

const outside: Readonly<Partial<Record<EdgeRecord['from']['kind'], string>>> = {
  internet: 'Internet',
  'private-network': 'Private network',
  unattributed: 'Unattributed',
}

function nameOf({ kind, namespace, workload, name }: EdgeRecord['from']): string {
  const away = outside[kind]
  if (away !== undefined) return away
  const own = workload === null ? (name ?? '?') : `${workload.kind}/${workload.name}`
  const suffix = kind === 'service' ? ' (Service)' : kind === 'node' ? ' (host network)' : ''
  return `${namespace ?? '?'}/${own}${suffix}`
}
