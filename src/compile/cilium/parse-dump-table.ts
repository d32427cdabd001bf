/** Tables of `cilium-dbg` by their header: columns are found by name, so that unknown ones do no harm. */
import type { Origin } from '#base/finding'
import type { FoundKind, FoundMap, FoundRow } from './found-map'
import {
  addressCell,
  backendCell,
  type Cell,
  egressCell,
  ipcacheCell,
  lxcCell,
  maglevCell,
  nodeIdCell,
  portCell,
  rangeCell,
  serviceLine,
  tunnelCell,
} from './parse-cells'

export type TableText = {
  readonly file: string
  /** With the number of the first one. */
  readonly lines: readonly string[]
  readonly firstLine: number
  readonly isCut: boolean
  readonly endpoint?: number
}

export type TableParse = { readonly maps: readonly FoundMap[]; readonly badLines: readonly number[] }

/** Cells by the names of their columns. */
type Line = { readonly cells: Readonly<Record<string, string>>; readonly origin: Origin }

type Reader = {
  readonly kind: FoundKind
  readonly titles: readonly string[]
  readonly read: (lines: readonly Line[], bad: number[]) => readonly FoundRow[]
}

/** The first whose titles are all there. */
const readers: readonly Reader[] = [
  pairReader('lxc', ['IP ADDRESS', 'LOCAL ENDPOINT INFO'], lxcCell),
  pairReader('ipcache', ['IP PREFIX/ADDRESS', 'IDENTITY'], ipcacheCell),
  { kind: 'policy', titles: ['POLICY', 'DIRECTION', 'PORT/PROTO'], read: policyRows },
  {
    kind: 'services',
    titles: ['SERVICE ADDRESS', 'BACKEND ADDRESS (REVNAT_ID) (SLOT)'],
    read: serviceRows('SERVICE ADDRESS', 'BACKEND ADDRESS (REVNAT_ID) (SLOT)'),
  },
  {
    kind: 'services',
    titles: ['SERVICE ADDRESS', 'BACKEND ADDRESS (REVNAT_ID)'],
    read: serviceRows('SERVICE ADDRESS', 'BACKEND ADDRESS (REVNAT_ID)'),
  },
  { kind: 'services', titles: ['ID', 'Frontend', 'Service Type', 'Backend'], read: serviceListRows },
  {
    kind: 'backends',
    titles: ['ID', 'BACKEND ADDRESS (REVNAT_ID) (SLOT)'],
    read: rowsOf(({ cells }) => {
      const text = cells['BACKEND ADDRESS (REVNAT_ID) (SLOT)'] ?? ''
      const cell = backendCell(text) ?? addressCell(text)
      return cell === undefined ? undefined : { ...cell, ...numberOf(cells.ID) }
    }),
  },
  {
    kind: 'sourceRanges',
    titles: ['SOURCE RANGE (REVNAT_ID)'],
    read: rowsOf(({ cells }) => rangeCell(cells['SOURCE RANGE (REVNAT_ID)'] ?? '')),
  },
  {
    kind: 'egress',
    titles: ['Source IP', 'Destination CIDR', 'Egress IP', 'Gateway IP'],
    read: rowsOf(({ cells }) =>
      egressCell({
        source: cells['Source IP'] ?? '',
        destination: cells['Destination CIDR'] ?? '',
        egress: cells['Egress IP'] ?? '',
        gateway: cells['Gateway IP'] ?? '',
      }),
    ),
  },
  pairReader('tunnels', ['TUNNEL', 'VALUE'], tunnelCell),
  pairReader('maglev', ['SVC ID', 'LOOKUP TABLE'], maglevCell),
  {
    kind: 'nodeIds',
    titles: ['NODE ID', 'IP ADDRESSES'],
    read: rowsOf(({ cells }) => nodeIdCell(cells['IP ADDRESSES'] ?? '', cells.SPI ?? '')),
  },
  { kind: 'endpoints', titles: ['ENDPOINT', 'IDENTITY', 'IPv4'], read: endpointRows },
  { kind: 'ipcache', titles: ['IP', 'IDENTITY', 'SOURCE'], read: ipListRows },
  { kind: 'identities', titles: ['ID', 'LABELS'], read: identityRows },
  {
    kind: 'ipMasq',
    titles: ['IP PREFIX/ADDRESS'],
    read: rowsOf(({ cells }) => rangeCell(cells['IP PREFIX/ADDRESS'] ?? '')),
  },
]

