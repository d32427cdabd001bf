/**
 * Cilium's semantics: rules become entries of a policy map, which the datapath looks up as its version does. Where a party
 * may have several identities, each is judged, and the answer is theirs if they agree.
 */
import type { Finding } from '#base/finding'
import { selectsLabels } from '#compile/identities/endpoint-selector'
import { type Label, labelSet, reservedLabel } from '#compile/identities/label'
import { identityNumbers } from '#compile/identities/numbers'
import type { PeerIdentity } from '#compile/policy/cilium-identities'
import { type ClusterPortNames, clusterPortNames, isNamed, whyDisputed } from '#compile/policy/cilium-named-ports'
import { type CiliumOptions, type CiliumSettings, settingsOf } from '#compile/policy/cilium-options'
import { peerOf, subjectOf } from '#compile/policy/cilium-rule'
import { hasPrefix, matchesIdentity, type SubjectRules } from '#compile/policy/cilium-wanted-entries'
import { compileCilium } from '#compile/policy/compile-cilium'
import { whyOpen } from '#compile/policy/open-rules'
import type {
  CompiledPolicy,
  Direction,
  Match,
  PeerMatch,
  PolicyProtocol,
  PolicyRule,
  SubjectMatch,
} from '#compile/policy/policy-rule'
import type { Cluster } from '#model/cluster'
import type { NamedPort } from '#model/pod'
import type { Decision, PolicyReason } from './answer'
import { type CiliumCase, caseOf, decideCase, decisionOf, fateBy } from './cilium-case'
import { type IdentityContext, identitiesOf, identityContext } from './cilium-identity'
import { notesOf } from './cilium-notes'
import { type CaseView, changesOf, reasonsOfFate } from './cilium-sentences'
import { describeParty, describePolicy } from './describe-policy'
import type { PartyClass } from './party'
import type { Judgement, Lane, LanePoint, Semantics } from './semantics'

export type CiliumSemantics = Semantics & {
  readonly settings: CiliumSettings
  readonly identities: IdentityContext
  readonly findings: readonly Finding[]
}

/** Made for one cluster, as identities are. */
export function ciliumSemantics(cluster: Cluster, options: CiliumOptions = {}): CiliumSemantics {
  const settings = settingsOf(cluster, options)
  const compilation = compileCilium(cluster, settings)
  const identities = identityContext(cluster, compilation)
  const names = clusterPortNames(cluster)
  const ruleNumbers = numberRules(compilation.policies)
  const casesOf = rememberLast((lane: Lane) => casesIn(lane, identities))
  return {
    name: 'cilium',
    settings,
    identities,
    findings: compilation.findings,
    compile: () => compilation.policies,
    distinguish: (party, ip) => distinguish(identities, { party, ip }),
    seesAddressOf: (kind) => kind === 'address' || (kind === 'node' && settings.cidrMatchesNodes),
    matchSubject: (subject, of) => matchSubject(subject, of, identities),
    matchPeer: (peer, of) => matchPeer(peer, of, identities),
    rangesOf: () => compilation.prefixes.map(({ prefix }) => prefix),
    laneText: (lane) => laneText(lane, casesOf(lane), ruleNumbers),
    portNames: (direction, target) => (direction === 'egress' ? egressNames(names, target) : undefined),
    explainName: (name, direction) => explainName(names, name, direction),
    ownPorts: (protocol) => ownPorts(protocol, settings),
    decide: (lane, _rules, at) => exempt(lane, identities)?.decision ?? decideAll(casesOf(lane), at),
    judge: (lane, _rules, at) => exempt(lane, identities) ?? judge(lane, casesOf(lane), at),
    explainSubject: (policy, of) => explainSubject(policy, of, settings),
    explainPeer: (peer, of) => explainPeer(peer, of, identities),
    notes: (source, target, at) => notesOf(source, target, { at, settings }),
  }
}

/** A pod that is known from elsewhere than the cluster, as from a record, adds its own names. */
function egressNames(names: ClusterPortNames, { kind, ports }: PartyClass): readonly NamedPort[] {
  if (kind !== 'pod') return names.ports
  const own = ports.filter((port) => !isNamed(names, port))
  return own.length === 0 ? names.ports : [...names.ports, ...own]
}

