/** Rows that traffic left on a node: connections and translations to what is gone, or that get into each other's way. */
import type { Finding, Origin } from '#base/finding'
import { type Ip, printEndpoint, printIp } from '#base/ip'
import { containsIp } from '#base/prefix'
import { countOf, listOf } from '#base/text'
import type { RawRow } from '#compile/cilium/decode-raw'
import type { NodeMaps } from '#compile/cilium/node-maps'
import { type DumpFile, unwrap } from '#compile/cilium/parse-dump'
import { parseRawJson, parseRawText } from '#compile/cilium/raw-rows'
import { podRanges } from '#compile/cilium/render-ipcache'
import { readState } from '#trace/cilium/read-state'
import { stateMapOf } from '#trace/cilium/state-bytes'
import type { CtRow, NatRow } from '#trace/cilium/state-rows'
import { type NodeState, newState } from '#trace/cilium/state-tables'
import type { NodeNumbers } from './diff-numbered'
import { diffFinding, type MapsDiffCode } from './findings'

/** Dumps of `bpf ct list` and `bpf nat list`, as text or JSON, with what a sysdump wraps around them; and of their maps as bytes. */
export function isStateDump({ file, text }: DumpFile): boolean {
  const body = unwrap(text).text.trimStart()
  if (isRawStart(body)) return firstRaw(file, body).some((row) => stateMapOf(file, row) !== undefined)
  if (/^\[\s*\{\s*"Key"\s*:\s*\{/.test(body)) return body.slice(0, 2000).includes('"NextHeader"')
  return /^(?:TCP|UDP|SCTP|ICMP(?:v6)?) (?:IN|OUT) \S+ -> \S+/im.test(body.slice(0, 4000))
}

function isRawStart(body: string): boolean {
  return /^key:/.test(body) || /^\[\s*\{\s*"key"/.test(body)
}

/** Enough of it to know the map by. */
function firstRaw(file: string, body: string): readonly RawRow[] {
  if (body.startsWith('key:')) return parseRawText(file, `${body.slice(0, 4000)}\nkey:`)?.rows.slice(0, 1) ?? []
  const end = body.indexOf('}')
  const text = `${body.slice(0, end + 1)}]`
  try {
    return parseRawJson(file, JSON.parse(text)) ?? []
  } catch {
    return []
  }
}

export function diffState(maps: NodeMaps, file: DumpFile, numbers: NodeNumbers): readonly Finding[] {
  const { node } = maps.world
  const state = newState(maps.settings.policy.version)
  const text = unwrap(file.text).text
  const read = readState(state, [{ node, file: file.file, text }], node)
  const own = state.of(node)
  const ask: Asked = { maps, numbers, origin: { file: file.file } }
  return [
    ...read.map(({ message }) => diffFinding('maps-diff.state-unread', { message, origin: ask.origin })),
    ...connectionFindings(own, ask),
    ...translationFindings(own, ask),
  ]
}

type Asked = { readonly maps: NodeMaps; readonly numbers: NodeNumbers; readonly origin: Origin }

function tellMany<T>(
  code: MapsDiffCode,
  rows: readonly T[],
  {
    origin,
    text,
    say,
  }: {
    readonly origin: Origin
    readonly text: (row: T) => string
    readonly say: (count: number, rows: string) => string
  },
): readonly Finding[] {
  if (rows.length === 0) return []
  return [diffFinding(code, { message: say(rows.length, listOf(rows.map(text), 3)), origin })]
}

function connectionFindings({ ct }: NodeState, { maps, numbers, origin }: Asked): readonly Finding[] {
  const rows = [...ct.values()]
  const isGone = goneFrom(maps)
  const direct = rows.filter(({ isService }) => !isService)
  const services = rows.filter(({ isService }) => isService)
  const of = (count: number): string => countOf(count, 'connection')
  return [
    ...tellMany(
      'maps-diff.ct-gone-pod',
      direct.filter(({ source, destination }) => isGone(source) || isGone(destination)),
      {
        origin,
        text: ctText,
        say: (count, list) =>
          `${of(count)} ${count === 1 ? 'has' : 'have'} an end in the pod ranges that no pod of the input has: ${list}`,
      },
    ),
    ...tellMany(
      'maps-diff.ct-lost-backend',
      services.filter(
        ({ backendId = 0 }) => numbers.backends !== undefined && backendId !== 0 && !numbers.backends.has(backendId),
      ),
      {
        origin,
        text: (row) => `${ctText(row)} to backend ${row.backendId}`,
        say: (count, list) =>
          `${of(count)} to ${count === 1 ? 'a Service keeps a backend' : 'Services keep backends'} that the node no longer has: ${list}`,
      },
    ),
    ...tellMany(
      'maps-diff.ct-unknown-service',
      rows.filter(({ revNat }) => revNat !== 0 && numbers.reverse !== undefined && !numbers.reverse.has(revNat)),
      {
        origin,
        text: (row) => `${ctText(row)} RevNAT=${row.revNat}`,
        say: (count, list) =>
          `answers of ${of(count)} cannot be translated back, as the node has no Service of that number: ${list}`,
      },
    ),
  ]
}

/** Addresses in the pod ranges that are neither a pod's nor the node's own; without ranges nothing is called gone. */
function goneFrom({ world, lxc }: NodeMaps): (ip: Ip) => boolean {
  const { cluster } = world
  const ranges = podRanges({ cluster })
  const held = new Set([...cluster.pods.values()].flatMap(({ podIPs }) => podIPs))
  for (const { ip } of lxc) held.add(printIp(ip))
  for (const { addresses, healthIps, ingressIps } of cluster.ciliumNodes.values())
    for (const text of [...addresses.map(({ address }) => address), ...healthIps, ...ingressIps]) held.add(text)
  return (ip) => !held.has(printIp(ip)) && ranges.some(({ prefix }) => containsIp(prefix, ip))
}

function translationFindings({ nat }: NodeState, { maps, origin }: Asked): readonly Finding[] {
  const rows = [...nat.values()]
  const isGone = goneFrom(maps)
  const isOwn = ownAddresses(maps)
  const forward = rows.filter(({ direction }) => direction === 'OUT')
  const reverse = rows.filter(({ direction }) => direction === 'IN')
  const of = (count: number): string => countOf(count, 'translation')
  return [
    ...tellMany(
      'maps-diff.nat-gone-pod',
      [...forward.filter(({ source }) => isGone(source)), ...reverse.filter(({ to }) => isGone(to.ip))],
      {
        origin,
        text: natText,
        say: (count, list) =>
          `${of(count)} ${count === 1 ? 'is' : 'are'} for an address in the pod ranges that no pod of the input has: ${list}`,
      },
    ),
    ...tellMany(
      'maps-diff.nat-foreign-address',
      forward.filter(({ to }) => !isOwn(to.ip)),
      {
        origin,
        text: natText,
        say: (count, list) =>
          `${of(count)} ${count === 1 ? 'hides' : 'hide'} a source behind an address that is neither the node’s nor an egress address of its own: ${list}`,
      },
    ),
    ...collisions(forward, origin),
    ...unpaired(forward, reverse, origin),
    ...scarce(forward, origin),
  ]
}

function ownAddresses({ world, lxc, egress }: NodeMaps): (ip: Ip) => boolean {
  const { cluster, node, devices } = world
  const texts = new Set<string>([...devices.values()].flat())
  for (const { address } of cluster.nodes.get(node)?.addresses ?? []) texts.add(address)
  for (const { address } of cluster.ciliumNodes.get(node)?.addresses ?? []) texts.add(address)
  for (const { ip, flags } of lxc) if ((flags & 1) === 1) texts.add(printIp(ip))
  for (const { egressIp } of egress) texts.add(printIp(egressIp))
  return (ip) => texts.has(printIp(ip))
}

/** To one destination each translated port is one connection's: of two the answers go to one of them alone. */
function collisions(forward: readonly NatRow[], origin: Origin): readonly Finding[] {
  const groups = groupBy(forward, (row) => `${row.protocol} ${natTarget(row)} → ${endText(row.destination, row.port)}`)
  const twice = [...groups].filter(
    ([, rows]) => new Set(rows.map(({ source, sourcePort }) => endText(source, sourcePort))).size > 1,
  )
  return tellMany('maps-diff.nat-collision', twice, {
    origin,
    text: ([place, rows]) =>
      `${place} of ${listOf(
        rows.map(({ source, sourcePort }) => endText(source, sourcePort)),
        4,
      )}`,
    say: (count, list) =>
      `${countOf(count, 'translated port')} ${count === 1 ? 'stands' : 'stand'} for several connections, whose answers reach one of them alone: ${list}`,
  })
}

/** Each is written with its twin; one that is alone was evicted, and its answers are the host’s own. */
function unpaired(forward: readonly NatRow[], reverse: readonly NatRow[], origin: Origin): readonly Finding[] {
  const [ahead, back] = [new Set(forward.map(forwardKey)), new Set(reverse.map(reverseKey))]
  const alone = [
    ...forward.filter((row) => !back.has(forwardKey(row))),
    ...reverse.filter((row) => !ahead.has(reverseKey(row))),
  ]
  return tellMany('maps-diff.nat-unpaired', alone, {
    origin,
    text: natText,
    say: (count, list) =>
      `${countOf(count, 'translation')} ${count === 1 ? 'lacks its twin' : 'lack their twins'} of the other direction: ${list}`,
  })
}

function forwardKey({ protocol, source, sourcePort, destination, port, to }: NatRow): string {
  return [protocol, endText(source, sourcePort), endText(destination, port), endText(to.ip, to.port)].join(' ')
}

/** From the world to the translated address, and back to the source. */
function reverseKey({ protocol, source, sourcePort, destination, port, to }: NatRow): string {
  return [protocol, endText(to.ip, to.port), endText(source, sourcePort), endText(destination, port)].join(' ')
}

/** Ports from 32768 on are shared by all that one address hides, towards one destination. */
const portCount = 32_768

function scarce(forward: readonly NatRow[], origin: Origin): readonly Finding[] {
  const groups = groupBy(
    forward,
    ({ protocol, to, destination, port }) => `${protocol} ${printIp(to.ip)} → ${endText(destination, port)}`,
  )
  const full = [...groups].filter(([, { length }]) => length > 0.5 * portCount)
  return tellMany('maps-diff.nat-ports-scarce', full, {
    origin,
    text: ([place, { length }]) => `${place} has ${length}`,
    say: (_, list) =>
      `more than half of the ${portCount} ports that one address has towards one destination are taken, and 167 drops begin before they all are: ${list}`,
  })
}

function groupBy<T>(rows: readonly T[], keyOf: (row: T) => string): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>()
  for (const row of rows) {
    const group = groups.get(keyOf(row))
    if (group === undefined) groups.set(keyOf(row), [row])
    else group.push(row)
  }
  return groups
}

function endText(ip: Ip, port: number): string {
  return printEndpoint(printIp(ip), port)
}

function natTarget({ to }: NatRow): string {
  return endText(to.ip, to.port)
}

function ctText({ protocol, direction, source, sourcePort, destination, port }: CtRow): string {
  return `${protocol} ${direction} ${endText(source, sourcePort)} -> ${endText(destination, port)}`
}

function natText(row: NatRow): string {
  const { protocol, direction, source, sourcePort, destination, port } = row
  const what = direction === 'OUT' ? 'XLATE_SRC' : 'XLATE_DST'
  return `${protocol} ${direction} ${endText(source, sourcePort)} -> ${endText(destination, port)} ${what} ${natTarget(row)}`
}
