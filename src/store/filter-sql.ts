/** `matchesFlow` of flows in SQL: a filter's terms as conditions on `flows f`. */
import { parsePrefix, printPrefix } from '#base/prefix'
import { canonicalAddress } from '#flows/address'
import type { FlowCondition, FlowFilter, LabelRequirement, Side } from '#flows/filter'
import { printDay } from '#flows/instant'
import type { Conditions } from './conditions'
import { arrayText } from './engine'

/** The columns of one end of a row. */
type EndColumns = {
  readonly namespace: string
  /** Null where the end is no pod. */
  readonly podName: string
  readonly workloadKind: string
  readonly workloadName: string
  readonly labels: string
  readonly address: string
  readonly isAddress: string
}

const pod: EndColumns = {
  namespace: 'f.pod_namespace',
  podName: 'f.pod_name',
  workloadKind: 'f.pod_workload_kind',
  workloadName: 'f.pod_workload_name',
  labels: 'f.pod_labels_id',
  address: 'f.pod_ip',
  // Rows are refused whose own address is none.
  isAddress: 'f.pod_ip is not null',
}
const peer: EndColumns = {
  namespace: 'f.peer_namespace',
  podName: `case when f.peer_kind <> 'service' then f.peer_name end`,
  workloadKind: 'f.peer_workload_kind',
  workloadName: 'f.peer_workload_name',
  labels: 'f.peer_labels_id',
  address: 'f.peer_ip',
  isAddress: `f.peer_range <> 'not-an-address'`,
}

export function addFilter(conditions: Conditions, filter: FlowFilter): void {
  if (filter.since !== undefined) {
    // A row's day is not before the day of its last sighting, so older partitions need no look.
    conditions.add(`f.day >= ${conditions.parameter(printDay(filter.since))}::date`)
    conditions.add(`f.last_seen >= ${conditions.instant(filter.since)}`)
  }
  if (filter.until !== undefined) conditions.add(`f.first_seen < ${conditions.instant(filter.until)}`)
  for (const { anyOf, isNegated } of filter.terms) {
    const options = anyOf.map((condition) => `coalesce(${conditionSql(conditions, condition)}, false)`)
    const any = options.length === 0 ? 'false' : options.join(' or ')
    conditions.add(isNegated === true ? `not (${any})` : `(${any})`)
  }
}

function conditionSql(on: Conditions, condition: FlowCondition): string {
  switch (condition.field) {
    case 'reporter': {
      const name = `f.pod_name = ${on.parameter(condition.name)}`
      return both(namespaceSql(on, condition.namespace, pod), name)
    }
    case 'port':
      return `case f.direction when 'INGRESS' then f.own_port else f.peer_port end = ${on.parameter(condition.port)}::int4`
    case 'protocol':
      return `f.protocol = ${on.parameter(condition.protocol.toUpperCase())}`
    case 'decision':
      return `f.decision = ${on.parameter(condition.decision.toUpperCase())}`
    case 'direction':
      return `f.direction = ${on.parameter(condition.direction)}`
    case 'peer-kind':
      return condition.peerKind === 'none' ? 'f.peer_kind is null' : `f.peer_kind = ${on.parameter(condition.peerKind)}`
    default:
      return onSides(condition.side, (end) => endSql(on, condition, end))
  }
}

function onSides(side: Side, sql: (end: EndColumns) => string): string {
  if (side === 'either') return `(coalesce(${sql(pod)}, false) or coalesce(${sql(peer)}, false))`
  const ownDirection = side === 'from' ? 'EGRESS' : 'INGRESS'
  return `case f.direction when '${ownDirection}' then ${sql(pod)} else ${sql(peer)} end`
}

function endSql(on: Conditions, condition: Extract<FlowCondition, { readonly side: Side }>, end: EndColumns): string {
  switch (condition.field) {
    case 'pod': {
      const name = on.parameter(condition.namePrefix)
      return both(namespaceSql(on, condition.namespace, end), `starts_with(${end.podName}, ${name})`)
    }
    case 'namespace':
      return `${end.namespace} = ${on.parameter(condition.namespace)}`
    case 'workload': {
      const name = `${end.workloadName} = ${on.parameter(condition.name)}`
      const kind =
        condition.kind === undefined ? '' : `lower(${end.workloadKind}) = ${on.parameter(condition.kind.toLowerCase())}`
      return both(namespaceSql(on, condition.namespace, end), `${end.workloadKind} is not null`, name, kind)
    }
    case 'labels':
      return labelsSql(on, condition.requirements, end)
    case 'ip':
      return `${end.address} = ${on.parameter(canonicalAddress(condition.address))}`
    case 'cidr':
      return cidrSql(on, condition.cidr, end)
    default:
      return condition satisfies never
  }
}

function namespaceSql(on: Conditions, namespace: string | undefined, end: EndColumns): string {
  return namespace === undefined ? '' : `${end.namespace} = ${on.parameter(namespace)}`
}

/** Label sets are few, flows are many: the sets that fit are found first. */
function labelsSql(on: Conditions, requirements: readonly LabelRequirement[], end: EndColumns): string {
  const each = requirements.map(({ key, operator, values }) => {
    const name = `${on.parameter(key)}::text`
    const isOne = (): string =>
      `coalesce(l.labels ->> ${name} = any(${on.parameter(arrayText(values))}::text[]), false)`
    switch (operator) {
      case 'In':
        return isOne()
      case 'NotIn':
        return `not ${isOne()}`
      case 'Exists':
        return `jsonb_exists(l.labels, ${name})`
      case 'DoesNotExist':
        return `not jsonb_exists(l.labels, ${name})`
      default:
        return operator satisfies never
    }
  })
  return `${end.labels} in (select l.labels_id from label_sets l where ${each.length === 0 ? 'true' : each.join(' and ')})`
}

/** The cast is made of addresses alone: any other text would end the statement. */
function cidrSql(on: Conditions, cidr: string, end: EndColumns): string {
  const prefix = parsePrefix(cidr)?.prefix
  if (prefix === undefined) return 'false'
  return `case when ${end.isAddress} then ${end.address}::inet <<= ${on.parameter(printPrefix(prefix))}::inet end`
}

function both(...conditions: readonly string[]): string {
  return `(${conditions.filter((condition) => condition !== '').join(' and ')})`
}
