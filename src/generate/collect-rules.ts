/**
 * What was seen, handed to the policies it concerns. A connection has two ends: a row that one of them recorded is a rule of the
 * other as well, since a policy there would deny what was seen here.
 */
import type { Labels, Workload } from '#flows/holder'
import type { Instant } from '#flows/instant'
import type { OwnEnd, PeerEnd } from '#flows/intern-ends'
import { backendsOf } from '#flows/service-backends'
import { stableLabels } from '#flows/stable-labels'
import { matchesSelector } from '#model/selector'
import { nameOfWorkload } from '#verify/policy/audit-parties'
import { type Target, workloadKeyOf } from './choose-targets'
import { type Fact, factsOf, type Gathering } from './gather-flows'
import { peerOfOwnEnd, rulesOfPeer, untoldService } from './peer-rules'
import { addRule, portText, type RuleDraft, type RuleDrafts } from './rule-draft'
import type { Surroundings } from './select-pods'

/** What was not let through: no rule comes of it. */
export type Refused = {
  readonly text: string
  hits: number
  lastSeen: Instant
}

export type TargetRules = {
  readonly target: Target
  readonly ingress: RuleDrafts
  readonly egress: RuleDrafts
  readonly refused: Map<string, Refused>
  /** Services of which is not known what is behind them. */
  readonly untold: Set<string>
  /** Of what became rules. */
  firstSeen?: Instant
  lastSeen?: Instant
}

type Collecting = {
  readonly surroundings: Surroundings
  readonly all: readonly TargetRules[]
  readonly byWorkload: ReadonlyMap<string, TargetRules>
  readonly ofOwn: (readonly TargetRules[] | undefined)[]
  readonly ofPeer: Map<number, readonly TargetRules[]>
}

export function collectRules(
  gathering: Gathering,
  surroundings: Surroundings,
  targets: readonly Target[],
): readonly TargetRules[] {
  const all = targets.map(
    (target): TargetRules => ({ target, ingress: new Map(), egress: new Map(), refused: new Map(), untold: new Set() }),
  )
  const byWorkload = new Map(all.map((one) => [`${one.target.namespace}/${one.target.kind}/${one.target.name}`, one]))
  const collecting: Collecting = { surroundings, all, byWorkload, ofOwn: [], ofPeer: new Map() }
  for (const fact of factsOf(gathering)) {
    if (!fact.isAllowed) addRefused(collecting, fact)
    else {
      addOwn(collecting, fact)
      addMirrored(collecting, fact)
    }
  }
  for (const one of all) for (const drafts of [one.ingress, one.egress]) dropCovered(drafts)
  return all
}

/** The policies that hold for a pod: its workload's own, and of workloads without one those that select it by its labels. */
function policiesFor(
  { all, byWorkload }: Collecting,
  pod: {
    readonly namespace: string
    readonly name: string
    readonly workload: Workload | null
    readonly labels: Labels | null
  },
): readonly TargetRules[] {
  const own = byWorkload.get(workloadKeyOf(pod.namespace, pod.workload, pod.name))
  if (own !== undefined) return [own]
  const { labels } = pod
  if (labels === null) return []
  return all.filter(({ target }) => target.namespace === pod.namespace && matchesSelector(target.selector, labels))
}

function policiesForOwn(collecting: Collecting, own: OwnEnd): readonly TargetRules[] {
  const known = collecting.ofOwn[own.id]
  if (known !== undefined) return known
  const { namespace, isHostNetwork } = own
  const found = namespace === null ? [] : policiesFor(collecting, { ...own, namespace })
  // A pod on its node's network is only held for by the policy that was asked for, to show what was seen.
  const kept = isHostNetwork ? found.filter(({ target }) => target.isHostNetwork) : found
  collecting.ofOwn[own.id] = kept
  return kept
}

function addOwn(collecting: Collecting, fact: Fact): void {
  const { own, peer, isEgress, lastSeen } = fact
  const untold = untoldService(collecting.surroundings, peer.identity, fact)
  for (const one of policiesForOwn(collecting, own)) {
    if (untold !== undefined) one.untold.add(untold)
    const drafts = isEgress ? one.egress : one.ingress
    for (const rule of rulesOfPeer(collecting.surroundings, peer.identity, fact)) {
      addRule(drafts, { ...rule, time: lastSeen, isOwn: true })
      widen(one, fact)
    }
  }
}

function widen(rules: TargetRules, { firstSeen, lastSeen }: Fact): void {
  rules.firstSeen = Math.min(rules.firstSeen ?? firstSeen, firstSeen)
  rules.lastSeen = Math.max(rules.lastSeen ?? lastSeen, lastSeen)
}

