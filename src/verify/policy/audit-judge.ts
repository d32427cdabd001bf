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
import { policiesFor } from '#trace/policy/lane'
import type { Nearness } from '#trace/policy/party'
import { nearnessOf } from '#trace/policy/party-facts'
import type { PolicyWorld } from '#trace/policy/policy-world'
import type { MatchedRule } from '#trace/policy/semantics'
import { type Blind, blindPolicies, doubtOf } from './audit-doubts'
import { type AuditParty, type AuditPlace, ownParty, peerPlaces } from './audit-parties'

export type Denial = {
  readonly direction: Direction
  /** Whom the policies hold for, and who is at the other end. */
  readonly subject: string
  readonly other: string
  readonly port: number
  readonly policies: readonly ObjectRef[]
  /** True where a rule denies it, false where no rule allows it. */
  readonly isByRule: boolean
}

export type AuditVerdict =
  | { readonly kind: 'allowed' }
  | { readonly kind: 'denied'; readonly denials: readonly Denial[]; readonly peer: string }
  | { readonly kind: 'unknown'; readonly reason: string; readonly sentence: string }

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
  /** Of what is not allowed, by classes, nearness, protocol and port. */
  readonly refusals: Map<string, ClassVerdict>
}

/** Of every pair of parties of the same two classes. */
type ClassVerdict =
  | { readonly kind: 'denied'; readonly denials: readonly Omit<Denial, 'subject' | 'other' | 'port'>[] }
  | Extract<AuditVerdict, { kind: 'unknown' }>

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
    refusals: new Map(),
  }
}

const allowed: AuditVerdict = { kind: 'allowed' }
const ported = { TCP: true, UDP: true, SCTP: true } as const
export type PortedProtocol = keyof typeof ported

export function judgeFlow(judge: AuditJudge, flow: ObservedFlow): AuditVerdict {
  const protocol = flow.protocol.toUpperCase()
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
  if (own === null) {
    return unknown('labels', `the labels of ${nameOf(connection.own)} are not known, nor which policies hold for it`)
  }
  const { identity } = connection.peer
  return identity.kind === 'nobody' ? nobody(identity.why) : judgePlaces(judge, { ...connection, own })
}

export function isPorted(protocol: string): protocol is PortedProtocol {
  return Object.hasOwn(ported, protocol)
}

function nameOf({ namespace, name }: OwnEnd): string {
  return `${namespace ?? '?'}/${name}`
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
  const made = ownParty(judge.world, judge.index, end) ?? null
  judge.ownParties[end.id] = made
  return made
}

function placesOf(judge: AuditJudge, asked: Asked): readonly AuditPlace[] {
  const { peer, protocol, port, isEgress } = asked
  const question = { identity: peer.identity, at: { protocol, port }, isTarget: isEgress }
  if (isSameAtEveryPort(peer)) {
    const known = judge.places[peer.id]
    if (known !== undefined) return known
    const made = peerPlaces(judge.world, judge.index, question)
    judge.places[peer.id] = made
    return made
  }
  const key = `${peer.id} ${port} ${protocol} ${isEgress}`
  const known = judge.placesAtPort.get(key)
  if (known !== undefined) return known
  const made = peerPlaces(judge.world, judge.index, question)
  judge.placesAtPort.set(key, made)
  return made
}

function isSameAtEveryPort({ identity }: PeerEnd): boolean {
  return identity.kind !== 'service' && identity.kind !== 'api-server'
}

type Asked = Omit<EndsConnection, 'own'> & { readonly own: AuditParty }

/** Where some of a Service's backends would be out of reach, part of what was recorded would have been denied. */
function judgePlaces(judge: AuditJudge, asked: Asked): AuditVerdict {
  const { own, peer, protocol, isEgress } = asked
  const isAnyPort = isSameAtEveryPort(peer)
  const places = placesOf(judge, asked)
  let open: AuditVerdict | undefined
  for (const place of places) {
    const port = isAnyPort ? asked.port : place.port
    const [source, target] = isEgress ? [own, place.party] : [place.party, own]
    const verdict = judgePair(judge, { source, target, protocol, port })
    if (verdict === undefined) continue
    if (verdict.kind === 'unknown') open = verdict
    else return denied(verdict, { source, target, port, peer: peerName(peer, place.party) })
  }
  return open ?? allowed
}

/** A Service as it was asked for, not the backend that stands for it. */
function peerName({ identity }: PeerEnd, party: AuditParty): string {
  return identity.kind === 'service' ? `${identity.namespace}/svc/${identity.name}` : party.name
}

export type Pair = {
  readonly source: AuditParty
  readonly target: AuditParty
  readonly protocol: PortedProtocol
  readonly port: number
}

