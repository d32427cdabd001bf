/** What policies would have done to one recorded flow: let it through, deny it and by which policy, or why nobody can tell. */
import type { ObjectRef } from '#base/finding'
import type { CompiledPolicy, Direction, PeerMatch } from '#compile/policy/policy-rule'
import type { DirectoryIndex } from '#flows/directory'
import type { NobodyReason } from '#flows/identify-peer'
import { connectedPort, type Ends, newEnds, type OwnEnd, ownEndOf, type PeerEnd, peerEndOf } from '#flows/intern-ends'
import type { ObservedFlow } from '#flows/observed-flow'
import { keyOf } from '#model/meta'
import { decide } from '#trace/policy/decide'
import { judgeDirection } from '#trace/policy/judge-direction'
import { layLane, policiesFor } from '#trace/policy/lane'
import type { Nearness } from '#trace/policy/party'
import { nearnessOf } from '#trace/policy/party-facts'
import type { PolicyWorld } from '#trace/policy/policy-world'
import { decisionAt } from '#trace/policy/port-pieces'
import { tableOf } from '#trace/policy/port-table'
import type { MatchedRule } from '#trace/policy/semantics'
import { type Blind, blindPolicies, doubtOf } from './audit-doubts'
import { type AuditParty, type AuditPlace, ownParty, peerPlaces } from './audit-parties'
import {
  type AuditVerdict,
  type ClassDenial,
  type ClassVerdict,
  newRefusal,
  newRefusals,
  type Pair,
  type PortedProtocol,
  type Refusal,
  type Refusals,
  refusalsBetween,
  verdictOf,
} from './audit-refusals'

export type { PortedProtocol } from './audit-refusals'

export type AuditJudge = {
  readonly world: PolicyWorld
  readonly index: DirectoryIndex
  readonly ends: Ends
  readonly blind: readonly Blind[]
  readonly ownParties: (AuditParty | null | undefined)[]
  /** Of peers that are the same for every port. */
  readonly places: (readonly AuditPlace[] | undefined)[]
  /** Of Services, by peer, port, protocol and direction. */
  readonly placesAtPort: Map<string, readonly AuditPlace[]>
  readonly closings: Readonly<Record<Direction, (Closing | undefined)[]>>
  readonly refusals: Refusals
  /** Each name of a party once, so that two that are equal are one text. */
  readonly names: Map<string, string>
}

/** `ends` of an earlier reading of the same flows are taken over. */
export function newJudge(world: PolicyWorld, index: DirectoryIndex, ends: Ends = newEnds(index)): AuditJudge {
  return {
    world,
    index,
    ends,
    blind: blindPolicies(world),
    ownParties: [],
    places: [],
    placesAtPort: new Map(),
    closings: { ingress: [], egress: [] },
    refusals: newRefusals(),
    names: new Map(),
  }
}

const allowed: AuditVerdict = { kind: 'allowed' }
const ported: Readonly<Record<PortedProtocol, number>> = { TCP: 0, UDP: 1, SCTP: 2 }

export function judgeFlow(judge: AuditJudge, flow: ObservedFlow): AuditVerdict {
  const protocol = flow.protocol === 'TCP' ? flow.protocol : flow.protocol.toUpperCase()
  if (!isPorted(protocol))
    return unknown('protocol', `of ${protocol || 'a protocol that is not told'} no port is known`)
  const port = connectedPort(flow)
  if (port === undefined) return unknown('no-port', 'the port that was connected to is not told')
  const isEgress = flow.direction === 'EGRESS'
  return judgeEnds(judge, {
    own: ownEndOf(judge.ends, flow),
    peer: peerEndOf(judge.ends, flow),
    protocol,
    port,
    isEgress,
  })
}

export type EndsConnection = {
  readonly own: OwnEnd
  readonly peer: PeerEnd
  readonly protocol: PortedProtocol
  readonly port: number
  readonly isEgress: boolean
}

/** Of ends that the judge's own `ends` keep. */
export function judgeEnds(judge: AuditJudge, connection: EndsConnection): AuditVerdict {
  const own = ownPartyOf(judge, connection.own)
  if (own === null) return unknownOwn(connection.own)
  const { identity } = connection.peer
  return identity.kind === 'nobody' ? nobody(identity.why) : judgePlaces(judge, own, connection)
}

export function isPorted(protocol: string): protocol is PortedProtocol {
  return Object.hasOwn(ported, protocol)
}

function unknownOwn({ namespace, name }: OwnEnd): AuditVerdict {
  if (namespace === null) {
    const remedy = 'have pod.namespace recorded with the flow'
    return unknown('namespace', `the namespace of pod ${name} is not told, nor which policies hold for it; ${remedy}`)
  }
  return unknown('labels', `the labels of ${namespace}/${name} are not known, nor which policies hold for it`)
}

function unknown(reason: string, sentence: string): AuditVerdict {
  return { kind: 'unknown', reason, sentence }
}

