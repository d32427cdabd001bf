/** Gathering flows: what a million rows say of who connected to whom, each thing once, with when it was seen. */
import { type Directory, type DirectoryIndex, indexDirectory, type KnownPod } from '#flows/directory'
import type { Labels } from '#flows/holder'
import { connectedPort, type Ends, newEnds, type OwnEnd, ownEndOf, type PeerEnd, peerEndOf } from '#flows/intern-ends'
import type { ObservedFlow } from '#flows/observed-flow'
import { isPorted, type PortedProtocol } from '#verify/policy/audit-judge'

/** Every row of the pods of one workload, those of one peer, a direction, a port and a decision; the ends are those of one row. */
export type Fact = {
  readonly own: OwnEnd
  readonly peer: PeerEnd
  readonly isEgress: boolean
  readonly protocol: PortedProtocol
  readonly port: number
  readonly isAllowed: boolean
  firstSeen: number
  lastSeen: number
  hits: number
}

/** Why no rule can be made of a row. */
export type LeftOut =
  | 'no-port'
  | 'protocol'
  | 'no-namespace'
  | 'no-address'
  | 'not-an-address'
  | 'loopback'
  | 'itself'
  | 'link-local'

export type Gathering = {
  readonly directory: Directory
  readonly ends: Ends
  readonly kinds: EndKinds
  /** By the kind of the own end, then by all else. */
  readonly facts: Map<number, Fact>[]
  readonly leftOut: Map<LeftOut, number>
}

export function startGathering(directory: Directory): Gathering {
  return { directory, ends: newEnds(indexDirectory(directory)), kinds: newKinds(), facts: [], leftOut: new Map() }
}

const protocolNumbers = { TCP: 0, UDP: 1, SCTP: 2 } as const

/** The gathering is taken over and given back. */
export function gatherFlows(gathering: Gathering, flows: readonly ObservedFlow[]): Gathering {
  for (const flow of flows) {
    const why = gatherFlow(gathering, flow)
    if (why !== undefined) gathering.leftOut.set(why, (gathering.leftOut.get(why) ?? 0) + 1)
  }
  return gathering
}

function gatherFlow({ ends, kinds, facts }: Gathering, flow: ObservedFlow): LeftOut | undefined {
  // A pod of which nothing can be used was recorded all the same.
  const own = ownEndOf(ends, flow)
  const protocol = flow.protocol.toUpperCase()
  if (!isPorted(protocol)) return 'protocol'
  const port = connectedPort(flow)
  if (port === undefined) return 'no-port'
  const peer = peerEndOf(ends, flow)
  if (peer.identity.kind === 'nobody') return peer.identity.why
  if (own.namespace === null) return 'no-namespace'
  const isEgress = flow.direction === 'EGRESS'
  const isAllowed = wasLetThrough(flow)
  const ownKind = kindOfOwn(kinds, own)
  const key =
    ((kindOfPeer(kinds, peer) * 65536 + port) * 4 + protocolNumbers[protocol]) * 4 +
    Number(isEgress) * 2 +
    Number(isAllowed)
  facts[ownKind] ??= new Map()
  const known = facts[ownKind]?.get(key)
  const { firstSeen, lastSeen, hits } = flow
  if (known === undefined) {
    facts[ownKind]?.set(key, { own, peer, isEgress, protocol, port, isAllowed, firstSeen, lastSeen, hits })
    return undefined
  }
  known.firstSeen = Math.min(known.firstSeen, firstSeen)
  known.lastSeen = Math.max(known.lastSeen, lastSeen)
  known.hits += hits
  return undefined
}

/** Cilium's audit mode lets through what a policy would deny, and its verdict is AUDIT. */
function wasLetThrough({ decision }: ObservedFlow): boolean {
  if (decision === 'ALLOW') return true
  const word = decision.toUpperCase()
  return word === 'ALLOW' || word === 'AUDIT'
}

/** Numbers of ends that rules do not tell apart: the pods of one workload with the same labels. */
export type EndKinds = {
  readonly numbers: Map<string, number>
  readonly own: number[]
  readonly peers: number[]
}

function newKinds(): EndKinds {
  return { numbers: new Map(), own: [], peers: [] }
}

function kindOfOwn({ numbers, own: known }: EndKinds, own: OwnEnd): number {
  const found = known[own.id]
  if (found !== undefined) return found
  const { id, labels, isHostNetwork } = own
  const isSelected = labels !== null && Object.keys(labels).length > 0 && !isHostNetwork
  const number = numberOf(numbers, isSelected ? podText({ ...own, labels }) : `own ${id}`)
  known[id] = number
  return number
}

function kindOfPeer({ numbers, peers: known }: EndKinds, { id, identity }: PeerEnd): number {
  const found = known[id]
  if (found !== undefined) return found
  const number = numberOf(numbers, identity.kind === 'pod' ? podText(identity) : `peer ${id}`)
  known[id] = number
  return number
}

type KindFacts = Pick<OwnEnd, 'namespace' | 'workload' | 'name'> & { readonly labels: Labels }

function podText({ namespace, workload, name, labels }: KindFacts): string {
  return JSON.stringify([namespace, workload?.kind ?? '', workload?.name ?? name, Object.entries(labels)])
}

function numberOf(numbers: Map<string, number>, text: string): number {
  const known = numbers.get(text) ?? numbers.size
  numbers.set(text, known)
  return known
}

export function* factsOf({ facts }: Gathering): Generator<Fact> {
  for (const own of facts) if (own !== undefined) yield* own.values()
}

/** What the directory knows, and the pods that it lacks as the flows show them. */
export function observedIndex(gathering: Gathering): DirectoryIndex {
  const { directory, ends } = gathering
  const seen = new Map<string, KnownPod>()
  for (const remembered of ends.own.values()) {
    for (const { end } of remembered) {
      const { namespace, name, labels, workload, address, isHostNetwork, pod } = end
      if (pod !== undefined || namespace === null || labels === null) continue
      addSeen(seen, { namespace, name, labels, workload, address, isHostNetwork })
    }
  }
  for (const remembered of ends.peers.values()) {
    for (const { end } of remembered) {
      if (end.identity.kind !== 'pod' || end.identity.pod !== undefined) continue
      addSeen(seen, { ...end.identity, isHostNetwork: false })
    }
  }
  return indexDirectory({ ...directory, pods: [...directory.pods, ...seen.values()] })
}

type SeenPod = Pick<KnownPod, 'namespace' | 'name' | 'labels' | 'workload' | 'isHostNetwork'> & {
  readonly address: string | null
}

/** Dead, so that the living ones of the directory go first. */
function addSeen(seen: Map<string, KnownPod>, { address, ...pod }: SeenPod): void {
  const key = JSON.stringify([pod.namespace, pod.name, pod.labels, pod.isHostNetwork && address])
  if (seen.has(key)) return
  seen.set(key, {
    ...pod,
    uid: null,
    hasAllLabels: false,
    addresses: address === null ? [] : [address],
    nodeName: null,
    startedAt: null,
    lastSeen: null,
    isDead: true,
    diedAt: null,
    deathReason: null,
    ports: null,
  })
}