/** What the policies see of a flow: one pair, or one for each kind of backend of a Service; none where nobody can be told. */
export function pairsOf(judge: AuditJudge, flow: ObservedFlow): readonly Pair[] {
  const protocol = flow.protocol.toUpperCase()
  const port = connectedPort(flow)
  const own = ownPartyOf(judge, ownEndOf(judge.ends, flow))
  if (!isPorted(protocol) || port === undefined || own === null) return []
  const peer = peerEndOf(judge.ends, flow)
  const isEgress = flow.direction === 'EGRESS'
  return placesOf(judge, { own, peer, protocol, port, isEgress }).map((place) => {
    const [source, target] = isEgress ? [own, place.party] : [place.party, own]
    return { source, target, protocol, port: isSameAtEveryPort(peer) ? port : place.port }
  })
}

/** Undefined for what is allowed. */
function judgePair(judge: AuditJudge, pair: Pair): ClassVerdict | undefined {
  const { source, target, protocol, port } = pair
  const doubt = judge.blind.length === 0 ? undefined : doubtOf(judge.blind, source, target)
  if (doubt !== undefined) return { kind: 'unknown', reason: 'labels', sentence: doubt }
  const nearness = nearnessBetween(source, target)
  const decision = decide(judge.world, { source: source.of.id, target: target.of.id, protocol, port, nearness })
  if (decision === 'allowed') return undefined
  const key = `${source.of.id} ${target.of.id} ${nearness} ${protocol} ${port} ${source.namespace} ${target.hasPorts}`
  const known = judge.refusals.get(key)
  if (known !== undefined) return known
  const made = explain(judge.world, pair, nearness)
  judge.refusals.set(key, made)
  return made
}

export function nearnessBetween(source: AuditParty, target: AuditParty): Nearness {
  if (source.isOnHost || target.isOnHost) return nearnessOf(source.party, target.party)
  if (source.party.kind !== 'pod' || target.party.kind !== 'pod' || source.of.id !== target.of.id) return 'apart'
  return keyOf(source.party.pod.meta) === keyOf(target.party.pod.meta) ? 'same-pod' : 'apart'
}

function explain(world: PolicyWorld, pair: Pair, nearness: Nearness): ClassVerdict {
  const { source, target, protocol, port } = pair
  const denials: Omit<Denial, 'subject' | 'other' | 'port'>[] = []
  let open: string | undefined
  for (const direction of ['egress', 'ingress'] as const) {
    const [subject, peer] = direction === 'egress' ? [source, target] : [target, source]
    const ends = { subject: subject.of, peer: peer.of, nearness }
    const { rules, judgement, lane } = judgeDirection(world, direction, { ends, at: { protocol, port } })
    if (judgement.decision === 'allowed') continue
    if (judgement.decision === 'unknown') {
      open ??= judgement.because[0].sentence
      continue
    }
    const deciding = rules.filter(({ rule }) => judgement.deciding.has(rule) && rule.action === 'deny')
    const isByRule = deciding.length > 0
    const blocking = isByRule ? deciding.map(({ policy }) => policy) : isolating(world, direction, subject)
    const doubt = isByRule ? undefined : (namedPort(lane.matched, target) ?? unseenNamespace(world, blocking, peer))
    if (doubt === undefined) denials.push({ direction, policies: refsOf(blocking), isByRule })
    else open ??= doubt
  }
  if (denials.length > 0) return { kind: 'denied', denials }
  return { kind: 'unknown', reason: 'policy', sentence: open ?? 'the decision rests on what the input does not tell' }
}

function namedPort(matched: readonly MatchedRule[], target: AuditParty): string | undefined {
  if (target.hasPorts) return undefined
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

function isolating(world: PolicyWorld, direction: Direction, subject: AuditParty): readonly CompiledPolicy[] {
  return policiesFor(world, direction, subject.of).policies.filter(({ isolates }) => isolates)
}

function refsOf(policies: readonly CompiledPolicy[]): readonly ObjectRef[] {
  const refs = new Map(policies.map(({ source }) => [textOfRef(source.object), source.object]))
  return [...refs].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, ref]) => ref)
}

export function textOfRef({ kind, namespace, name }: ObjectRef): string {
  return namespace === undefined ? `${kind} ${name}` : `${kind} ${namespace}/${name}`
}

type DenialFacts = {
  readonly source: AuditParty
  readonly target: AuditParty
  readonly port: number
  readonly peer: string
}

function denied(verdict: Extract<ClassVerdict, { kind: 'denied' }>, facts: DenialFacts): AuditVerdict {
  const { source, target, port, peer } = facts
  const denials = verdict.denials.map((one) => ({
    ...one,
    subject: one.direction === 'egress' ? source.name : target.name,
    other: one.direction === 'egress' ? target.name : source.name,
    port,
  }))
  return { kind: 'denied', denials, peer }
}