/** What stays in the pod or on the node meets no policy. */
function nobody(why: NobodyReason): AuditVerdict {
  if (why === 'loopback' || why === 'itself') return allowed
  if (why === 'link-local')
    return unknown(why, 'the peer is a link-local address, which policies see or not, as the node has it')
  return unknown(why, 'the peer has no address that could be read')
}

function ownPartyOf(judge: AuditJudge, end: OwnEnd): AuditParty | null {
  const known = judge.ownParties[end.id]
  if (known !== undefined) return known
  const party = ownParty(judge.world, judge.index, end)
  const made = party === undefined ? null : withKnownName(judge, party)
  judge.ownParties[end.id] = made
  return made
}

function withKnownName({ names }: AuditJudge, party: AuditParty): AuditParty {
  const name = names.get(party.name) ?? party.name
  names.set(name, name)
  return { ...party, name }
}

function placesOf(judge: AuditJudge, asked: Asked): readonly AuditPlace[] {
  const { peer, protocol, port, isEgress } = asked
  if (isSameAtEveryPort(peer)) {
    const known = judge.places[peer.id]
    if (known !== undefined) return known
    const made = makePlaces(judge, asked)
    judge.places[peer.id] = made
    return made
  }
  const key = `${peer.id} ${port} ${protocol} ${isEgress}`
  const known = judge.placesAtPort.get(key)
  if (known !== undefined) return known
  const made = makePlaces(judge, asked)
  judge.placesAtPort.set(key, made)
  return made
}

function makePlaces(judge: AuditJudge, { peer, protocol, port, isEgress }: Asked): readonly AuditPlace[] {
  const question = { identity: peer.identity, at: { protocol, port }, isTarget: isEgress }
  return peerPlaces(judge.world, judge.index, question).map((place) => ({
    ...place,
    party: withKnownName(judge, place.party),
  }))
}

function isSameAtEveryPort({ identity }: PeerEnd): boolean {
  return identity.kind !== 'service' && identity.kind !== 'api-server'
}

type Asked = Omit<EndsConnection, 'own'>

/** Where some of a Service's backends would be out of reach, part of what was recorded would have been denied. */
function judgePlaces(judge: AuditJudge, own: AuditParty, asked: Asked): AuditVerdict {
  const { peer, protocol, isEgress } = asked
  const isAnyPort = isSameAtEveryPort(peer)
  const places = placesOf(judge, asked)
  let open: AuditVerdict | undefined
  for (const place of places) {
    const port = isAnyPort ? asked.port : place.port
    const pair = {
      source: isEgress ? own : place.party,
      target: isEgress ? place.party : own,
      protocol,
      port,
    }
    const refusal = judgePair(judge, pair)
    if (refusal === undefined) continue
    const verdict = verdictOf(judge.refusals, refusal, { pair, peer: place.name ?? place.party.name })
    if (verdict.kind === 'denied') return verdict
    open = verdict
  }
  return open ?? allowed
}

/** What the policies see of a flow: one pair, or one for each kind of backend of a Service; none where nobody can be told. */
export function pairsOf(judge: AuditJudge, flow: ObservedFlow): readonly Pair[] {
  const protocol = flow.protocol.toUpperCase()
  const port = connectedPort(flow)
  const own = ownPartyOf(judge, ownEndOf(judge.ends, flow))
  if (!isPorted(protocol) || port === undefined || own === null) return []
  const peer = peerEndOf(judge.ends, flow)
  const isEgress = flow.direction === 'EGRESS'
  return placesOf(judge, { peer, protocol, port, isEgress }).map((place) => {
    const [source, target] = isEgress ? [own, place.party] : [place.party, own]
    return { source, target, protocol, port: isSameAtEveryPort(peer) ? port : place.port }
  })
}

/** Undefined for what is allowed. */
function judgePair(judge: AuditJudge, pair: Pair): Refusal | undefined {
  const { source, target, protocol, port } = pair
  const doubt = judge.blind.length === 0 ? undefined : doubtOf(judge.blind, source, target)
  if (doubt !== undefined) {
    return newRefusal({ kind: 'unknown', reason: 'labels', sentence: doubt })
  }
  const nearness = nearnessBetween(source, target)
  const decision = decide(judge.world, { source: source.of.id, target: target.of.id, protocol, port, nearness })
  if (decision === 'allowed') return undefined
  const known = refusalsBetween(judge.refusals, pair, nearness)
  const atPort = port * 4 + ported[protocol]
  const found = known.get(atPort)
  if (found !== undefined) return found
  const made = newRefusal(explain(judge, pair, nearness))
  known.set(atPort, made)
  return made
}

export function nearnessBetween(source: AuditParty, target: AuditParty): Nearness {
  if (source.isOnHost || target.isOnHost) return nearnessOf(source.party, target.party)
  if (source.party.kind !== 'pod' || target.party.kind !== 'pod' || source.of.id !== target.of.id) return 'apart'
  return keyOf(source.party.pod.meta) === keyOf(target.party.pod.meta) ? 'same-pod' : 'apart'
}

