/** Selectors that match nothing: subjects, peers, and namespaces without the label that is asked for. */
import type { Finding } from '#base/finding'
import { compareText, listOf } from '#base/text'
import type { EndpointSelector } from '#compile/identities/endpoint-selector'
import { peerOf, subjectOf } from '#compile/policy/cilium-rule'
import type { CompiledPolicy, NamespaceMatch, PeerMatch, SubjectMatch } from '#compile/policy/policy-rule'
import type { Cluster } from '#model/cluster'
import { type LabelSelector, matchesSelector } from '#model/selector'
import { labelsOfNamespace } from './exposure'
import { lintFinding } from './findings'
import type { LintContext } from './lint-context'
import { printSelector } from './selector-text'

export function lintSelectors(context: LintContext): readonly Finding[] {
  const seen = new Set<string>()
  return context.world.policies.flatMap((policy) => [
    ...lintSubject(context, policy, seen),
    ...policy.rules.flatMap(({ peers }) => (peers === 'any' ? [] : lintPeers(context, policy, peers))),
  ])
}

/** A policy for both directions is compiled twice, and told once. */
function lintSubject(
  { world, subjectsOf, others }: LintContext,
  policy: CompiledPolicy,
  seen: Set<string>,
): readonly Finding[] {
  const { subject, source } = policy
  const key = `${source.object.kind} ${source.object.namespace}/${source.object.name} ${subject.path}`
  if (seen.has(key)) return []
  seen.add(key)
  const isHeld = subjectsOf(policy).length > 0 || others.some((one) => world.semantics.matchSubject(subject, one))
  if (isHeld) return []
  const own = subjectOf(subject)
  if (own !== undefined && isReserved(own.selector)) return []
  const unlabelled = subject.kind === 'pods' ? lintNamespaces(world.cluster, policy, subject) : []
  if (unlabelled.length > 0) return unlabelled
  const node = others.find(({ kind }) => kind === 'node')
  if (own?.kind === 'host' && node !== undefined) {
    const message = `${world.semantics.explainSubject(policy, node)}, so the policy does nothing`
    const hint = 'add the ConfigMap cilium-config of the cluster to the input, or correct the selector'
    return [lintFinding('policy.selects-nothing', source, { message, path: subject.path, hint })]
  }
  const message = `${describeSubject(subject)}, so the policy does nothing`
  const hint = 'correct the selector, or add the pods that it is about to the input'
  return [lintFinding('policy.selects-nothing', source, { message, path: subject.path, hint })]
}

function describeSubject(subject: SubjectMatch): string {
  if (subject.kind === 'own') return `nothing in the input is among ${subject.text}`
  if (subject.kind === 'nodes') return `no node has ${printSelector(subject.selector)}`
  return `no pod in ${describeNamespaces(subject.namespaces)} ${describePods(subject.pods)}`
}

function describeNamespaces(namespaces: NamespaceMatch): string {
  if ('name' in namespaces) return `namespace ${namespaces.name}`
  const text = printSelector(namespaces.selector)
  return text === '' ? 'any namespace' : `namespaces with ${text}`
}

function describePods(pods: LabelSelector): string {
  const text = printSelector(pods)
  return text === '' ? 'exists' : `has ${text}`
}

/** An entity or a Service of Cilium is several peers of one place, of which any may be met. */
function lintPeers(context: LintContext, policy: CompiledPolicy, peers: readonly PeerMatch[]): readonly Finding[] {
  const unknown = peers.flatMap((peer) => {
    if (peer.kind !== 'unknown') return []
    const message = `whom the peer matches is unknown: ${peer.why}`
    const hint = peer.why.startsWith('the input has no') ? { hint: 'add it to the input' } : {}
    return [lintFinding('policy.undecided-peer', policy.source, { message, path: peer.path, ...hint })]
  })
  const met = new Set(peers.filter((peer) => isMet(context, peer)).map(({ path }) => path))
  const missed = new Map(peers.filter(({ path }) => !met.has(path)).map((peer) => [peer.path, peer]))
  return [...unknown, ...[...missed.values()].flatMap((peer) => lintPeer(context, policy, peer))]
}

function isMet({ pods, others, match }: LintContext, peer: PeerMatch): boolean {
  if (peer.kind !== 'pods' && peer.kind !== 'nodes' && peer.kind !== 'own') return true
  const own = peer.kind === 'own' ? peerOf(peer) : undefined
  if (own !== undefined && 'selector' in own && isReserved(own.selector)) return true
  return pods.some(({ party }) => match(peer, party) !== 'no') || others.some((one) => match(peer, one) !== 'no')
}

/** Health endpoints, the world and the like are there, but no objects of the input. */
function isReserved({ requirements }: EndpointSelector): boolean {
  return requirements.length > 0 && requirements.every(({ source }) => source === 'reserved')
}

function lintPeer({ world }: LintContext, policy: CompiledPolicy, peer: PeerMatch): readonly Finding[] {
  const unlabelled = peer.kind === 'pods' ? lintNamespaces(world.cluster, policy, peer) : []
  if (unlabelled.length > 0) return unlabelled
  const message = `${describePeer(peer)}, so the peer matches nothing`
  const hint = 'correct the selector, or add what it is about to the input'
  return [lintFinding('policy.peer-matches-nothing', policy.source, { message, path: peer.path, hint })]
}

function describePeer(peer: PeerMatch): string {
  if (peer.kind === 'pods') return `no pod in ${describeNamespaces(peer.namespaces)} ${describePods(peer.pods)}`
  if (peer.kind === 'nodes') return `no node has ${printSelector(peer.selector)}`
  return peer.kind === 'own'
    ? `nothing in the input is among ${peer.title ?? peer.text}`
    : 'nothing in the input is selected'
}

type Placed = { readonly path: string; readonly namespaces: NamespaceMatch }

/** Told where the namespaces are the reason: pods may fit, if only their namespace did. */
function lintNamespaces(
  cluster: Cluster,
  { source }: CompiledPolicy,
  { path, namespaces }: Placed,
): readonly Finding[] {
  if ('name' in namespaces) return []
  const { selector } = namespaces
  const names = [
    ...new Set([...cluster.namespaces.keys(), ...[...cluster.pods.values()].map(({ meta }) => meta.namespace)]),
  ]
  if (names.some((name) => matchesSelector(selector, labelsOfNamespace(cluster, name)))) return []
  const message = `no namespace has ${printSelector(selector)}: there are ${listOf(names.sort(compareText), 5)}`
  return [lintFinding('policy.namespace-unlabelled', source, { message, path, hint: hintOf(selector, names) })]
}

/** `name: web` is asked for time and again where only `kubernetes.io/metadata.name: web` is there by itself. */
function hintOf({ matchLabels }: LabelSelector, names: readonly string[]): string {
  const [pair] = Object.entries(matchLabels)
  if (pair === undefined) return 'label the namespace that is meant'
  const [key, value] = pair
  return names.includes(value)
    ? `write kubernetes.io/metadata.name: ${value}, which every namespace has, or run kubectl label namespace ${value} ${key}=${value}`
    : `label the namespace that is meant: kubectl label namespace NAME ${key}=${value}`
}