/** Undefined where no line is a header that is known. */
export function parseTable({ file, lines, firstLine, isCut, endpoint }: TableText): TableParse | undefined {
  for (const [at, header] of lines.entries()) {
    const columns = columnsOf(header)
    const reader = readers.find(({ titles }) => titles.every((title) => columns.some(({ name }) => name === title)))
    if (reader === undefined) continue
    const bad: number[] = []
    const body = lines.slice(at + 1, isCut ? -1 : undefined).flatMap((text, index): readonly Line[] => {
      if (text.trim() === '') return []
      const origin = { file, line: firstLine + at + 1 + index }
      return [{ cells: cellsOf(text, columns), origin }]
    })
    const rows = reader.read(body, bad)
    const kind =
      reader.kind === 'backends' && /^\S+ +(?!\S*:\/\/)\S/.test(lines[at + 1] ?? '') ? 'reverseNat' : reader.kind
    const map = {
      kind,
      rows,
      isCut,
      unread: bad.length,
      origin: { file, line: firstLine + at },
      ...(endpoint !== undefined && { endpoint }),
      ...eraOf(lines[at + 1]),
    }
    return { maps: [map], badLines: bad }
  }
  return undefined
}

function eraOf(line: string | undefined): { readonly era?: string } {
  if (line === undefined) return {}
  if (/ nodeid=\d/.test(line)) return { era: '1.16' }
  return {}
}

type Column = { readonly name: string; readonly from: number }

function columnsOf(header: string): readonly Column[] {
  return [...header.matchAll(/\S+(?: \S+)*/g)].map((found) => ({ name: found[0], from: found.index }))
}

/** By the places of the header's words; a line that runs over them is told by its gaps. */
function cellsOf(text: string, columns: readonly Column[]): Readonly<Record<string, string>> {
  const isAligned = columns.every(({ from }) => from === 0 || from >= text.length || text[from - 1] === ' ')
  const parts = isAligned
    ? columns.map(({ from }, index) => text.slice(from, columns[index + 1]?.from ?? text.length))
    : text.split(/ {2,}/)
  return Object.fromEntries(columns.map(({ name }, index) => [name, (parts[index] ?? '').trim()]))
}

function rowsOf(read: (line: Line) => Cell | undefined): Reader['read'] {
  return (lines, bad) =>
    lines.flatMap((line) => {
      const cell = read(line)
      if (cell !== undefined) return [{ ...cell, origin: line.origin }]
      bad.push(line.origin.line ?? 0)
      return []
    })
}

function pairReader(
  kind: FoundKind,
  [key, value]: readonly [string, string],
  read: (key: string, value: string) => Cell | undefined,
): Reader {
  return { kind, titles: [key, value], read: rowsOf(({ cells }) => read(cells[key] ?? '', cells[value] ?? '')) }
}

/** A key that is empty is the one above. */
function serviceRows(key: string, value: string): Reader['read'] {
  return (lines, bad) => {
    let last = ''
    const parts = lines.flatMap(({ cells, origin }) => {
      last = cells[key] === '' ? last : (cells[key] ?? '')
      const line = serviceLine(last, cells[value] ?? '')
      if (line === undefined) bad.push(origin.line ?? 0)
      return line === undefined ? [] : [{ ...line, origin }]
    })
    return joinServices(parts)
  }
}

type ServicePart = NonNullable<ReturnType<typeof serviceLine>> & { readonly origin: Origin }

/** A frontend with its type, flags and all its backends. */
export function joinServices(parts: readonly ServicePart[]): readonly FoundRow[] {
  const groups = new Map<string, ServicePart[]>()
  for (const part of parts) groups.set(part.frontend, [...(groups.get(part.frontend) ?? []), part])
  return [...groups].map(([key, own]) => {
    const flags = own.find((part) => part.flags !== undefined)?.flags
    const backends = own.flatMap(({ backend, lost }) => backend ?? (lost === undefined ? [] : `lost backend ${lost}`))
    const [type] = flags?.split(', ') ?? []
    return {
      key,
      fields: { ...(type !== undefined && { type }), backends: [...new Set(backends)].sort().join(' ') },
      ...numberOf(own.find(({ number }) => number !== undefined)?.number),
      origin: own[0]?.origin ?? { file: '' },
    }
  })
}

