/** What a controller judged, as `kubectl get` shows it: a table for each kind. */
import { printTable } from '#base/text'
import type { Condition } from '#enforce/condition'
import type { JudgedObject } from '#enforce/condition-survey'
import type { Cluster } from '#model/cluster'
import { keyOf } from '#model/meta'

type Objects = Pick<Cluster, 'trafficPolicyBindings' | 'edgeServices'>

/** `isWide` adds what the reason is about. */
export function printConditionTables(
  judged: readonly JudgedObject[],
  { trafficPolicyBindings, edgeServices }: Objects,
  isWide: boolean,
): string {
  const wide = (...more: readonly string[]): readonly string[] => (isWide ? more : [])
  const table = (kind: JudgedObject['kind'], header: readonly string[], cells: Cells): string => {
    const rows = judged.filter((one) => one.kind === kind).map((one) => [...namesOf(one), ...cells(one)])
    return rows.length === 0 ? '' : printTable(['NAMESPACE', 'NAME', ...header], rows)
  }
  const bindings = table(
    'TrafficPolicyBinding',
    ['ATTACHMENT', 'INGRESS', 'EGRESS', 'INSTALLED', 'ENFORCING', 'REASON', ...wide('MESSAGE')],
    (one) => {
      const spec = trafficPolicyBindings.get(keyOf(one.meta))?.spec
      const enforcing = conditionOf(one, 'Enforcing')
      return [
        spec?.vpcAttachmentRef.name ?? '',
        spec?.ingressPolicyRef?.name ?? '',
        spec?.egressPolicyRef?.name ?? '',
        conditionOf(one, 'Installed')?.status ?? '',
        enforcing?.status ?? '',
        enforcing?.reason ?? '',
        ...wide(enforcing?.message ?? ''),
      ]
    },
  )
  const services = table('EdgeService', ['PROVIDER', 'VPC', 'POLICIES', ...wide('MESSAGE')], (one) => {
    const spec = edgeServices.get(keyOf(one.meta))?.spec
    const resolved = conditionOf(one, 'TrafficPolicyResolved')
    return [
      spec?.providerRef.name ?? '',
      spec?.vpcRef.name ?? '',
      resolved?.reason ?? '',
      ...wide(resolved?.message ?? ''),
    ]
  })
  const policies = table('TrafficPolicy', ['VALID', 'REASON', 'MESSAGE'], (one) => {
    const { status = '', reason = '', message = '' } = conditionOf(one, 'Valid') ?? {}
    return [status, reason, message]
  })
  return [bindings, services, policies].filter((text) => text !== '').join('\n')
}

type Cells = (one: JudgedObject) => readonly string[]

function namesOf({ meta }: JudgedObject): readonly string[] {
  return [meta.namespace, meta.name]
}

function conditionOf({ conditions }: JudgedObject, type: string): Condition | undefined {
  return conditions.find((one) => one.type === type)
}
