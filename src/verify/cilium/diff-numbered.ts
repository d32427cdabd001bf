/** Maps whose rows are numbers of the node's own: what they stand for its other dumps tell, and what they should hold the objects. */
import type { Finding } from '#base/finding'
import { printEndpoint, printIp } from '#base/ip'
import { countOf, listOf } from '#base/text'
import type { FoundMap, FoundRow } from '#compile/cilium/found-map'
import type { ServiceRow } from '#compile/cilium/lb-rows'
import { maglevTable } from '#compile/cilium/maglev'
import { type NodeMaps, protocolName } from '#compile/cilium/node-maps'
import { diffFinding } from './findings'

/** Numbers of the dumped maps, by family where each family has maps of its own. */
export type NodeNumbers = {
  /** Frontends, as `10.96.0.50:80/TCP`, by their number. */
  readonly services: ReadonlyMap<number, string>
  /** Addresses of backends by number; absent where no dump of backends tells numbers. */
  readonly backends: ReadonlyMap<number, string> | undefined
  /** All numbers of reverse NAT that the dumps know; absent where none tells them. */
  readonly reverse: ReadonlySet<number> | undefined
}

export function readNumbers(found: readonly FoundMap[]): NodeNumbers {
  const rows = (kind: FoundMap['kind']): readonly FoundRow[] =>
    found.filter((map) => map.kind === kind && !map.isCut).flatMap((map) => map.rows)
  const numbered = (kind: FoundMap['kind']): readonly (readonly [number, string])[] =>
    rows(kind).flatMap(({ key, number }) => (number === undefined ? [] : [[number, key] as const]))
  const services = numbered('services')
  const backends = numbered('backends')
  const reverse = [...services, ...numbered('reverseNat')].map(([number]) => number)
  return {
    services: new Map(services),
    backends: backends.length === 0 ? undefined : new Map(backends),
    reverse: reverse.length === 0 ? undefined : new Set(reverse),
  }
}

export function compareMaglev(maps: NodeMaps, map: FoundMap, numbers: NodeNumbers): readonly Finding[] {
  const wanted = new Map(maps.maglev.map(({ service }) => [frontendText(service), service]))
  const known = map.rows.flatMap((row) => {
    const frontend = numbers.services.get(row.number ?? 0)
    const service = frontend === undefined ? undefined : wanted.get(frontend)
    return frontend === undefined ? [] : [{ row, frontend, service }]
  })
  const stray = numbers.services.size === 0 ? [] : map.rows.filter(({ number }) => !numbers.services.has(number ?? 0))
  return [
    ...stray.map(({ key, origin }) =>
      diffFinding('maps-diff.row-stale', {
        message: `a Maglev table of ${key} stands there, and no frontend of the dump has that number`,
        origin,
      }),
    ),
    ...known.flatMap(({ row, frontend, service }) =>
      service === undefined ? [] : compareTable(maps, { row, frontend, service, numbers }),
    ),
  ]
}

type Table = {
  readonly row: FoundRow
  readonly frontend: string
  readonly service: ServiceRow
  readonly numbers: NodeNumbers
}

function compareTable({ settings }: NodeMaps, { row, frontend, service, numbers }: Table): readonly Finding[] {
  const { table = [], origin } = row
  const tell = (message: string, hint?: string): readonly Finding[] => [
    diffFinding('maps-diff.maglev-differs', {
      message,
      origin,
      ...place(service),
      ...(hint !== undefined && { hint }),
    }),
  ]
  if (table.length !== settings.maglevSize) {
    const hint = 'another maglev-table-size than cilium-config has, or its agent was not restarted'
    return tell(`the Maglev table of ${frontend} has ${table.length} rows, where ${settings.maglevSize} are set`, hint)
  }
  const ids = idsOf(service, numbers)
  if (ids === undefined) return compareCounts(table, { frontend, service, tell })
  const suffix = service.scope === 'internal' ? '/i' : ''
  const backends = service.slots.map(({ ip, port, protocol }, at) => ({
    id: ids[at] ?? 0,
    address: `${printEndpoint(printIp(ip), port)}/${protocolName(protocol)}${suffix}`,
    weight: 100,
  }))
  const own = maglevTable(backends, { size: settings.maglevSize, seed: settings.maglevSeed })
  const differing = table.filter((id, at) => id !== own?.[at]).length
  if (differing === 0) return []
  return tell(
    `${countOf(differing, 'row')} of ${table.length} of the Maglev table of ${frontend} ${differing === 1 ? 'names' : 'name'} another backend than its endpoints imply`,
    'a backend that came or went, another seed, or other weights',
  )
}

/** Undefined where the dump does not tell the number of a backend. */
function idsOf({ slots }: ServiceRow, { backends }: NodeNumbers): readonly number[] | undefined {
  if (backends === undefined) return undefined
  const byText = new Map([...backends].map(([number, text]) => [text, number]))
  const ids = slots.map(({ ip, port }) => byText.get(printEndpoint(printIp(ip), port)) ?? byText.get(printIp(ip)))
  return ids.some((id) => id === undefined) ? undefined : ids.flatMap((id) => id ?? [])
}

type Counting = {
  readonly frontend: string
  readonly service: ServiceRow
  readonly tell: (message: string) => readonly Finding[]
}

/** Without numbers of backends: each must have its turn. */
function compareCounts(table: readonly number[], { frontend, service, tell }: Counting): readonly Finding[] {
  const there = new Set(table).size
  if (there === service.slots.length) return []
  return tell(
    `the Maglev table of ${frontend} names ${countOf(there, 'backend')}, where its endpoints are ${service.slots.length}`,
  )
}

/** Members are pairs of a backend and a Service with affinity. */
export function compareAffinity(maps: NodeMaps, map: FoundMap, numbers: NodeNumbers): readonly Finding[] {
  const wanted = new Map(maps.lb.services.map((service) => [frontendText(service), service]))
  const stray = map.rows.filter(({ number = 0, table }) => {
    const isKnown = numbers.backends === undefined || numbers.backends.has(table?.[0] ?? 0)
    const frontend = numbers.services.get(number)
    const service = frontend === undefined ? undefined : wanted.get(frontend)
    const hasAffinity = service === undefined || service.affinitySeconds !== undefined
    return !isKnown || !hasAffinity || (numbers.reverse !== undefined && !numbers.reverse.has(number))
  })
  const [first] = stray
  if (first === undefined) return []
  const pairs = listOf(
    stray.map(({ number, table }) => `backend ${table?.[0]} of Service ${number}`),
    5,
  )
  const message = `${countOf(stray.length, 'affinity member')} ${stray.length === 1 ? 'is' : 'are'} of no Service with affinity, or of no backend: ${pairs}`
  return [diffFinding('maps-diff.row-stale', { message, origin: first.origin })]
}

function frontendText({ ip, port, protocol, scope }: ServiceRow): string {
  return `${printEndpoint(printIp(ip), port)}/${protocolName(protocol)}${scope === 'internal' ? '/i' : ''}`
}

function place({ source: { object, path } }: ServiceRow): Pick<Finding, 'object' | 'path'> {
  return { ...(object !== undefined && { object }), ...(path !== undefined && path !== '' && { path }) }
}
