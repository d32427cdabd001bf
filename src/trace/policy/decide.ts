/** The fast path: decisions between classes without reasons, for one port or for all of them. */
import { invariant } from '#base/invariant'
import type { Decision } from './answer'
import { type ConnectionSet, joinDecisions, joinTables, type PortRanges } from './connection-set'
import type { ClassConnection, Nearness, PartyClass } from './party'
import type { PolicyWorld } from './policy-world'
import { decisionAt } from './port-pieces'
import { tableOf } from './port-table'

export type { ConnectionSet, PortRanges }

export function decide(world: PolicyWorld, connection: ClassConnection): Decision {
  const { source, target, protocol, port, nearness = 'apart' } = connection
  const ingress = known(world, 'ingress', connection) ?? ingressTable(world, { source, target, nearness })
  const atTarget = decisionAt(ingress.protocols[protocol], port)
  if (atTarget === 'denied') return atTarget
  const egress = known(world, 'egress', connection) ?? egressTable(world, { source, target, nearness })
  return joinDecisions(atTarget, decisionAt(egress.protocols[protocol], port))
}

/** Both directions together, over every port of TCP, UDP and SCTP; alike connections share one value. */
export function portsBetween(
  world: PolicyWorld,
  source: number,
  target: number,
  nearness: Nearness = 'apart',
): ConnectionSet {
  const ingress = ingressTable(world, { source, target, nearness })
  const egress = egressTable(world, { source, target, nearness })
  const key = ingress.id * 0x4000000 + egress.id
  const known = world.memory.sets.get(key)
  if (known !== undefined) return known
  const set = joinTables(ingress, egress)
  world.memory.sets.set(key, set)
  return set
}

type Ends = { readonly source: number; readonly target: number; readonly nearness: Nearness }

function known(
  { memory }: PolicyWorld,
  direction: 'ingress' | 'egress',
  { source, target, nearness }: ClassConnection,
): ReturnType<typeof tableOf> | undefined {
  if (nearness !== undefined && nearness !== 'apart') return undefined
  return direction === 'ingress' ? memory.tables.ingress[target]?.[source] : memory.tables.egress[source]?.[target]
}

function ingressTable(world: PolicyWorld, { source, target, nearness }: Ends): ReturnType<typeof tableOf> {
  return tableOf(world, 'ingress', { subject: classAt(world, target), peer: classAt(world, source), nearness })
}

function egressTable(world: PolicyWorld, { source, target, nearness }: Ends): ReturnType<typeof tableOf> {
  return tableOf(world, 'egress', { subject: classAt(world, source), peer: classAt(world, target), nearness })
}

function classAt({ classes }: PolicyWorld, id: number): PartyClass {
  const found = classes[id]
  invariant(found !== undefined, `there is no class of parties ${id}`)
  return found
}
