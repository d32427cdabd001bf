/** Flows as a table: who connected to whom, on which port, and what became of it. */
import { printEndpoint } from '#base/ip'
import { plainText, printTable } from '#base/text'
import type { FlowRecord } from '#wire/flow-record'

export type FlowTableOptions = {
  readonly isWide: boolean
  /** Rows come one by one, so the columns are as wide as names usually are. */
  readonly isLive: boolean
}

const columns = ['LAST SEEN', 'FROM', 'TO', 'PORT', 'VERDICT', 'SEEN'] as const
const wideColumns = [...columns, 'FROM ADDRESS', 'TO ADDRESS', 'OBSERVED AT', 'WORKLOADS', 'WHY NO NAME'] as const

/** Prints the header with the first rows, and then rows alone. */
export function flowTable({ isWide, isLive }: FlowTableOptions): (flows: readonly FlowRecord[]) => string {
  const header: readonly string[] = isWide ? wideColumns : columns
  let widths: readonly number[] | undefined = isLive ? usualWidths : undefined
  let isFirst = true
  return (flows) => {
    if (flows.length === 0) return ''
    const rows = flows.map((flow) => rowOf(flow, isWide).map(plainText))
    if (widths === undefined) {
      widths = header.map((title, column) => Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length)))
      isFirst = false
      return printTable(header, rows)
    }
    const lines = isFirst ? [header, ...rows] : rows
    isFirst = false
    return lines.map((line) => printLine(line, widths ?? [])).join('')
  }
}

const usualWidths = [27, 36, 36, 9, 7, 5, 24, 24, 11, 40]

function printLine(cells: readonly string[], widths: readonly number[]): string {
  const text = cells.map((cell, column) => (column === cells.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)))
  return `${text.join('  ').trimEnd()}\n`
}

function rowOf(flow: FlowRecord, isWide: boolean): readonly string[] {
  const isEgress = flow.direction === 'EGRESS'
  const [own, peer] = [nameOfPod(flow), nameOfPeer(flow)]
  const target = isEgress ? flow.peer : flow.pod
  const row = [
    flow.lastSeen,
    isEgress ? own : peer,
    isEgress ? peer : own,
    `${target.port ?? '?'}/${flow.protocol}`,
    flow.decision,
    String(flow.hits),
  ]
  if (!isWide) return row
  const [ownAddress, peerAddress] = [flow.pod.address ?? '', flow.peer.address ?? '']
  return [
    ...row,
    isEgress ? ownAddress : peerAddress,
    addressOf(isEgress ? peerAddress : ownAddress, target.port),
    flow.direction,
    [flow.pod.workload, flow.peer.workload].map((one) => (one === null ? '-' : `${one.kind}/${one.name}`)).join(' · '),
    whyUnnamed(flow),
  ]
}

function nameOfPod({ pod }: FlowRecord): string {
  return `${pod.namespace ?? '?'}/${pod.name}`
}

/** A Service and a node say so; a pod is what an end usually is. */
function nameOfPeer({ peer }: FlowRecord): string {
  if (peer.kind === null) return peer.address ?? '?'
  const name = `${peer.namespace}/${peer.name}`
  return peer.kind === 'pod' ? name : `${name} (${peer.kind})`
}

function addressOf(address: string, port: number | null): string {
  return address === '' || port === null || port === 0 ? address : printEndpoint(address, port)
}

function whyUnnamed({ peer }: FlowRecord): string {
  const { outcome } = peer
  if (outcome === null || outcome.kind === 'resolved') return ''
  if (outcome.kind === 'never-held') return 'nobody is known to have held it'
  return `${outcome.nearest?.namespace}/${outcome.nearest?.name} ${outcome.reason}`
}