function numberOf(told: string | number | undefined): Pick<FoundRow, 'number'> {
  return told === undefined || !/^[1-9]\d*$/.test(String(told)) ? {} : { number: Number(told) }
}

/** `1 => 10.0.0.1:80/TCP (active)`, one a line. */
function serviceListRows(lines: readonly Line[], bad: number[]): readonly FoundRow[] {
  let last = { frontend: '', type: '' }
  const parts = lines.flatMap(({ cells, origin }): readonly ServicePart[] => {
    const { Frontend: frontend = '', 'Service Type': type = '', Backend: backend = '' } = cells
    if (frontend !== '') last = { frontend, type }
    const key = serviceLine(last.frontend, '0.0.0.0:0 (0) (0) [x]')?.frontend
    if (key === undefined) {
      bad.push(origin.line ?? 0)
      return []
    }
    const head = frontend === '' ? [] : [{ frontend: key, flags: last.type, ...numberOf(cells.ID), origin }]
    const address = /=> (\S+)/.exec(backend)?.[1]
    const found = address === undefined ? undefined : serviceLine(last.frontend, `${address} (0) (1)`)
    return [...head, ...(found === undefined ? [] : [{ ...found, origin }])]
  })
  return joinServices(parts)
}

/** Labels stand one a line, the first beside the other cells. */
function policyRows(lines: readonly Line[]): readonly FoundRow[] {
  type Draft = { readonly labels: string[]; readonly line: Line }
  const drafts: Draft[] = []
  for (const line of lines) {
    const { cells } = line
    const label = cells.IDENTITY ?? cells['LABELS (source:key[=value])'] ?? ''
    if (cells.POLICY !== '') drafts.push({ labels: [label], line })
    else if (label !== '') drafts.at(-1)?.labels.push(label)
  }
  return drafts
    .filter(({ line: { cells } }) => cells.POLICY === 'Allow' || cells.POLICY === 'Deny')
    .map(({ labels, line: { cells, origin } }) => ({
      key: `${cells.DIRECTION} ${labels.sort().join(';')} ${portCell(cells['PORT/PROTO'] ?? '')}`,
      fields: {
        verdict: cells.POLICY ?? '',
        ...(cells['PROXY PORT'] !== undefined && { proxy: cells['PROXY PORT'] === 'NONE' ? 'no' : 'yes' }),
        ...(cells['AUTH TYPE'] !== undefined && { auth: cells['AUTH TYPE'] }),
      },
      origin,
    }))
}

function endpointRows(lines: readonly Line[]): readonly FoundRow[] {
  return lines.flatMap(({ cells, origin }) => {
    const { ENDPOINT: id = '', IDENTITY: identity = '', IPv4: ipv4 = '', IPv6: ipv6 = '' } = cells
    if (!/^\d+$/.test(id)) return []
    return [ipv4, ipv6].filter((ip) => ip !== '').map((ip) => ({ key: ip, fields: { id, identity }, origin }))
  })
}

function identityRows(lines: readonly Line[]): readonly FoundRow[] {
  const found: { readonly id: string; readonly labels: string[]; readonly origin: Origin }[] = []
  for (const { cells, origin } of lines) {
    const { ID: id = '', LABELS: label = '' } = cells
    if (/^\d+$/.test(id)) found.push({ id, labels: [label], origin })
    else if (label !== '') found.at(-1)?.labels.push(label)
  }
  return found.map(({ id, labels, origin }) => ({ key: id, fields: { labels: labels.sort().join(';') }, origin }))
}

/** Identities stand here by their number or by their labels; labels alone say too little to compare. */
function ipListRows(lines: readonly Line[]): readonly FoundRow[] {
  return lines.flatMap(({ cells, origin }) => {
    const { IP: ip = '', IDENTITY: identity = '' } = cells
    const cell = /^\d+$/.test(identity) ? ipcacheCell(ip, `identity=${identity}`) : undefined
    return cell === undefined ? [] : [{ ...cell, origin }]
  })
}