function explainName(names: ClusterPortNames, name: string, direction: Direction): string | undefined {
  return direction === 'ingress' ? undefined : (whyDisputed(names, name) ?? 'no pod has a port of that name')
}

/** Fragmentation needed is a code of ICMP type 3, and pods may not speak to the tunnel themselves. */
function ownPorts(protocol: PolicyProtocol, { tunnelPort }: CiliumSettings): readonly number[] {
  if (protocol === 'ICMP') return [3]
  return protocol === 'UDP' && tunnelPort !== undefined ? [tunnelPort] : []
}

/** A lane is asked about many times in a row and then no more. */
function rememberLast<K extends object, V>(find: (key: K) => V): (key: K) => V {
  let last: { readonly key: K; readonly value: V } | undefined
  return (key) => {
    if (last?.key !== key) last = { key, value: find(key) }
    return last.value
  }
}

function numberRules(policies: readonly CompiledPolicy[]): ReadonlyMap<PolicyRule, number> {
  return new Map(policies.flatMap(({ rules }) => rules).map((rule, number) => [rule, number]))
}

type PartyFacts = Pick<PartyClass, 'party' | 'ip'>

/** Classes that have one identity are one: a pod's service account counts, an address's prefix, a node's part in the API. */
function distinguish(
  context: IdentityContext,
  { party, ip }: { party: PartyClass['party']; ip: PartyFacts['ip'] | undefined },
): string {
  if (party.kind === 'entity') return party.name
  if (party.kind === 'pod' && !party.pod.hostNetwork) {
    const given = context.cluster.ciliumEndpoints.get(`${party.pod.meta.namespace}/${party.pod.meta.name}`)?.identity
    return `${party.pod.serviceAccountName ?? 'default'} ${given !== undefined && given < 256 ? given : ''}`
  }
  const one = {
    id: 0,
    party,
    labels: {},
    namespaceLabels: {},
    ports: [],
    isNodeKnown: true,
    ...(ip !== undefined && { ip }),
  }
  const kind = party.kind === 'address' ? 'address' : 'node'
  return identitiesOf(context, { ...one, kind }, 'perhaps-same-node')
    .map(({ number, labels }) => `${number} ${labels.labels.length}`)
    .join()
}

function casesIn(lane: Lane, context: IdentityContext): readonly CiliumCase[] {
  const subject: SubjectRules = {
    direction: lane.direction,
    policies: lane.policies,
    candidates: lane.matched,
    namedPorts: lane.portNames,
    settings: context.settings,
    isOnNode: lane.subject.kind !== 'node',
  }
  return identitiesOf(context, lane.peer, lane.nearness).map((peer) => caseOf(subject, peer))
}

/** What no policy of the subject can bear on. */
function exempt(lane: Lane, { settings }: IdentityContext): Judgement | undefined {
  const { subject, nearness, direction } = lane
  const who = describeParty(subject.party)
  if (nearness === 'same-pod') {
    return told('allowed', 'cilium.same-pod', `what ${who} sends to itself does not leave it, and meets no policy`)
  }
  if (subject.kind === 'address') {
    return told(
      'allowed',
      'cilium.no-endpoint',
      `${who} is no endpoint of Cilium: no policy holds for its ${direction}`,
    )
  }
  const isHost = subject.kind === 'node' || isHostEntity(lane)
  if (isHost && !settings.hasHostFirewall) {
    return told(
      'allowed',
      'cilium.no-host-firewall',
      `${who} has the host's identity, and without enable-host-firewall no policy holds for its ${direction}`,
    )
  }
  if (isHost && subject.kind === 'entity') {
    return told(
      'unknown',
      'cilium.which-node',
      `policies of the host firewall differ from node to node, and ${who} may be any`,
    )
  }
  if (subject.kind !== 'entity' || endpointEntities.includes(entityOf(subject))) return undefined
  if (entityOf(subject).startsWith('world') || entityOf(subject) === 'unmanaged' || entityOf(subject) === 'none') {
    return told(
      'allowed',
      'cilium.no-endpoint',
      `${who} is no endpoint of Cilium: no policy holds for its ${direction}`,
    )
  }
  return told('unknown', 'cilium.which-endpoint', `${who} stands for many endpoints, and policies differ among them`)
}

