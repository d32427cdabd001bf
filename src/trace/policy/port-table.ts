/** The decisions of one lane for every protocol and port, kept once for all lanes that decide alike. */
import { type Direction, type PolicyProtocol, policyProtocols } from '#compile/policy/policy-rule'
import type { Decision } from './answer'
import { type LaneEnds, layLane, policiesFor } from './lane'
import type { PolicyWorld } from './policy-world'
import { cutPorts, rulesAt, targetPorts } from './port-match'
import type { PortPieces, PortTable } from './port-pieces'
import type { Lane } from './semantics'

export function tableOf(world: PolicyWorld, direction: Direction, ends: LaneEnds): PortTable {
  const { tables, nearTables } = world.memory
  const { subject, peer, nearness } = ends
  if (nearness !== 'apart') {
    const key = `${direction} ${subject.id} ${peer.id} ${nearness}`
    const known = nearTables.get(key)
    if (known !== undefined) return known
    const table = findTable(world, direction, ends)
    nearTables.set(key, table)
    return table
  }
  tables[direction][subject.id] ??= []
  const row = tables[direction][subject.id] ?? []
  const known = row[peer.id]
  if (known !== undefined) return known
  const table = findTable(world, direction, ends)
  row[peer.id] = table
  return table
}

function findTable(world: PolicyWorld, direction: Direction, ends: LaneEnds): PortTable {
  const lane = layLane(world, direction, ends)
  const text = textOf(world, lane)
  const { tablesByText } = world.memory
  const known = tablesByText.get(text)
  if (known !== undefined) return known
  const table = buildTable(world, lane, tablesByText.size)
  tablesByText.set(text, table)
  return table
}

/** All that the decisions of a lane rest on. */
function textOf(world: PolicyWorld, lane: Lane): string {
  const { ruleIds, semantics } = world
  const rules = lane.matched.map(({ rule, isCertain }) => `${ruleIds.get(rule)}${isCertain ? '' : '?'}`).join()
  const usesNames = lane.matched.some(
    ({ rule }) => rule.ports !== 'any' && rule.ports.some(({ kind }) => kind === 'named'),
  )
  const names = usesNames ? targetPorts(lane).map(({ name, protocol, port }) => `${name} ${protocol} ${port}`) : []
  const policies = policiesFor(world, lane.direction, lane.subject).number
  return `${lane.direction} ${policies} | ${rules} | ${names.join()} | ${semantics.laneText(lane)}`
}

function buildTable({ semantics }: PolicyWorld, lane: Lane, id: number): PortTable {
  const piecesOf = (protocol: PolicyProtocol): PortPieces => {
    const starts = cutPorts(lane, protocol, semantics.ownPorts?.(protocol))
    const ends: number[] = []
    const decisions: Decision[] = []
    for (const [index, port] of starts.entries()) {
      const at = { protocol, port }
      const decision = semantics.decide(lane, rulesAt(lane, at), at)
      const end = (starts[index + 1] ?? 65536) - 1
      if (decisions.at(-1) === decision) ends[ends.length - 1] = end
      else {
        ends.push(end)
        decisions.push(decision)
      }
    }
    return { ends: Uint16Array.from(ends), decisions }
  }
  const pieces = Object.fromEntries(policyProtocols.map((protocol) => [protocol, piecesOf(protocol)]))
  return { id, protocols: pieces as PortTable['protocols'] }
}
