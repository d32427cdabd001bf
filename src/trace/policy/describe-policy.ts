/** Parties, selectors, peers and ports in words. */
import { printIp } from '#base/ip'
import { printPortRange } from '#base/port-range'
import { printPrefix } from '#base/prefix'
import { listOf } from '#base/text'
import type {
  CompiledPolicy,
  NamespaceMatch,
  PeerMatch,
  PodsMatch,
  PolicyRule,
  PortMatch,
} from '#compile/policy/policy-rule'
import { keyOf, type Labels } from '#model/meta'
import type { Expression, LabelSelector } from '#model/selector'
import { matchesAll } from '#model/selector'
import type { Party } from './party'
import { hasPorts } from './port-match'
import type { LanePoint } from './semantics'

export function describeParty(party: Party): string {
  switch (party.kind) {
    case 'pod':
      return `${party.pod.hostNetwork ? 'host-networked pod' : 'pod'} ${keyOf(party.pod.meta)}`
    case 'node':
      return `node ${party.node.meta.name}`
    case 'address':
      return `address ${printIp(party.ip)}`
    case 'entity':
      return party.name
    default:
      return party satisfies never
  }
}

/** `NetworkPolicy shop/allow-web`. */
export function describePolicy({ source: { object } }: CompiledPolicy): string {
  const name = object.namespace === undefined ? object.name : `${object.namespace}/${object.name}`
  return `${object.kind} ${name}`
}

/** `spec.ingress[0] ("allow-dns")`. */
export function describeRule({ path, name }: PolicyRule): string {
  return name === undefined ? path : `${path} ("${name}")`
}

/** `TCP 80`, `ICMP type 8`. */
export function describePoint({ protocol, port, isStretch }: LanePoint): string {
  if (isStretch === true) return 'these ports'
  if (protocol === 'ICMP' || protocol === 'ICMPv6') return `${protocol} type ${port}`
  return hasPorts(protocol) ? `${protocol} ${port}` : protocol
}

export function describeSelector({ matchLabels, matchExpressions }: LabelSelector): string {
  const labels = Object.entries(matchLabels).map(([key, value]) => `${key}=${value}`)
  return listOf([...labels, ...matchExpressions.map(describeExpression)])
}

function describeExpression({ key, operator, values }: Expression): string {
  switch (operator) {
    case 'In':
      return `${key} in (${values.join(', ')})`
    case 'NotIn':
      return `${key} not in (${values.join(', ')})`
    case 'Exists':
      return `${key} present`
    case 'DoesNotExist':
      return `${key} absent`
    case 'Gt':
      return `${key} > ${values[0]}`
    case 'Lt':
      return `${key} < ${values[0]}`
    default:
      return operator satisfies never
  }
}

export function selectsAll({ matchLabels, matchExpressions }: LabelSelector): boolean {
  return Object.keys(matchLabels).length === 0 && matchExpressions.length === 0
}

export function describePods({ namespaces, pods }: PodsMatch): string {
  const which = selectsAll(pods) ? 'every pod' : `pods with ${describeSelector(pods)}`
  return `${which} ${describeNamespaces(namespaces)}`
}

function describeNamespaces(namespaces: NamespaceMatch): string {
  if ('name' in namespaces) return `of namespace ${namespaces.name}`
  const { selector } = namespaces
  return selectsAll(selector) ? 'of every namespace' : `of namespaces with ${describeSelector(selector)}`
}

export function describePeer(peer: PeerMatch): string {
  switch (peer.kind) {
    case 'pods':
      return describePods(peer)
    case 'nodes':
      return selectsAll(peer.selector) ? 'every node' : `nodes with ${describeSelector(peer.selector)}`
    case 'addresses': {
      const but = peer.except.length === 0 ? '' : ` but ${listOf(peer.except.map(printPrefix))}`
      return `${printPrefix(peer.cidr)}${but}`
    }
    case 'names':
      return `the addresses of ${listOf(peer.names)}`
    case 'own':
      return peer.title ?? peer.text
    case 'everybody':
    case 'nobody':
    case 'unknown':
      return `${peer.kind === 'unknown' ? 'an unknown peer' : peer.kind} (${peer.why})`
    default:
      return peer satisfies never
  }
}

/** `TCP 80, UDP 53`, `every port`. */
export function describePorts(ports: 'any' | readonly PortMatch[]): string {
  if (ports === 'any') return 'every port and protocol'
  return ports.length === 0 ? 'no port' : listOf(ports.map(describePort))
}

function describePort(match: PortMatch): string {
  const protocol = match.protocol ?? 'any protocol,'
  if (match.kind === 'named') return `${protocol} port "${match.name}"`
  const { from, to } = match.range
  return from <= 1 && to === 65535
    ? `every ${match.protocol ?? ''} port`.replace('  ', ' ')
    : `${protocol} ${printPortRange(match.range, '-')}`
}

/** What of a selector labels do not meet, as the end of a sentence; undefined when they meet all. */
export function explainMismatch({ matchLabels, matchExpressions }: LabelSelector, labels: Labels): string | undefined {
  const told = (key: string): string =>
    Object.hasOwn(labels, key) ? `has ${key}=${labels[key]}` : `has no label ${key}`
  for (const [key, value] of Object.entries(matchLabels)) {
    if (!Object.hasOwn(labels, key) || labels[key] !== value) return `${key}=${value} is wanted, and it ${told(key)}`
  }
  const failed = matchExpressions.find((expression) => !matchesAll([expression], labels))
  return failed === undefined ? undefined : `${describeExpression(failed)} is wanted, and it ${told(failed.key)}`
}
