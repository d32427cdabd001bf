/** A row of the matrix with the reasons it rests on: ports in stretches that the same rules decide. */
import { printOrigin } from '#base/finding'
import { plainText } from '#base/text'
import type { DirectionAnswer, PolicyAnswer, PolicyReason } from '#trace/policy/answer'
import { portsBetween } from '#trace/policy/decide'
import { evaluate } from '#trace/policy/evaluate'
import type { Party } from '#trace/policy/party'
import { commonFamily } from '#trace/policy/party-facts'
import { classOf, type PolicyWorld } from '#trace/policy/world'
import { allConnections, type MatrixProtocol, matrixProtocols, portsOf } from './connection-text'
import type { MatrixEnd, MatrixRow } from './matrix'

/** Indented lines. A Service's row rests on those of its backends. */
export function explainRow(world: PolicyWorld, { src, dst }: MatrixRow): readonly string[] {
  const [source, target] = [partyOf(src), partyOf(dst)]
  if (source === undefined || target === undefined) return ['    by its backends: see policy eval --to NS/svc/NAME']
  const stretches = stretchesOf(world, source, target)
  const groups = new Map<string, { readonly ports: Map<MatrixProtocol, string[]>; readonly lines: readonly string[] }>()
  for (const { protocol, from, to } of stretches) {
    const lines = linesOf(evaluate(world, { source, target, protocol, port: from }))
    const key = lines.join('\n')
    const group = groups.get(key) ?? { ports: new Map(), lines }
    groups.set(key, group)
    group.ports.set(protocol, [...(group.ports.get(protocol) ?? []), from === to ? `${from}` : `${from}-${to}`])
  }
  return [...groups.values()].flatMap(({ ports, lines }) => [`    ${printGroup(ports)}`, ...lines])
}

function partyOf(end: MatrixEnd): Party | undefined {
  if (end.kind === 'workload') return end.members[0]
  return end.kind === 'service' ? undefined : end.example
}

function printGroup(ports: ReadonlyMap<MatrixProtocol, readonly string[]>): string {
  const isWhole = matrixProtocols.every((protocol) => ports.get(protocol)?.join() === '1-65535')
  if (isWhole) return allConnections
  return [...ports].map(([protocol, texts]) => `${protocol} ${texts.join(',')}`).join('; ')
}

type Stretch = { readonly protocol: MatrixProtocol; readonly from: number; readonly to: number }

/** Ranges of the row, cut where a rule begins or ends. */
function stretchesOf(world: PolicyWorld, source: Party, target: Party): readonly Stretch[] {
  const family = commonFamily(world.cluster, source, target)
  const set = portsBetween(world, classOf(world, source, family).id, classOf(world, target, family).id)
  const cuts = portCuts(world, target)
  return matrixProtocols.flatMap((protocol) =>
    [set.allowed, set.unknown].flatMap((ranges) =>
      portsOf(ranges, protocol).flatMap(({ from, to }): Stretch[] => {
        const starts = [from, ...cuts.filter((cut) => cut > from && cut <= to)]
        return joinAlike(
          world,
          { source, target },
          starts.map((start, at) => ({ protocol, from: start, to: (starts[at + 1] ?? to + 1) - 1 })),
        )
      }),
    ),
  )
}

function portCuts({ policies }: PolicyWorld, target: Party): readonly number[] {
  const cuts = new Set<number>()
  for (const { rules } of policies) {
    for (const { ports } of rules) {
      if (ports === 'any') continue
      for (const port of ports) if (port.kind === 'range') cuts.add(port.range.from).add(port.range.to + 1)
    }
  }
  const containers = target.kind === 'pod' ? target.pod.containers : []
  for (const { ports } of containers)
    for (const { containerPort } of ports) cuts.add(containerPort).add(containerPort + 1)
  return [...cuts].sort((a, b) => a - b)
}

type Ends = { readonly source: Party; readonly target: Party }

/** Rules of other pods cut as well, and change nothing here. */
function joinAlike(world: PolicyWorld, ends: Ends, stretches: readonly Stretch[]): Stretch[] {
  const joined: (Stretch & { readonly key: string })[] = []
  for (const one of stretches) {
    const key = linesOf(evaluate(world, { ...ends, protocol: one.protocol, port: one.from })).join('\n')
    const last = joined.at(-1)
    if (last?.key === key) joined[joined.length - 1] = { ...last, to: one.to }
    else joined.push({ ...one, key })
  }
  return joined.map(({ protocol, from, to }) => ({ protocol, from, to }))
}

function linesOf({ egress, ingress }: PolicyAnswer): readonly string[] {
  return [...direction('egress', egress), ...direction('ingress', ingress)]
}

function direction(name: string, { decision, because }: DirectionAnswer): readonly string[] {
  return because.map((reason, at) => {
    const head = at === 0 ? `${name} ${decision}:` : ''
    return `      ${head.padEnd(16)} ${plainText(printReason(reason))}`
  })
}

function printReason({ sentence, path, origin }: PolicyReason): string {
  const where = [path ?? '', origin === undefined ? '' : printOrigin(origin)].filter((part) => part !== '')
  return where.length === 0 ? sentence : `${sentence} (${where.join(', ')})`
}