const endpointEntities: readonly string[] = ['health', 'ingress', 'init']
const hostEntities: readonly string[] = ['host', 'remote-node', 'kube-apiserver']

function entityOf({ party }: PartyClass): string {
  return party.kind === 'entity' ? party.name : ''
}

function isHostEntity({ subject }: Lane): boolean {
  return hostEntities.includes(entityOf(subject))
}

function told(decision: Decision, code: string, sentence: string): Judgement {
  return { decision, because: [{ code, sentence }], deciding: new Set(), tiers: `[Cilium] ${decision}`, changes: [] }
}

function decideAll(cases: readonly CiliumCase[], at: LanePoint): Decision {
  let decision: Decision | undefined
  for (const one of cases) {
    const next = decideCase(one, at)
    if (decision !== undefined && decision !== next) return 'unknown'
    decision = next
  }
  return decision ?? 'unknown'
}

function judge(lane: Lane, cases: readonly CiliumCase[], at: LanePoint): Judgement {
  const decision = decideAll(cases, at)
  const views = cases.flatMap((one): readonly CaseView[] => {
    const { open, closed } = one.maps()
    const opened = { lane, at, one, fate: fateBy(open, one, at) }
    if (open === closed) return [opened]
    const shut = { lane, at, one, fate: fateBy(closed, one, at) }
    // Where both decide alike, what is certain is told: allows without those that may be, and denies in spite of them.
    if (decisionOf(opened.fate) !== decisionOf(shut.fate)) return [opened, shut]
    return [decisionOf(shut.fate) === 'allowed' ? shut : opened]
  })
  const reasons = dedupe([...undecided(lane, cases, views), ...views.slice(0, 4).flatMap(reasonsOfFate)])
  const [
    first = { code: 'cilium.no-identity', sentence: `the identity of ${describeParty(lane.peer.party)} is not known` },
    ...rest
  ] = reasons
  const chosen = views.flatMap(({ fate }) => ('lookup' in fate ? (fate.lookup?.chosen.origins ?? []) : []))
  return {
    decision,
    because: [first, ...rest],
    deciding: new Set(chosen.map(({ rule }) => rule)),
    tiers: tiersOf(lane, decision, views),
    changes: [...new Set(views.slice(0, 4).flatMap(changesOf))],
  }
}

/** Why there are several answers, before each of them. */
function undecided(lane: Lane, cases: readonly CiliumCase[], views: readonly CaseView[]): readonly PolicyReason[] {
  if (new Set(views.map(({ fate }) => decisionOf(fate))).size < 2) return []
  const several =
    cases.length < 2
      ? []
      : [`${describeParty(lane.peer.party)} may have any of ${cases.length} identities, which policies tell apart`]
  const open = cases.flatMap(({ rules }) => rules.filter(({ match }) => match === 'maybe'))
  const whys = open.flatMap(({ policy, rule }) =>
    whyOpen(rule).map((why) => `${describePolicy(policy)} ${rule.path}: ${why}`),
  )
  return [...several, ...new Set(whys)].map((sentence) => ({ code: 'cilium.undecidable', sentence }))
}

function dedupe(reasons: readonly PolicyReason[]): readonly PolicyReason[] {
  return [...new Map(reasons.map((reason) => [`${reason.code} ${reason.sentence}`, reason])).values()]
}

function tiersOf({ policies }: Lane, decision: Decision, views: readonly CaseView[]): string {
  const drops = views.flatMap(({ fate }) => (fate.kind === 'dropped' ? [fate.drop] : []))
  if (decision === 'unknown') return '[Cilium] unknown'
  if (decision === 'denied') return `[Cilium] Drop ${[...new Set(drops)].join(' or ')}`
  return policies.length === 0 ? '[Cilium] not enforced' : '[Cilium] Allow'
}

