/** The decisions of one lane for every protocol and port, kept once for all lanes that decide alike. */
import { type Direction, type PolicyProtocol, policyProtocols } from '#compile/policy/policy-rule'
import type { Decision } from './answer'
import { type LaneEnds, layLane } from './lane'
import { signLane } from './lane-signature'
import type { PolicyWorld } from './policy-world'
import { cutPorts, rulesAt } from './port-match'
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
  const { laneText } = world.semantics
  const signature = signLane(world, direction, ends)
  const lane = laneText === undefined ? undefined : layLane(world, direction, ends)
  const text = lane === undefined ? signature : `${signature} | ${laneText?.(lane)}`
  const { tablesByText } = world.memory
  const known = tablesByText.get(text)
  if (known !== undefined) return known
  const table = shareTable(world, buildTable(world, lane ?? layLane(world, direction, ends)))
  tablesByText.set(text, table)
  return table
}

/** Tables that say the same are one, whatever rules made them. */
function shareTable({ memory: { tablesByContent } }: PolicyWorld, protocols: PortTable['protocols']): PortTable {
  const content = policyProtocols
    .map((protocol) => `${protocols[protocol].ends.join()} ${protocols[protocol].decisions.join()}`)
    .join(';')
  const known = tablesByContent.get(content)
  if (known !== undefined) return known
  const table = { id: tablesByContent.size, protocols }
  tablesByContent.set(content, table)
  return table
}

function buildTable({ semantics }: PolicyWorld, lane: Lane): PortTable['protocols'] {
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
  return pieces as PortTable['protocols']
}
