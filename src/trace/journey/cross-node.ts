/** One node's netfilter hooks on the way of a packet: what its rules and its connection tracking make of it. */
import { type Ip, parseIp } from '#base/ip'
import type { ConnectionState } from '#model/packet'
import type { Hop, Verdict } from '#model/trace'
import { flattenHops } from '../flatten-hops'
import { commentOf, describeRule, isIptablesRule, textOfRule } from '../hop-rule'
import { parseNatRange } from '../nat-range'
import type { Translation, Way } from '../path'
import type { Question } from '../question'
import { walkUsual } from '../trace-ruleset'
import type { Outcome } from '../walk-hooks'
import { drawPort } from './draw-port'
import { type Flight, icmpCodeOf, isIcmp, maybeFirst, packetProtocol } from './flight'
import type { JourneyWorld, StandingRules } from './journey-world'
import type { Memory } from './memory'
import { findTracked, type NodeState, type Tracked } from './node-state'
import { nodeAddress } from './places'

export type Crossing = {
  readonly kind: Outcome['kind']
  readonly delivered?: 'forwarded' | 'local' | 'sent'
  /** Of the packets that came to the node. */
  readonly share: number
  readonly hops: readonly Hop[]
  /** As it leaves the node, or reaches a process of it. */
  readonly after: Flight
  /** Where the source was replaced: why it is that one. */
  readonly sourceNote?: string
  readonly verdict: () => Verdict
  readonly tracked?: Tracked
}

export type CrossInput = {
  readonly world: JourneyWorld
  readonly node: string
  readonly way: Way
  readonly flight: Flight
  readonly state: NodeState
  readonly memory: Memory
}

export function crossNode(input: CrossInput): readonly Crossing[] {
  const { world, node, way, flight, state, memory } = input
  const rules = world.rulesOf(node, flight)
  const tracked = findTracked(state, node, flight)
  const { outcomes, isUnknown, verdict } = walkUsual(
    {
      ...traced(rules, tracked?.translated.destination ?? flight.destination, input),
      isLocalSource: way === 'process',
    },
    (question: Question) => memory.answer(node, question),
  )
  return outcomes.map((outcome) => {
    const { path } = outcome
    const hops = flattenHops([{ ...path, share: 1 }])
    const end = endOf(input, outcome, tracked)
    return {
      kind: isUnknown ? 'unknown' : outcome.kind,
      ...(outcome.delivered !== undefined && { delivered: outcome.delivered }),
      share: path.share,
      hops,
      ...end,
      verdict,
      ...(tracked !== undefined && { tracked }),
    }
  })
}

/**
 * Of a tracked connection the rules see the destination that it was given before, and the source that it still has
 * (nf_nat_core.c: destinations change on the way in, sources on the way out).
 */
function traced(rules: StandingRules, destination: Ip, { flight, state, node }: CrossInput) {
  const tracked = findTracked(state, node, flight)
  const port = tracked?.translated.port ?? flight.port
  const packet = {
    destination,
    protocol: packetProtocol(flight),
    source: flight.source,
    state: stateOf(flight, tracked),
    ...(isIcmp(flight)
      ? { icmp: { type: flight.port, code: icmpCodeOf(flight) } }
      : { destinationPort: port, sourcePort: flight.sourcePort }),
  }
  const { rulesets, nft, sets, nodeIps } = rules
  return { packet, rulesets, nodeIps, ...(nft !== undefined && { nft }), ...(sets !== undefined && { sets }) }
}

function stateOf(flight: Flight, tracked: Tracked | undefined): ConnectionState {
  if (tracked === undefined) return maybeFirst(flight) ? 'NEW' : 'INVALID'
  return tracked.isRelated === true ? 'RELATED' : 'ESTABLISHED'
}

type End = Pick<Crossing, 'after' | 'sourceNote'>

function endOf(input: CrossInput, { path, delivered }: Outcome, tracked: Tracked | undefined): End {
  const { flight } = input
  if (tracked !== undefined) return { after: tracked.translated }
  const { fields, sourceNat } = path
  const sent = {
    ...flight,
    destination: fields.destination,
    port: isIcmp(flight) ? flight.port : (fields.destinationPort ?? flight.port),
  }
  if (!fields.isSnat || sourceNat === undefined) return { after: sent }
  const { source, note } = newSource(input, { sent, sourceNat, given: fields.source, delivered })
  const isRandom = isRandomTail(path)
  const after = { ...sent, source }
  const why = `${whyMasked(sourceNat)}: ${note}`
  if (isIcmp(flight)) return { after, sourceNote: why }
  const { port, note: portNote } = drawPort(input, after, isRandom)
  return { after: { ...after, sourcePort: port }, sourceNote: `${why}; ${portNote}` }
}

function whyMasked({ rule }: Translation): string {
  const comment = commentOf(rule)
  if (comment !== undefined) return `“${comment}”`
  return isIptablesRule(rule) ? describeRule(rule) : 'a rule asks for it'
}

/** `sourceNat` tells the rule that set the mark; the last hop is the translation’s own. */
function isRandomTail(path: Outcome['path']): boolean {
  for (let entry = path.log; entry !== undefined; entry = entry.earlier) {
    const { rule, did } = entry.hop
    if (did.startsWith('source replaced') && rule !== undefined)
      return /--random|fully-random| random/.test(textOfRule(rule) ?? '')
  }
  return false
}

type NewSource = {
  readonly sent: Flight
  readonly sourceNat: Translation
  readonly given: Ip | undefined
  readonly delivered: Outcome['delivered']
}

function newSource(
  { world, node }: CrossInput,
  { sent, sourceNat, given }: NewSource,
): { readonly source: Ip; readonly note: string } {
  if (given !== undefined) return { source: given, note: 'the rule names it' }
  const range = sourceNat.to === undefined ? undefined : parseNatRange(sourceNat.to)
  const first = range?.from ?? (sourceNat.to === undefined ? undefined : parseIp(sourceNat.to))
  if (first !== undefined) return { source: first, note: `the first address of ${sourceNat.to}` }
  const own = nodeAddress(world.setting.cluster.nodes.get(node), sent.source.family)
  if (own === undefined) return { source: sent.source, note: 'the node’s own address is not in the input' }
  return { source: own, note: 'the address of the interface that it leaves by is taken to be the node’s own' }
}
