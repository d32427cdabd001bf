/** A walk in the making: the packet as it is, the steps so far, and how programs tell what they did. */
import type { ObjectRef, Origin } from '#base/finding'
import type { RowSource } from '#compile/cilium/map-source'
import type { LocalEndpoint } from '#compile/cilium/node-world'
import { refOf } from '#model/meta'
import type { Reason, Target, Verdict } from '#model/trace'
import type { HeaderChange, Leg, MapLookup, WalkPlace, WalkQuestion, WalkStep } from '#model/walk'
import { type DropNumber, dropReason } from '#trace/cilium-drop-reasons'
import type { CiliumNet } from './cilium-net'
import { type FlowPacket, type Rewrite, walkPacket } from './flow-packet'
import type { NodeTables } from './node-tables'
import { placeOf } from './node-tables'
import type { CiliumState, NodeState } from './state-tables'

/** Where a leg ended, from where its answer sets out. */
export type Stop =
  | { readonly kind: 'pod'; readonly node: string; readonly endpoint: LocalEndpoint }
  | { readonly kind: 'host'; readonly node: string }
  | { readonly kind: 'outside' }
  | { readonly kind: 'nowhere' }

export type Ending = { readonly verdict: Verdict; readonly drop?: Leg['drop']; readonly stop: Stop }

export type Draft = {
  readonly net: CiliumNet
  readonly question: WalkQuestion
  readonly state: CiliumState
  readonly steps: WalkStep[]
  readonly targets: Target[]
  /** What no input tells and the outcome rests on. */
  readonly doubts: Reason[]
  packet: FlowPacket
  /** The part of connections that go this way. */
  share: number
  /** Programs run so far, so that a loop of routes ends. */
  hops: number
}

export type Told = {
  readonly lookups?: readonly MapLookup[]
  readonly changes?: readonly HeaderChange[]
  readonly source?: RowSource
  readonly object?: ObjectRef
  readonly origin?: Origin
}

export function tell(draft: Draft, at: WalkPlace, [did, because]: readonly [string, string], told: Told = {}): void {
  const { lookups = [], changes = [], source, object, origin } = told
  const place = source === undefined ? {} : placeOf(source)
  draft.steps.push({
    at,
    did,
    because,
    packet: walkPacket(draft.packet),
    ...(lookups.length > 0 && { lookups }),
    ...(changes.length > 0 && { changes }),
    ...(place.object !== undefined && { object: place.object }),
    ...(place.origin !== undefined && { origin: place.origin }),
    ...(object !== undefined && { object }),
    ...(origin !== undefined && { origin }),
    ...(draft.share < 1 && { share: draft.share }),
  })
}

/** Takes the rewritten packet on and tells of it. */
export function tellRewrite(
  draft: Draft,
  at: WalkPlace,
  words: readonly [string, string],
  { packet, changes, ...told }: Rewrite & Told,
): void {
  draft.packet = packet
  tell(draft, at, words, { ...told, changes })
}

export function stateOf(draft: Draft, { name }: Pick<NodeTables, 'name'>): NodeState {
  return draft.state.of(name)
}

export type Blame = {
  readonly sentence: string
  readonly object?: ObjectRef | undefined
  readonly origin?: Origin | undefined
  readonly rule?: string
  readonly more?: readonly Reason[]
}

export function drop(
  draft: Draft,
  at: WalkPlace,
  number: DropNumber,
  { sentence, more = [], ...blame }: Blame,
): Ending {
  const reason = dropReason(number)
  tell(draft, at, [`dropped: ${reason.number} ${reason.name}`, sentence], objectOf(blame))
  const first: Reason = { code: `cilium.drop-${number}`, sentence, ...objectOf(blame) }
  return { verdict: { kind: 'dropped', because: [first, ...more] }, drop: reason, stop: { kind: 'nowhere' } }
}

function objectOf({ object, origin, rule }: Omit<Blame, 'sentence' | 'more'>): Omit<Reason, 'code' | 'sentence'> {
  return {
    ...(object !== undefined && { object }),
    ...(origin !== undefined && { origin }),
    ...(rule !== undefined && { rule }),
  }
}

export function reject(draft: Draft, at: WalkPlace, number: DropNumber, blame: Blame): Ending {
  const ending = drop(draft, at, number, blame)
  return { ...ending, verdict: { ...ending.verdict, kind: 'rejected' } }
}

export function arrive(draft: Draft, code: string, sentence: string, stop: Stop): Ending {
  return { verdict: { kind: 'allowed', because: [{ code, sentence }, ...draft.doubts] }, stop }
}

export function unknown(draft: Draft, at: WalkPlace, code: string, sentence: string): Ending {
  tell(draft, at, ['cannot be followed further', sentence])
  return { verdict: { kind: 'unknown', because: [{ code, sentence }, ...draft.doubts] }, stop: { kind: 'nowhere' } }
}

/** `business/b`, `the health endpoint`. */
export function endpointName({ kind, title }: LocalEndpoint): string {
  return kind === 'pod' ? title : `the ${kind} endpoint`
}

export function endpointObject({ meta }: LocalEndpoint): Pick<Blame, 'object' | 'origin'> {
  return meta === undefined ? {} : { object: refOf(meta), origin: meta.origin }
}

/** Places of a node's programs. */
export function podSide(node: string, { title, kind }: LocalEndpoint, program: string): WalkPlace {
  return { node, device: kind === 'pod' ? `veth of ${title}` : `veth of ${kind}`, hook: 'tc ingress', program }
}

export function policySide(node: string, { title, kind }: LocalEndpoint, program: string): WalkPlace {
  return { node, device: kind === 'pod' ? `veth of ${title}` : `veth of ${kind}`, hook: 'tail call', program }
}

export function onDevice(node: string, device: string, hook: string, program: string): WalkPlace {
  return { node, device, hook, program }
}
