/** Which backend a Service's packet goes to: the connection's, its client's, or one that the algorithm chooses. Mirrors lb4_local of bpf/lib/lb.h, Cilium 1.16 to 1.19. */
import { parseEndpoint, printEndpoint, printIp } from '#base/ip'
import { countOf } from '#base/text'
import type { BackendRow, ServiceRow } from '#compile/cilium/lb-rows'
import { lbLayout } from '#compile/cilium/map-layouts'
import { serviceFlags } from '#compile/cilium/service-flags'
import type { MapLookup, WalkPlace } from '#model/walk'
import { printShare } from '../print-trace'
import { hasFlag } from './find-service'
import { numbers } from './flow-packet'
import type { NodeTables } from './node-tables'
import { affinityKey, affinityTable, createCt, lookUpService } from './state-tables'
import { hashTuple } from './tuple-hash'
import { type Draft, drop, type Ending, reject, stateOf, tell } from './walk-draft'

export type Choice = {
  readonly service: ServiceRow
  /** Sockets have no rows of connections, and know a client by its network namespace. */
  readonly place: 'socket' | 'pod' | 'nic'
}

/** Undefined where there is none. */
export function selectBackend(
  draft: Draft,
  node: NodeTables,
  at: WalkPlace,
  { service, place }: Choice,
): BackendRow | undefined {
  const known = place === 'socket' ? undefined : knownBackend(draft, node, at, service)
  if (known !== undefined) {
    draft.targets.push({ address: backendAddress(known), share: 1 })
    return known
  }
  const faithful = affineBackend(draft, node, at, { service, place })
  const chosen = faithful ?? choose(draft, node, at, { service, place })
  if (chosen === undefined) return undefined
  if (faithful !== undefined) draft.targets.push({ address: backendAddress(faithful), share: 1 })
  remember(draft, node, chosen, { service, place })
  return chosen
}

export function backendAddress({ ip, port }: BackendRow): string {
  return printEndpoint(printIp(ip), port)
}

/** A later packet of a connection stays with its backend, even where that one ends; one that is gone is chosen anew. */
function knownBackend(draft: Draft, node: NodeTables, at: WalkPlace, service: ServiceRow): BackendRow | undefined {
  const { row, lookup } = lookUpService(stateOf(draft, node), draft.packet)
  if (row === undefined) {
    tell(draft, at, ['looked for the connection', 'its Service does not know it: NEW'], { lookups: [lookup] })
    return undefined
  }
  const backend = node.backend(row.backendId ?? 0, service.ip)
  const lookups = [lookup, backend.lookup]
  if (backend.row === undefined) {
    const why = `ESTABLISHED, but its backend ${row.backendId ?? 0} is gone: another one is chosen`
    tell(draft, at, ['looked for the connection', why], { lookups })
    return undefined
  }
  const state = backend.row.state === 'active' ? '' : ', though that one ends'
  tell(draft, at, ['kept the backend', `ESTABLISHED: the connection stays with its backend${state}`], { lookups })
  return backend.row
}

function affineBackend(
  draft: Draft,
  node: NodeTables,
  at: WalkPlace,
  { service, place }: Choice,
): BackendRow | undefined {
  if (!hasFlag(service, serviceFlags.affinity)) return undefined
  const client = draft.packet.source
  const isSocket = place === 'socket'
  const seconds = service.affinitySeconds ?? 0
  const row = stateOf(draft, node).affinity.get(affinityKey(client, service.revNat, isSocket))
  const key = `${isSocket ? 'netns of ' : ''}${printIp(client)} RevNAT=${service.revNat}`
  const map = affinityTable(client.family)
  if (row === undefined) {
    tell(draft, at, ['looked for the client', 'session affinity has no backend for it yet'], {
      lookups: [{ map, key }],
    })
    return undefined
  }
  const member = service.slots.find(({ id }) => id === row.backendId)
  const value = `BackendID=${row.backendId}`
  const match = {
    map: 'cilium_lb_affinity_match',
    key: `${row.backendId} ${service.revNat}`,
    ...(member !== undefined && { value: 'member' }),
  }
  const why =
    member === undefined
      ? `backend ${row.backendId} is no longer one of the Service: another one is chosen`
      : `the client stays with its backend (within ${seconds} s of its last packet, as is taken here)`
  tell(draft, at, [member === undefined ? 'looked for the client' : 'kept the client’s backend', why], {
    lookups: [{ map, key, value }, match],
  })
  return member
}

