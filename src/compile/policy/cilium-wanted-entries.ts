/** The entries that rules ask for in one direction between two identities, and the policy map they make. */

import { containsPrefix } from '#base/prefix'
import { addRequirement, isWildcard, selectsLabels } from '#compile/identities/endpoint-selector'
import { identityNumbers, isInCluster } from '#compile/identities/numbers'
import type { FqdnSelector } from '#model/cilium-policy'
import type { NamedPort } from '#model/pod'
import { matchesName } from './cilium-dns-cache'
import type { PeerIdentity } from './cilium-identities'
import type { CiliumSettings } from './cilium-options'
import { noAuth, type PolicyEntry, type PolicyKey, protocolNumbers } from './cilium-policy-entry'
import { portPrefixes } from './cilium-port-prefix'
import { type CiliumPeer, detailOf, peerOf, subjectOf } from './cilium-rule'
import type { CompiledPolicy, Direction, Match, PeerMatch, PolicyProtocol, PolicyRule, PortMatch } from './policy-rule'

/** All that the entries of one subject in one direction rest on. */
export type SubjectRules = {
  readonly direction: Direction
  readonly policies: readonly CompiledPolicy[]
  /** Rules that can match the peer, where that is known already; all of the policies without it. */
  readonly candidates?: readonly Candidate[]
  /** What names of ports stand for: the subject's own at ingress, those of all pods together at egress. */
  readonly namedPorts: readonly NamedPort[]
  readonly settings: CiliumSettings
  /** A pod, health or ingress endpoint, which its own host always reaches. */
  readonly isOnNode: boolean
}

/** `isCertain`: it matches the peer, but for what other policies of the subject require. */
export type Candidate = { readonly policy: CompiledPolicy; readonly rule: PolicyRule; readonly isCertain: boolean }

export function isEnforced({ policies, settings }: SubjectRules): boolean {
  if (settings.enforcement !== 'default') return settings.enforcement === 'always'
  return policies.some(({ isolates }) => isolates)
}

/** How a rule matches a peer: for everybody, for the identity, or not, or nobody knows. */
export type RuleMatch = { readonly match: Match; readonly identity: number }

/** Each rule with the entries it asks for; `match` is never `no`. */
export type WantedRule = RuleMatch & { readonly policy: CompiledPolicy; readonly rule: PolicyRule }

export function wantedRules(subject: SubjectRules, peer: PeerIdentity): readonly WantedRule[] {
  if (subject.settings.enforcement === 'never') return []
  const demands = demandsOf(subject.policies)
  const candidates =
    subject.candidates ??
    subject.policies.flatMap((policy) => policy.rules.map((rule) => ({ policy, rule, isCertain: false })))
  const wanted: WantedRule[] = []
  const asksMore = demands.allow.length + demands.deny.length > 0
  for (const { policy, rule, isCertain } of candidates) {
    const { match, identity } =
      isCertain && !asksMore ? sureMatch(rule, peer) : matchRule(rule, peer, { demands, subject })
    if (match !== 'no') wanted.push({ policy, rule, match, identity })
  }
  return wanted
}

function sureMatch({ peers }: PolicyRule, { number }: PeerIdentity): RuleMatch {
  return { match: 'yes', identity: peers === 'any' || peers.some(isForAll) ? 0 : number }
}

function isForAll(match: PeerMatch): boolean {
  if (match.kind !== 'own') return false
  const wanted = peerOf(match)
  return (wanted.kind === 'endpoints' || wanted.kind === 'labels') && isWildcard(wanted.selector)
}

type Demands = {
  readonly allow: readonly Parameters<typeof addRequirement>[1][]
  readonly deny: readonly Parameters<typeof addRequirement>[1][]
  readonly seenNames: readonly FqdnSelector[]
}

/** What one policy of a subject requires of peers binds all others. */
function demandsOf(policies: readonly CompiledPolicy[]): Demands {
  const known = knownDemands.get(policies)
  if (known !== undefined) return known
  const subjects = policies.flatMap(({ subject }) => subjectOf(subject) ?? [])
  const demands = {
    allow: subjects.flatMap(({ requires }) => requires),
    deny: subjects.flatMap(({ requiresDeny }) => requiresDeny),
    seenNames: subjects.flatMap(({ seenNames }) => seenNames),
  }
  knownDemands.set(policies, demands)
  return demands
}

/** Every lane of a subject has the same list of policies. */
const knownDemands = new WeakMap<readonly CompiledPolicy[], Demands>()

type MatchContext = { readonly demands: Demands; readonly subject: SubjectRules }

function matchRule(rule: PolicyRule, peer: PeerIdentity, context: MatchContext): RuleMatch {
  if (rule.peers === 'any') return { match: 'yes', identity: 0 }
  let match: Match = 'no'
  for (const one of rule.peers) {
    const found = matchOne(one, rule, peer, context)
    if (found.match === 'yes' && found.identity === 0) return found
    if (found.match === 'yes') match = 'yes'
    else if (found.match === 'maybe' && match === 'no') match = 'maybe'
  }
  return { match, identity: peer.number }
}