function addMirrored(collecting: Collecting, fact: Fact): void {
  const { own, peer, isEgress, protocol, port, lastSeen } = fact
  const there = policiesAtPeer(collecting, peer)
  if (there.length === 0) return
  const reporter = peerOfOwnEnd(collecting.surroundings, own)
  if (reporter === undefined) return
  const [rule] = peer.identity.kind === 'service' ? rulesOfPeer(collecting.surroundings, peer.identity, fact) : []
  const ports = rule?.ports ?? [{ protocol, port }]
  for (const one of there) {
    addRule(isEgress ? one.ingress : one.egress, { ...reporter, ports, time: lastSeen, isOwn: false })
    widen(one, fact)
  }
}

function policiesAtPeer(collecting: Collecting, { id, identity }: PeerEnd): readonly TargetRules[] {
  if (identity.kind !== 'pod' && identity.kind !== 'service') return []
  const known = collecting.ofPeer.get(id)
  if (known !== undefined) return known
  const found = identity.kind === 'pod' ? policiesFor(collecting, identity) : policiesBehind(collecting, identity)
  collecting.ofPeer.set(id, found)
  return found
}

function policiesBehind(
  collecting: Collecting,
  { namespace, selector }: Extract<PeerEnd['identity'], { kind: 'service' }>,
): readonly TargetRules[] {
  if (selector === null) return []
  const backends = backendsOf(collecting.surroundings.index, namespace, selector).filter(
    ({ isHostNetwork }) => !isHostNetwork,
  )
  const stand = { namespace, name: '', workload: null, labels: selector }
  const behind = backends.length === 0 ? [stand] : backends.map((pod) => ({ ...pod, labels: stableLabels(pod.labels) }))
  return [...new Set(behind.flatMap((pod) => policiesFor(collecting, pod)))]
}

/** What only the other side recorded needs no rule where one of the own rules lets it through: by a Service's selector, mostly. */
function dropCovered(drafts: RuleDrafts): void {
  const selecting = [...drafts.values()].flatMap(selectingDraft)
  const mostLabels = Math.max(0, ...selecting.map(({ labels }) => labels.length))
  // Of two different sets of labels the one that takes in more has fewer.
  const widers = selecting.filter(({ labels }) => labels.length < mostLabels)
  for (const own of selecting) {
    const covering = widers.filter((wider) => isWider(wider, own))
    if (covering.length === 0) continue
    for (const [text, { isOwn }] of own.draft.ports) {
      if (isOwn) continue
      if (covering.some(({ draft }) => draft.ports.get(text)?.isOwn === true)) own.draft.ports.delete(text)
    }
  }
}

type Selecting = {
  readonly draft: RuleDraft
  readonly namespace: string
  readonly labels: readonly (readonly [string, string])[]
  readonly set: Labels
}

function selectingDraft(draft: RuleDraft): readonly Selecting[] {
  // One that keeps others out may keep out those of a narrower rule.
  if (draft.peer.kind !== 'pods' || draft.peer.without.length > 0) return []
  const { namespace, labels } = draft.peer
  return [{ draft, namespace, labels: Object.entries(labels), set: labels }]
}

function isWider(wider: Selecting, { namespace, labels, set }: Selecting): boolean {
  if (wider.namespace !== namespace || wider.labels.length >= labels.length) return false
  return wider.labels.every(([key, value]) => set[key] === value)
}

function addRefused(collecting: Collecting, fact: Fact): void {
  for (const { refused } of policiesForOwn(collecting, fact.own)) {
    const text = describeRefused(fact)
    const known = refused.get(text) ?? { text, hits: 0, lastSeen: fact.lastSeen }
    known.hits += fact.hits
    known.lastSeen = Math.max(known.lastSeen, fact.lastSeen)
    refused.set(text, known)
  }
}

function describeRefused({ peer, isEgress, port, protocol }: Fact): string {
  return `${isEgress ? 'egress to' : 'ingress from'} ${describePeer(peer)} ${portText({ port, protocol })}`
}

function describePeer({ identity }: PeerEnd): string {
  switch (identity.kind) {
    case 'pod':
      return nameOfWorkload(identity.namespace, identity.workload, identity.name)
    case 'service':
      return `${identity.namespace}/svc/${identity.name}`
    case 'host':
      return identity.name === ''
        ? `node ${identity.node ?? identity.address}`
        : `${identity.namespace}/${identity.name}`
    case 'api-server':
      return 'the API server'
    case 'address':
    case 'unattributed':
      return identity.address
    case 'nobody':
      return 'nobody'
    default:
      return identity satisfies never
  }
}