function choose(draft: Draft, node: NodeTables, at: WalkPlace, { service, place }: Choice): BackendRow | undefined {
  const usesMaglev =
    place === 'nic' && (service.algorithm === 2 || (service.algorithm === 0 && node.maps.settings.usesMaglev))
  return usesMaglev ? chooseByMaglev(draft, node, at, service) : chooseAtRandom(draft, node, at, service)
}

function chooseByMaglev(draft: Draft, node: NodeTables, at: WalkPlace, service: ServiceRow): BackendRow | undefined {
  const { packet } = draft
  const { name } = lbLayout('maglev', service.ip.family, node.maps.settings)
  const found = node.maglev(service)
  if (found === undefined) {
    tell(draft, at, ['asked Maglev', 'the Service has no table'], {
      lookups: [{ map: name, key: String(service.revNat) }],
    })
    return undefined
  }
  const isAffine = hasFlag(service, serviceFlags.affinity)
  const tuple = {
    source: packet.source,
    sourcePort: isAffine ? 0 : packet.sourcePort,
    port: packet.port,
    protocol: numbers[packet.protocol],
  }
  const hash = hashTuple(tuple, node.maps.settings.maglevSeed)
  const index = hash % found.table.length
  const id = found.table[index] ?? 0
  const backend = node.backend(id, service.ip)
  const lookup = { map: name, key: `${service.revNat}[${index}]`, value: `backend ${id}` }
  const of = isAffine ? 'source and destination port' : 'source, both ports'
  const why = `Maglev: hash 0x${hash.toString(16).padStart(8, '0')} of ${of} and protocol, modulo ${found.table.length}, is row ${index}`
  tell(draft, at, ['chose the backend', why], { lookups: [lookup, backend.lookup] })
  if (backend.row !== undefined) draft.targets.push({ address: backendAddress(backend.row), share: 1 })
  return backend.row
}

function chooseAtRandom(draft: Draft, node: NodeTables, at: WalkPlace, service: ServiceRow): BackendRow | undefined {
  const { slots } = service
  const asked = draft.question.backend
  const isAsked = (row: BackendRow): boolean => asked !== undefined && isSame(asked, row)
  const chosen = slots.find(isAsked) ?? slots[0]
  if (chosen === undefined) return undefined
  for (const slot of slots) draft.targets.push({ address: backendAddress(slot), share: 1 / slots.length })
  const which = isAsked(chosen) ? 'the one that is asked for is followed' : 'the first is followed'
  const why =
    slots.length === 1
      ? 'it is the only backend'
      : `at random, one of ${countOf(slots.length, 'backend')}, ${printShare(1 / slots.length)} each: ${which}`
  draft.share /= slots.length
  tell(draft, at, ['chose the backend', why], { lookups: backendLookups(node, service, chosen) })
  return chosen
}

function isSame(asked: string, { ip, port }: BackendRow): boolean {
  const endpoint = parseEndpoint(asked)
  if (endpoint === undefined || printIp(endpoint.ip) !== printIp(ip)) return false
  return endpoint.port === undefined || endpoint.port === port
}

function backendLookups(node: NodeTables, service: ServiceRow, backend: BackendRow): readonly MapLookup[] {
  return [node.slot(service, backend), node.backend(backend.id, service.ip).lookup]
}

function remember(draft: Draft, node: NodeTables, { id }: BackendRow, { service, place }: Choice): void {
  const state = stateOf(draft, node)
  const { packet } = draft
  if (hasFlag(service, serviceFlags.affinity)) {
    const isSocket = place === 'socket'
    const row = { client: packet.source, isSocket, revNat: service.revNat, backendId: id }
    state.affinity.set(affinityKey(packet.source, service.revNat, isSocket), row)
  }
  if (place === 'socket') return
  createCt(state, packet, {
    direction: 'OUT',
    isService: true,
    revNat: service.revNat,
    sourceIdentity: 0,
    backendId: id,
  })
}

/** With `service-no-backend-response=reject` the sender is told by ICMP. */
export function noBackend(draft: Draft, at: WalkPlace, { source }: ServiceRow): Ending {
  const blame = {
    ...(source.object !== undefined && { object: source.object }),
    ...(source.origin !== undefined && { origin: source.origin }),
  }
  if (!draft.net.path.rejectsNoBackend) {
    return drop(draft, at, 158, { sentence: 'the Service has no backend for it', ...blame })
  }
  const sentence =
    'the Service has no backend for it; the sender is told so by ICMP (service-no-backend-response=reject)'
  return reject(draft, at, 158, { sentence, ...blame })
}
