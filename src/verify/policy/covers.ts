/** When one match holds for all that another holds for, whatever the cluster: by the selectors, ranges and ports themselves. */
import { containsPrefix, overlaps } from '#base/prefix'
import type {
  AddressesMatch,
  NamespaceMatch,
  PeerMatch,
  PolicyRule,
  PortMatch,
  SubjectMatch,
} from '#compile/policy/policy-rule'
import type { Expression, LabelSelector } from '#model/selector'
import { isEverything } from './selector-text'

/** True only where it is certain. */
export function coversRule(outer: PolicyRule, inner: PolicyRule): boolean {
  return coversPeers(outer.peers, inner.peers) && coversPorts(outer.ports, inner.ports)
}

export function coversSubject(outer: SubjectMatch, inner: SubjectMatch): boolean {
  if (outer.kind === 'pods' && inner.kind === 'pods') return coversPods(outer, inner)
  if (outer.kind === 'nodes' && inner.kind === 'nodes') return coversSelector(outer.selector, inner.selector)
  return outer.kind === 'own' && inner.kind === 'own' && outer.text === inner.text
}

function coversPeers(outer: PolicyRule['peers'], inner: PolicyRule['peers']): boolean {
  if (outer === 'any') return true
  return inner !== 'any' && inner.every((one) => outer.some((other) => coversPeer(other, one)))
}

function coversPeer(outer: PeerMatch, inner: PeerMatch): boolean {
  if (inner.kind === 'nobody') return true
  switch (outer.kind) {
    case 'everybody':
      return true
    case 'pods':
      return inner.kind === 'pods' && coversPods(outer, inner)
    case 'nodes':
      return inner.kind === 'nodes' && coversSelector(outer.selector, inner.selector)
    case 'addresses':
      return inner.kind === 'addresses' && coversAddresses(outer, inner)
    case 'own':
      return inner.kind === 'own' && outer.text === inner.text
    case 'names':
    case 'nobody':
    case 'unknown':
      return false
    default:
      return outer satisfies never
  }
}

type Pods = { readonly namespaces: NamespaceMatch; readonly pods: LabelSelector }

function coversPods(outer: Pods, inner: Pods): boolean {
  return coversNamespaces(outer.namespaces, inner.namespaces) && coversSelector(outer.pods, inner.pods)
}

function coversNamespaces(outer: NamespaceMatch, inner: NamespaceMatch): boolean {
  if ('name' in outer) return 'name' in inner && outer.name === inner.name
  return 'name' in inner ? isEverything(outer.selector) : coversSelector(outer.selector, inner.selector)
}

/** Every requirement of the outer one follows from the inner one's. */
export function coversSelector(outer: LabelSelector, inner: LabelSelector): boolean {
  const pairs = Object.entries(outer.matchLabels).map(
    ([key, value]): Expression => ({ key, operator: 'In', values: [value] }),
  )
  const known = requirementsOf(inner)
  return [...pairs, ...outer.matchExpressions].every((wanted) => known.some((one) => implies(one, wanted)))
}

function requirementsOf({ matchLabels, matchExpressions }: LabelSelector): readonly Expression[] {
  const pairs = Object.entries(matchLabels).map(
    ([key, value]): Expression => ({ key, operator: 'In', values: [value] }),
  )
  return [...pairs, ...matchExpressions]
}

function implies(known: Expression, wanted: Expression): boolean {
  if (known.key !== wanted.key) return false
  const isOf = (values: readonly string[], among: readonly string[]): boolean =>
    values.every((one) => among.includes(one))
  switch (wanted.operator) {
    case 'In':
      return known.operator === 'In' && isOf(known.values, wanted.values)
    case 'NotIn':
      if (known.operator === 'DoesNotExist') return true
      if (known.operator === 'NotIn') return isOf(wanted.values, known.values)
      return known.operator === 'In' && !known.values.some((value) => wanted.values.includes(value))
    case 'Exists':
      return known.operator === 'Exists' || known.operator === 'In'
    case 'DoesNotExist':
      return known.operator === 'DoesNotExist'
    case 'Gt':
    case 'Lt':
      return false
    default:
      return wanted.operator satisfies never
  }
}

export function coversAddresses(outer: AddressesMatch, inner: AddressesMatch): boolean {
  if (!containsPrefix(outer.cidr, inner.cidr)) return false
  return outer.except.every(
    (hole) => !overlaps(hole, inner.cidr) || inner.except.some((own) => containsPrefix(own, hole)),
  )
}

function coversPorts(outer: PolicyRule['ports'], inner: PolicyRule['ports']): boolean {
  if (outer === 'any') return true
  return inner !== 'any' && inner.every((one) => outer.some((other) => coversPort(other, one)))
}

function coversPort(outer: PortMatch, inner: PortMatch): boolean {
  if (outer.protocol === undefined) {
    if (inner.protocol === 'ICMP' || inner.protocol === 'ICMPv6') return false
  } else if (outer.protocol !== inner.protocol) return false
  if (outer.kind === 'named') return inner.kind === 'named' && inner.name === outer.name
  const { from, to } = outer.range
  // A named port may be any number there is.
  return inner.kind === 'named' ? from <= 1 && to === 65535 : from <= inner.range.from && to >= inner.range.to
}