function matchOne(
  match: PeerMatch,
  rule: PolicyRule,
  peer: PeerIdentity,
  { demands, subject }: MatchContext,
): RuleMatch {
  const no: RuleMatch = { match: 'no', identity: peer.number }
  const yes: RuleMatch = { match: 'yes', identity: peer.number }
  if (match.kind === 'unknown') {
    return match.isOutside === true && !hasPrefix(peer) ? no : { match: 'maybe', identity: peer.number }
  }
  if (match.kind !== 'own') return no
  const wanted = peerOf(match)
  if (wanted.kind === 'endpoints') {
    const demanded = rule.action === 'deny' ? demands.deny : demands.allow
    const selector = demanded.length === 0 ? wanted.selector : addRequirement(wanted.selector, ...demanded)
    if (isWildcard(selector)) return { match: 'yes', identity: 0 }
    return selectsLabels(selector, peer.labels) ? yes : no
  }
  if (wanted.kind === 'labels' && isWildcard(wanted.selector)) return { match: 'yes', identity: 0 }
  if (wanted.kind === 'name')
    return { match: matchFqdn(wanted.fqdn, peer, demands.seenNames, subject), identity: peer.number }
  return matchesIdentity(wanted, peer) ? yes : no
}

/** Whether ranges can mean it: what is outside, and nodes where they are matched by address. */
export function hasPrefix({ prefix, number }: PeerIdentity): boolean {
  return prefix !== undefined || !isInCluster(number)
}

export function matchesIdentity(wanted: CiliumPeer, { labels, prefix }: PeerIdentity): boolean {
  if (wanted.kind === 'prefix') return prefix !== undefined && containsPrefix(wanted.prefix, prefix)
  return wanted.kind !== 'name' && selectsLabels(wanted.selector, labels)
}

/**
 * Without a cache nobody knows what was learned, unless no DNS rule lets the proxy see the answers: then nothing was, and
 * the destination stays the world.
 */
function matchFqdn(
  fqdn: FqdnSelector,
  peer: PeerIdentity,
  seenNames: readonly FqdnSelector[],
  { settings }: SubjectRules,
): Match {
  if (settings.dnsCache !== undefined) {
    return peer.names.some((name) => matchesName(fqdn, name, settings.version)) ? 'yes' : 'no'
  }
  if (isInCluster(peer.number)) return 'no'
  const { matchName } = fqdn
  const isSeen =
    matchName === undefined
      ? seenNames.length > 0
      : seenNames.some((one) => matchesName(one, matchName, settings.version))
  return isSeen ? 'maybe' : 'no'
}

/** `takes` says which of the rules that may match are to count. */
export function wantedEntries(
  subject: SubjectRules,
  rules: readonly WantedRule[],
  takes: (rule: WantedRule) => boolean,
): readonly PolicyEntry[] {
  return [...ownEntries(subject), ...ruleEntries(subject, rules.filter(takes))]
}

/** Without what Cilium adds of its own. */
export function ruleEntries(subject: SubjectRules, rules: readonly WantedRule[]): readonly PolicyEntry[] {
  return rules.flatMap((wanted) => entriesOf(wanted, subject))
}

/** What Cilium adds of its own: everything where nothing is enforced, and the host to what runs on it. */
export function ownEntries(subject: SubjectRules): readonly PolicyEntry[] {
  const { direction, settings, isOnNode } = subject
  const plain = { isDeny: false, auth: noAuth, priority: 0, origins: [] }
  const whole = (identity: number): PolicyKey => ({ direction, identity, protocol: 0, port: 0, length: 0 })
  const open = { key: whole(0), ...plain, note: 'policy is not enforced in this direction' }
  const host = { key: whole(identityNumbers.host), ...plain, note: 'the host always reaches what runs on it' }
  return [
    ...(isEnforced(subject) ? [] : [open]),
    ...(direction === 'ingress' && isOnNode && settings.allowsLocalhost ? [host] : []),
  ]
}

function entriesOf(
  { policy, rule, identity }: WantedRule,
  { direction, namedPorts }: SubjectRules,
): readonly PolicyEntry[] {
  const { redirect, auth = noAuth } = detailOf(rule)
  const isDeny = rule.action === 'deny'
  const value = {
    isDeny,
    auth: isDeny ? noAuth : auth,
    priority: policy.priority,
    origins: [{ source: policy.source, rule }],
    ...(redirect !== undefined && !isDeny && { redirect }),
  }
  return portKeys(rule.ports, namedPorts).map((port) => ({ key: { direction, identity, ...port }, ...value }))
}

type PortKey = Pick<PolicyKey, 'protocol' | 'port' | 'length'>

export function portKeys(ports: PolicyRule['ports'], named: readonly NamedPort[]): readonly PortKey[] {
  if (ports === 'any') return [{ protocol: 0, port: 0, length: 0 }]
  return ports.flatMap((match) => {
    const protocols: readonly PolicyProtocol[] =
      match.protocol === undefined ? ['TCP', 'UDP', 'SCTP'] : [match.protocol]
    return protocols.flatMap((protocol) => keysOf(match, protocol, named))
  })
}

/** Types of ICMP are whole ports. */
function keysOf(match: PortMatch, protocol: PolicyProtocol, named: readonly NamedPort[]): readonly PortKey[] {
  const number = protocolNumbers[protocol]
  if (match.kind === 'named') {
    return named
      .filter(({ name, protocol: other }) => name.toLowerCase() === match.name && other === protocol)
      .map(({ port }) => ({ protocol: number, port, length: 24 }))
  }
  const isIcmp = protocol === 'ICMP' || protocol === 'ICMPv6'
  if (isIcmp && match.range.from === match.range.to) return [{ protocol: number, port: match.range.from, length: 24 }]
  return portPrefixes(match.range).map(({ port, bits }) => ({ protocol: number, port, length: 8 + bits }))
}
