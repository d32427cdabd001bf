/** Two sets of rows by key: findings for what one has and the other has not, and for fields that differ. */
import type { Finding } from '#base/finding'
import { compareText, listOf } from '#base/text'
import type { FoundMap, FoundRow } from '#compile/cilium/found-map'
import type { RowSource } from '#compile/cilium/map-source'
import type { ExpectedRow, ExpectedRows } from './expected-maps'
import { diffFinding, type MapsDiffCode } from './findings'

export type Comparison = {
  readonly title: string
  readonly codes?: Partial<Readonly<Record<'missing' | 'stale' | 'differs', MapsDiffCode>>>
}

export function compareRows(expected: ExpectedRows, map: FoundMap, comparison: Comparison): readonly Finding[] {
  const pairs = pairRows(expected, map)
  const missing = [...expected].filter(
    ([key, { family }]) =>
      !pairs.taken.has(key) && (map.family === undefined || family === undefined || family === map.family),
  )
  return [
    ...pairs.both.flatMap(([key, row, found]) => compareFields(key, [row, found], { ...comparison, isCut: map.isCut })),
    ...(map.isCut ? [] : missing.map(([key, row]) => missingRow(key, row, { map, comparison }))),
    ...pairs.stale.map((row) => staleRow(row, comparison)),
  ]
}

type Pairs = {
  readonly both: readonly (readonly [string, ExpectedRow, FoundRow])[]
  readonly taken: ReadonlySet<string>
  readonly stale: readonly FoundRow[]
}

/** Keys of a dump may tell less than ours: no protocol before 1.17, and no port of a backend from 1.18 on. */
function pairRows(expected: ExpectedRows, map: FoundMap): Pairs {
  const byShort = new Map<string, string[]>()
  for (const key of expected.keys())
    for (const short of shortKeys(map.kind, key)) byShort.set(short, [...(byShort.get(short) ?? []), key])
  const both: (readonly [string, ExpectedRow, FoundRow])[] = []
  const taken = new Set<string>()
  const stale: FoundRow[] = []
  for (const found of map.rows) {
    const keys = expected.has(found.key) ? [found.key] : (byShort.get(found.key) ?? [])
    if (keys.length === 0 && !isPassedOver(map.kind, found)) stale.push(found)
    for (const key of keys) {
      taken.add(key)
      const row = expected.get(key)
      if (row !== undefined) both.push([key, row, found])
    }
  }
  return { both, taken, stale }
}

function shortKeys(kind: FoundMap['kind'], key: string): readonly string[] {
  if (kind === 'services') return [key.replace(/\/[A-Z]+(?=\/i$|$)/, '/ANY')]
  if (kind === 'backends') return [key.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')]
  return []
}

/** Ports that no Service has, and endpoints of the node itself that no object tells. */
function isPassedOver(kind: FoundMap['kind'], { key, fields }: FoundRow): boolean {
  if (kind === 'services') return /:0\/ANY$/.test(key)
  if (kind === 'lxc') return fields.host === 'yes' || ['4', '8'].includes(fields.identity ?? '')
  if (kind === 'endpoints') return Number(fields.identity) < 256
  if (kind === 'ipcache') return ['1', '4', '8'].includes(fields.identity ?? '') || isRouter(fields)
  return false
}

/** Routers and health endpoints of other nodes have rows that only CiliumNode objects imply. */
function isRouter({ identity, node }: FoundRow['fields']): boolean {
  return identity === '6' && node !== undefined && node !== 'none'
}

function compareFields(
  key: string,
  [row, found]: readonly [ExpectedRow, FoundRow],
  { title, codes, isCut }: Comparison & Pick<FoundMap, 'isCut'>,
): readonly Finding[] {
  return Object.entries(found.fields).flatMap(([name, there]): readonly Finding[] => {
    const wanted = row.fields[name]
    if (wanted === undefined || wanted === there || row.others?.[name]?.includes(there) === true) return []
    if (name === 'backends') return compareBackends(key, { wanted, there, found, row, isCut })
    const code =
      name === 'node'
        ? 'maps-diff.wrong-node'
        : name === 'identity'
          ? 'maps-diff.wrong-identity'
          : (codes?.differs ?? 'maps-diff.row-differs')
    const message = `${key} of ${title} has ${name} ${there}, where ${wanted} is implied${byNote(row.source)}`
    return [diffFinding(code, { message, ...placeOf(row.source), origin: found.origin })]
  })
}

type Backends = {
  readonly wanted: string
  readonly there: string
  readonly found: FoundRow
  readonly row: ExpectedRow
  readonly isCut: boolean
}

/** Protocols of backends are told by both or by neither; those of a Service at which a dump ends may be beyond its end. */
function compareBackends(key: string, { wanted, there, found, row, isCut }: Backends): readonly Finding[] {
  const hasProtocol = /\/[A-Z]+/.test(wanted) && /\/[A-Z]+/.test(there)
  const listIn = (text: string): readonly string[] =>
    text
      .split(/ (?!backend|\d+$)/)
      .filter((one) => one !== '')
      .map((one) => (hasProtocol ? one : one.replace(/\/[A-Z]+$/, '')))
  const [ours, theirs] = [listIn(wanted), listIn(there)]
  const stale = theirs.filter((one) => !ours.includes(one))
  const missing = isCut ? [] : ours.filter((one) => !theirs.includes(one))
  const place = { ...placeOf(row.source), origin: found.origin }
  return [
    ...(stale.length === 0
      ? []
      : [
          diffFinding('maps-diff.stale-backend', {
            message: `${key} sends to ${listOf(stale)}, which is no ready endpoint of the Service`,
            ...place,
          }),
        ]),
    ...(missing.length === 0
      ? []
      : [
          diffFinding('maps-diff.backend-missing', {
            message: `${key} does not send to ${listOf(missing)}, which is a ready endpoint of the Service`,
            ...place,
          }),
        ]),
  ]
}

function missingRow(
  key: string,
  row: ExpectedRow,
  { map, comparison }: { readonly map: FoundMap; readonly comparison: Comparison },
): Finding {
  const told = fieldText(row.fields)
  return diffFinding(comparison.codes?.missing ?? 'maps-diff.row-missing', {
    message: `${key} is missing from ${comparison.title}${told === '' ? '' : ` (${told})`}${byNote(row.source)}`,
    ...placeOf(row.source),
    origin: map.origin,
    ...hintOf(map),
  })
}

function staleRow({ key, fields, origin }: FoundRow, { title, codes }: Comparison): Finding {
  const told = fieldText(fields)
  return diffFinding(codes?.stale ?? 'maps-diff.row-stale', {
    message: `${key} stands in ${title}${told === '' ? '' : ` (${told})`}, and nothing implies it`,
    origin,
  })
}

function fieldText(fields: ExpectedRow['fields']): string {
  return Object.entries(fields)
    .filter(([, value]) => value !== '')
    .sort(([a], [b]) => compareText(a, b))
    .map(([name, value]) => `${name} ${value}`)
    .join(', ')
}

function hintOf({ unread = 0 }: FoundMap): Pick<Finding, 'hint'> {
  if (unread === 0) return {}
  return { hint: `unless it is ${unread === 1 ? 'the row that' : `one of the ${unread} rows that`} cannot be read` }
}

/** An object stands before the message; what no object implies is told behind it. */
function byNote({ object, note }: RowSource): string {
  return object === undefined ? ` (${note ?? 'by the agent itself'})` : ''
}

function placeOf({ object, path }: RowSource): Pick<Finding, 'object' | 'path'> {
  return { ...(object !== undefined && { object }), ...(path !== undefined && path !== '' && { path }) }
}