/** Everything that decisions rest on beside policies and named ports. */
function laneText(lane: Lane, cases: readonly CiliumCase[], numbers: ReadonlyMap<PolicyRule, number>): string {
  const texts = cases.map(({ rules, peer }) => {
    let text = peer.number === identityNumbers.host ? 'host' : 'other'
    for (const { rule, match, identity } of rules) {
      text += ` ${numbers.get(rule)}${match === 'yes' ? '' : '?'}${identity === 0 ? '*' : ''}`
    }
    return text
  })
  const { subject, nearness } = lane
  return `${subject.kind} ${entityOf(subject)} ${nearness === 'same-pod'} ${[...new Set(texts)].sort().join(' / ')}`
}

function matchSubject(match: SubjectMatch, of: PartyClass, context: IdentityContext): boolean {
  const subject = subjectOf(match)
  if (subject === undefined) return false
  if (subject.kind === 'host') {
    return of.kind === 'node' && context.settings.hasHostFirewall && selectsLabels(subject.selector, hostLabels(of))
  }
  if (of.kind === 'node' || of.kind === 'address') return false
  if (of.kind === 'entity' && !endpointEntities.includes(entityOf(of))) return false
  return identitiesOf(context, of, 'apart').some(({ labels }) => selectsLabels(subject.selector, labels))
}

function hostLabels({ labels }: PartyClass): ReturnType<typeof labelSet> {
  const own = Object.entries(labels).map(([key, value]): Label => ({ source: 'k8s', key, value }))
  return labelSet([...own, reservedLabel('host')])
}

/** `maybe` where the node that judges, or what it has learned, makes the difference. */
function matchPeer(match: PeerMatch, of: PartyClass, context: IdentityContext): Match {
  if (match.kind === 'unknown') {
    const isMissed = match.isOutside === true && !identitiesOf(context, of, 'perhaps-same-node').some(hasPrefix)
    return isMissed ? 'no' : 'maybe'
  }
  if (match.kind !== 'own') return 'no'
  const peer = peerOf(match)
  const identities: readonly PeerIdentity[] = identitiesOf(context, of, 'perhaps-same-node')
  if (peer.kind === 'name') return of.kind === 'address' || of.kind === 'entity' ? 'maybe' : 'no'
  const matching = identities.filter((identity) => matchesIdentity(peer, identity)).length
  if (matching === 0) return 'no'
  return matching === identities.length ? 'yes' : 'maybe'
}

function explainSubject(policy: CompiledPolicy, of: PartyClass, settings: CiliumSettings): string {
  const who = describeParty(of.party)
  const subject = subjectOf(policy.subject)
  if (subject?.kind === 'host' && of.kind === 'node') {
    return settings.hasHostFirewall
      ? `its nodeSelector does not select ${who}`
      : 'without enable-host-firewall its nodeSelector selects nobody'
  }
  if (subject?.kind === 'host') return `it holds for hosts, and ${who} is none`
  if (of.kind === 'node') return `it holds for endpoints, and ${who} has the host's identity`
  return of.kind === 'address'
    ? `it holds for endpoints, and ${who} is none`
    : `it does not select ${who}: ${policy.subject.kind === 'own' ? policy.subject.text : ''}`
}

function explainPeer(match: PeerMatch, of: PartyClass, context: IdentityContext): string {
  const who = describeParty(of.party)
  if (match.kind === 'nobody' || match.kind === 'unknown' || match.kind === 'everybody') return match.why
  if (match.kind !== 'own') return `${who} is not meant`
  const titles = identitiesOf(context, of, 'perhaps-same-node').map(({ title }) => title)
  const has = titles.length === 0 ? 'no identity' : titles.slice(0, 2).join(' or ')
  if (peerOf(match).kind === 'prefix' && of.kind !== 'address') {
    return `ranges mean addresses outside the cluster: ${who} has ${has}, which no range selects`
  }
  return `${match.title ?? match.text} is wanted, and ${who} has ${has}`
}