function explain(judge: AuditJudge, pair: Pair, nearness: Nearness): ClassVerdict {
  const denials: ClassDenial[] = []
  let open: string | undefined
  for (const direction of ['egress', 'ingress'] as const) {
    const found = explainDirection(judge, direction, { pair, nearness })
    if (typeof found === 'string') open ??= found
    else if (found !== undefined) denials.push(found)
  }
  if (denials.length > 0) return { kind: 'denied', denials }
  return { kind: 'unknown', reason: 'policy', sentence: open ?? 'the decision rests on what the input does not tell' }
}

type Asking = { readonly pair: Pair; readonly nearness: Nearness }

/** A denial, the sentence why nobody can tell, or undefined for what this side allows. */
function explainDirection(
  judge: AuditJudge,
  direction: Direction,
  { pair, nearness }: Asking,
): ClassDenial | string | undefined {
  const { world } = judge
  const { source, target, protocol, port } = pair
  const [subject, peer] = direction === 'egress' ? [source, target] : [target, source]
  const ends = { subject: subject.of, peer: peer.of, nearness }
  const decision = decisionAt(tableOf(world, direction, ends).protocols[protocol], port)
  if (decision === 'allowed') return undefined
  const closing = closingOf(judge, direction, subject)
  if (decision === 'denied' && !closing.hasDenials) {
    const named = target.hasPorts || !closing.hasNames ? undefined : namedPort(layLane(world, direction, ends).matched)
    return named ?? unseenNamespace(world, closing.policies, peer) ?? closing.denial
  }
  const { rules, judgement } = judgeDirection(world, direction, { ends, at: { protocol, port } })
  if (judgement.decision === 'unknown') return judgement.because[0].sentence
  const deciding = rules.filter(({ rule }) => judgement.deciding.has(rule) && rule.action === 'deny')
  if (deciding.length === 0) return unseenNamespace(world, closing.policies, peer) ?? closing.denial
  return { direction, policies: refsOf(deciding.map(({ policy }) => policy)), isByRule: true }
}

/** What closes a class in one direction, the same for every peer and port that no rule names. */
export type Closing = {
  readonly policies: readonly CompiledPolicy[]
  readonly denial: ClassDenial
  readonly hasDenials: boolean
  readonly hasNames: boolean
}

function closingOf({ world, closings }: AuditJudge, direction: Direction, subject: AuditParty): Closing {
  const known = closings[direction][subject.of.id]
  if (known !== undefined) return known
  const all = policiesFor(world, direction, subject.of).policies
  const policies = all.filter(({ isolates }) => isolates)
  const rules = all.flatMap((policy) => policy.rules)
  const made: Closing = {
    policies,
    denial: { direction, policies: refsOf(policies), isByRule: false },
    hasDenials: rules.some(({ action }) => action !== 'allow'),
    hasNames: rules.some(({ ports }) => ports !== 'any' && ports.some(({ kind }) => kind === 'named')),
  }
  closings[direction][subject.of.id] = made
  return made
}

function namedPort(matched: readonly MatchedRule[]): string | undefined {
  const found = matched.find(({ rule }) => rule.ports !== 'any' && rule.ports.some(({ kind }) => kind === 'named'))
  if (found === undefined) return undefined
  return `a rule of ${textOfRef(found.policy.source.object)} names a port, and the ports of whom it is about are not known`
}

/** A Namespace that the input lacks may have any labels beside its name. */
function unseenNamespace(
  world: PolicyWorld,
  policies: readonly CompiledPolicy[],
  peer: AuditParty,
): string | undefined {
  if (peer.party.kind !== 'pod' || peer.isOnHost || world.cluster.namespaces.has(peer.namespace)) return undefined
  const asks = ({ rules }: CompiledPolicy): boolean =>
    rules.some(({ peers }) => peers !== 'any' && peers.some(asksNamespaceLabels))
  const found = policies.find(asks)
  if (found === undefined) return undefined
  return `${textOfRef(found.source.object)} selects namespaces by label, and the labels of ${peer.namespace} are not known`
}

function asksNamespaceLabels(peer: PeerMatch): boolean {
  if (peer.kind !== 'pods' || !('selector' in peer.namespaces)) return false
  const { matchLabels, matchExpressions } = peer.namespaces.selector
  const keys = [...Object.keys(matchLabels), ...matchExpressions.map(({ key }) => key)]
  return keys.some((key) => key !== 'kubernetes.io/metadata.name')
}

function refsOf(policies: readonly CompiledPolicy[]): readonly ObjectRef[] {
  const refs = new Map(policies.map(({ source }) => [textOfRef(source.object), source.object]))
  return [...refs].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, ref]) => ref)
}

export function textOfRef({ kind, namespace, name }: ObjectRef): string {
  return namespace === undefined ? `${kind} ${name}` : `${kind} ${namespace}/${name}`
}
