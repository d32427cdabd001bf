/** What a filter of flows means: whether it lets one row through. */
import { parseIp } from '#base/ip'
import { containsIp, parsePrefix } from '#base/prefix'
import { canonicalAddress } from './address'
import type { FlowCondition, FlowFilter, LabelRequirement, Side } from './filter'
import type { StoredFlow } from './flow'
import type { Labels, Workload } from './holder'

/** One end of the connection, as far as filters ask. */
type End = {
  readonly namespace: string | null
  /** Null for a Service, which is no pod. */
  readonly podName: string | null
  readonly workload: Workload | null
  readonly labels: Labels | null
  readonly address: string | null
}

export function matchesFlow(filter: FlowFilter, flow: StoredFlow): boolean {
  if (filter.since !== undefined && flow.lastSeen < filter.since) return false
  if (filter.until !== undefined && flow.firstSeen >= filter.until) return false
  return filter.terms.every(
    ({ anyOf, isNegated }) => anyOf.some((condition) => fits(condition, flow)) !== (isNegated ?? false),
  )
}

/** The port that was connected to. */
export function targetPort(flow: Pick<StoredFlow, 'direction' | 'ownPort' | 'peerPort'>): number | null {
  return flow.direction === 'INGRESS' ? flow.ownPort : flow.peerPort
}

function fits(condition: FlowCondition, flow: StoredFlow): boolean {
  switch (condition.field) {
    case 'reporter':
      return flow.pod.name === condition.name && (condition.namespace ?? flow.pod.namespace) === flow.pod.namespace
    case 'port':
      return targetPort(flow) === condition.port
    case 'protocol':
      return flow.protocol.toUpperCase() === condition.protocol.toUpperCase()
    case 'decision':
      return flow.decision.toUpperCase() === condition.decision.toUpperCase()
    case 'direction':
      return flow.direction === condition.direction
    case 'peer-kind':
      return (flow.peer?.kind ?? 'none') === condition.peerKind
    default:
      return ends(flow, condition.side).some((end) => fitsEnd(condition, end))
  }
}

type EndCondition = Extract<FlowCondition, { readonly side: Side }>

function fitsEnd(condition: EndCondition, end: End): boolean {
  switch (condition.field) {
    case 'pod':
      return isNamespace(condition.namespace, end) && (end.podName?.startsWith(condition.namePrefix) ?? false)
    case 'namespace':
      return end.namespace === condition.namespace
    case 'workload':
      return isNamespace(condition.namespace, end) && isWorkload(condition, end.workload)
    case 'labels':
      return end.labels !== null && meetsAll(condition.requirements, end.labels)
    case 'ip':
      return end.address === canonicalAddress(condition.address)
    case 'cidr':
      return isInside(end.address, condition.cidr)
    default:
      return condition satisfies never
  }
}

function ends(flow: StoredFlow, side: Side): readonly End[] {
  const own: End = { ...flow.pod, podName: flow.pod.name }
  const peer: End = {
    namespace: flow.peer?.namespace ?? null,
    podName: flow.peer === null || flow.peer.kind === 'service' ? null : flow.peer.name,
    workload: flow.peer?.workload ?? null,
    labels: flow.peer?.labels ?? null,
    address: flow.peerAddress,
  }
  if (side === 'either') return [own, peer]
  return (side === 'from') === (flow.direction === 'EGRESS') ? [own] : [peer]
}

function isNamespace(wanted: string | undefined, end: End): boolean {
  return wanted === undefined || end.namespace === wanted
}

function isWorkload(wanted: { readonly kind?: string; readonly name: string }, workload: Workload | null): boolean {
  if (workload === null || workload.name !== wanted.name) return false
  return wanted.kind === undefined || workload.kind.toLowerCase() === wanted.kind.toLowerCase()
}

/** As a label selector of Kubernetes: NotIn and DoesNotExist fit where the key is absent. */
function meetsAll(requirements: readonly LabelRequirement[], labels: Labels): boolean {
  return requirements.every(({ key, operator, values }) => {
    const value = Object.hasOwn(labels, key) ? labels[key] : undefined
    switch (operator) {
      case 'In':
        return value !== undefined && values.includes(value)
      case 'NotIn':
        return value === undefined || !values.includes(value)
      case 'Exists':
        return value !== undefined
      case 'DoesNotExist':
        return value === undefined
      default:
        return operator satisfies never
    }
  })
}

function isInside(address: string | null, cidr: string): boolean {
  const ip = address === null ? undefined : parseIp(address)
  const prefix = parsePrefix(cidr)?.prefix
  return ip !== undefined && prefix !== undefined && containsIp(prefix, ip)
}
