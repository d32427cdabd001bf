/** Whom subjects and peers match as Kubernetes defines it, and why they do not match others. */
import { printIp } from '#base/ip'
import { containsIp, printPrefix } from '#base/prefix'
import type {
  AddressesMatch,
  CompiledPolicy,
  Match,
  NamespaceMatch,
  NodesMatch,
  PeerMatch,
  SubjectMatch,
} from '#compile/policy/policy-rule'
import { matchesSelector } from '#model/selector'
import { describeParty, explainMismatch, selectsAll } from './describe-policy'
import type { PartyClass } from './party'

/** Policies hold for pods alone. Host-networked pods are of the kind node: undefined of NetworkPolicy, excluded of the tiers. */
export function matchSubject(subject: SubjectMatch, of: PartyClass): boolean {
  if (subject.kind !== 'pods' || of.kind !== 'pod') return false
  return isInNamespaces(subject.namespaces, of) && matchesSelector(subject.pods, of.labels)
}

function isInNamespaces(namespaces: NamespaceMatch, { namespace, namespaceLabels }: PartyClass): boolean {
  return 'name' in namespaces ? namespaces.name === namespace : matchesSelector(namespaces.selector, namespaceLabels)
}

export function matchPeer(peer: PeerMatch, of: PartyClass): Match {
  switch (peer.kind) {
    case 'pods':
      return matchSubject(peer, of) ? 'yes' : of.kind === 'entity' ? 'maybe' : 'no'
    case 'nodes':
      return matchNodes(peer, of)
    case 'addresses':
      return matchAddress(peer, of)
    case 'names':
      return matchNames(peer.names, of)
    case 'everybody':
      return 'yes'
    case 'nobody':
      return 'no'
    case 'own':
    case 'unknown':
      return 'maybe'
    default:
      return peer satisfies never
  }
}

function matchNodes({ selector }: NodesMatch, { kind, labels, isNodeKnown }: PartyClass): Match {
  if (kind === 'entity') return 'maybe'
  if (kind !== 'node') return 'no'
  if (!isNodeKnown && !selectsAll(selector)) return 'maybe'
  return matchesSelector(selector, labels) ? 'yes' : 'no'
}

/** A pod without an address yet will get one: only a range that holds them all surely has it. */
function matchAddress({ cidr, except }: AddressesMatch, { ip }: PartyClass): Match {
  if (ip === undefined) return cidr.length === 0 && except.length === 0 ? 'yes' : 'maybe'
  return containsIp(cidr, ip) && !except.some((range) => containsIp(range, ip)) ? 'yes' : 'no'
}

/** Names lead outside unless they lie in the zone of the cluster; what they resolve to the input does not tell. */
function matchNames(names: readonly string[], { kind }: PartyClass): Match {
  if (kind === 'address' || kind === 'entity') return 'maybe'
  return names.some((name) => /(^|\.)cluster\.local\.?$/i.test(name)) ? 'maybe' : 'no'
}

export function explainSubject({ subject, source }: CompiledPolicy, of: PartyClass): string {
  if (subject.kind !== 'pods') return 'it holds for nodes'
  if (of.kind !== 'pod')
    return of.party.kind === 'pod' ? explainHost({ subject, source }, of) : 'it holds for pods alone'
  return explainPods(subject.namespaces, of) ?? `of the pod, ${explainMismatch(subject.pods, of.labels) ?? 'nothing'}`
}

/** A host-networked pod is described as its node: its own names and labels are looked at here alone. */
function explainHost({ subject, source }: Pick<CompiledPolicy, 'subject' | 'source'>, { party }: PartyClass): string {
  if (source.object.kind !== 'NetworkPolicy') return 'it leaves host-networked pods out'
  if (subject.kind === 'pods' && party.kind === 'pod') {
    const { namespace, labels } = party.pod.meta
    if ('name' in subject.namespaces && subject.namespaces.name !== namespace) {
      return `it is for namespace ${subject.namespaces.name}, not ${namespace}`
    }
    const mismatch = explainMismatch(subject.pods, labels)
    if (mismatch !== undefined) return `of the pod, ${mismatch}`
  }
  return 'upstream does not define what it does to host-networked pods; they count as their node here'
}

/** What is wrong with the namespace, if it is that. */
function explainPods(namespaces: NamespaceMatch, of: PartyClass): string | undefined {
  if ('name' in namespaces) {
    return namespaces.name === of.namespace ? undefined : `it is for namespace ${namespaces.name}, not ${of.namespace}`
  }
  const mismatch = explainMismatch(namespaces.selector, of.namespaceLabels)
  return mismatch === undefined ? undefined : `of namespace ${of.namespace}, ${mismatch}`
}

export function explainPeer(peer: PeerMatch, of: PartyClass): string {
  switch (peer.kind) {
    case 'pods':
      return explainNoPod(peer.namespaces, peer, of)
    case 'nodes':
      if (of.kind !== 'node') return `it is for nodes, and ${describeParty(of.party)} is none`
      return `of the node, ${explainMismatch(peer.selector, of.labels) ?? 'the labels are unknown'}`
    case 'addresses':
      return explainNoAddress(peer, of)
    case 'names':
      return of.kind === 'address'
        ? 'the input does not tell what its names resolve to'
        : 'its names lead out of the cluster'
    case 'own':
      return `${peer.text} does not match`
    case 'everybody':
    case 'nobody':
    case 'unknown':
      return peer.why
    default:
      return peer satisfies never
  }
}

function explainNoPod(
  namespaces: NamespaceMatch,
  { pods }: { readonly pods: Parameters<typeof explainMismatch>[0] },
  of: PartyClass,
): string {
  if (of.kind === 'node')
    return `it is for pods, and ${describeParty(of.party)} ${of.party.kind === 'pod' ? 'counts as its node' : 'is none'}`
  if (of.kind !== 'pod') return `it is for pods, and ${describeParty(of.party)} is none`
  const place = 'name' in namespaces && namespaces.name !== of.namespace
  if (place) return `it is for pods of namespace ${namespaces.name}, not ${of.namespace}`
  return explainPods(namespaces, of) ?? `of the pod, ${explainMismatch(pods, of.labels) ?? 'nothing'}`
}

function explainNoAddress({ cidr, except }: AddressesMatch, { ip, party }: PartyClass): string {
  if (ip === undefined) return `${describeParty(party)} has no address yet that could be in ${printPrefix(cidr)}`
  if (!containsIp(cidr, ip)) return `${printIp(ip)} is not in ${printPrefix(cidr)}`
  const hole = except.find((range) => containsIp(range, ip))
  return `${printIp(ip)} is in the exception ${hole === undefined ? '' : printPrefix(hole)}`
}
