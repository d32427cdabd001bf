/** One direction between a subject and one identity: its policy map, and what the datapath makes of a packet there. */
import type { PeerIdentity } from '#compile/policy/cilium-identities'
import { protocolNumbers } from '#compile/policy/cilium-policy-entry'
import { lookUpPolicy, type PolicyLookup, packetKey } from '#compile/policy/cilium-policy-lookup'
import { buildPolicyMap, type PolicyMap } from '#compile/policy/cilium-policy-map'
import { type SubjectRules, type WantedRule, wantedEntries, wantedRules } from '#compile/policy/cilium-wanted-entries'
import type { DropNumber } from '#trace/cilium-drop-reasons'
import type { Decision } from './answer'
import { hasPorts } from './port-match'
import type { LanePoint } from './semantics'

/** `open` counts every rule that may allow and no deny that may deny, `closed` the other way round; one map when they agree. */
export type CiliumCase = {
  readonly subject: SubjectRules
  readonly peer: PeerIdentity
  readonly rules: readonly WantedRule[]
  /** Built when they are first asked for. */
  readonly maps: () => CaseMaps
}

type CaseMaps = { readonly open: PolicyMap; readonly closed: PolicyMap }

/** What happens to a packet by one map: `drop` is the reason's number. */
export type CiliumFate =
  | { readonly kind: 'allowed'; readonly lookup?: PolicyLookup; readonly why?: CiliumExemption }
  | { readonly kind: 'dropped'; readonly drop: DropNumber; readonly lookup?: PolicyLookup }
  /** Whether it passes depends on the code of ICMP, which is not told. */
  | { readonly kind: 'depends-on-code'; readonly drop: DropNumber; readonly lookup?: PolicyLookup }
  /** Allowed once both ends have authenticated, dropped with 189 until then. */
  | { readonly kind: 'authenticates'; readonly lookup: PolicyLookup }

/** Why policy is not asked, or not obeyed. */
export type CiliumExemption = 'fragmentation-needed' | 'audit'

export function caseOf(subject: SubjectRules, peer: PeerIdentity): CiliumCase {
  const rules = wantedRules(subject, peer)
  let built: CaseMaps | undefined
  const maps = (): CaseMaps => {
    built ??= buildMaps(subject, rules)
    return built
  }
  return { subject, peer, rules, maps }
}

function buildMaps(subject: SubjectRules, rules: readonly WantedRule[]): CaseMaps {
  const { version } = subject.settings
  const mapOf = (isOpen: boolean): PolicyMap =>
    buildPolicyMap(
      wantedEntries(subject, rules, ({ rule, match }) => match === 'yes' || (rule.action === 'allow') === isOpen),
      version,
    )
  const open = mapOf(true)
  return { open, closed: rules.every(({ match }) => match === 'yes') ? open : mapOf(false) }
}

export function decideCase(one: CiliumCase, at: LanePoint): Decision {
  const maps = one.maps()
  const open = decisionOf(fateBy(maps.open, one, at))
  if (maps.open === maps.closed) return open
  return open === decisionOf(fateBy(maps.closed, one, at)) ? open : 'unknown'
}

export function decisionOf(fate: CiliumFate): Decision {
  if (fate.kind === 'allowed') return 'allowed'
  return fate.kind === 'dropped' ? 'denied' : 'unknown'
}

export function fateBy(map: PolicyMap, one: CiliumCase, at: LanePoint): CiliumFate {
  const { settings, direction, isOnNode } = one.subject
  if (at.protocol === 'UDP' && direction === 'egress' && isOnNode && at.port === settings.tunnelPort) {
    return { kind: 'dropped', drop: 170 }
  }
  const fate = fateByPolicy(map, one, at)
  if (fate.kind === 'allowed') return fate
  if (settings.isAudit) return { kind: 'allowed', why: 'audit' }
  if (fate.kind === 'authenticates' || !mayBeFragmentationNeeded(at) || !settings.allowsFragmentationNeeded) return fate
  if (at.icmpCode === 4) return { kind: 'allowed', why: 'fragmentation-needed' }
  return { kind: 'depends-on-code', drop: fate.drop, ...(fate.lookup !== undefined && { lookup: fate.lookup }) }
}

type PolicyFate = Exclude<CiliumFate, { readonly kind: 'depends-on-code' }>

function fateByPolicy(map: PolicyMap, { subject, peer }: CiliumCase, at: LanePoint): PolicyFate {
  const port = at.isLostFragment === true && hasPorts(at.protocol) ? 0 : at.port
  const { direction, settings } = subject
  const packet = packetKey({ direction, identity: peer.number, protocol: protocolNumbers[at.protocol], port })
  const lookup = lookUpPolicy(map, packet)
  if (lookup === undefined) return { kind: 'dropped', drop: at.isLostFragment === true ? 157 : 133 }
  if (lookup.chosen.isDeny) return { kind: 'dropped', drop: 181, lookup }
  if (lookup.authType === 0 || (lookup.authType === 1 && settings.isAuthenticated === true))
    return { kind: 'allowed', lookup }
  if (lookup.authType === 1 && settings.isAuthenticated === undefined) return { kind: 'authenticates', lookup }
  return { kind: 'dropped', drop: 189, lookup }
}

/** Of type 3 the datapath lets code 4 through and asks policy about the others. */
function mayBeFragmentationNeeded({ protocol, port, icmpCode = 4 }: LanePoint): boolean {
  return protocol === 'ICMP' && port === 3 && icmpCode === 4
}
