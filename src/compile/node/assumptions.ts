/** What a node's rules rest on that the input did not say: assumed fields of Services and of their endpoints. */
import type { ServicePlan } from '#compile/services/service-plan'
import { type EndpointSlice, serviceNameLabel } from '#model/endpoint-slice'
import { keyOf } from '#model/meta'

/** One Service and the assumed fields behind its rules. */
export type Assumption = { readonly service: string; readonly fields: readonly string[] }

/** Only fields that rules are made of: a zone that was assumed changes no rule of a Service without hints. */
const serviceFields = /^(\*|spec\.(clusterIPs?|ipFamilies|ports.*|healthCheckNodePort))/
const endpointFields = /^endpoints\[[^\]]*\](\.(addresses|conditions|nodeName))?$/

export function assumptionsBehind(plan: ServicePlan, slices: readonly EndpointSlice[]): readonly Assumption[] {
  const ofEndpoints = new Map<string, string[]>()
  for (const { meta } of slices) {
    const fields = meta.assumed
      .filter((field) => endpointFields.test(field))
      .map((field) => field.replace(/\[\d+\]/, '[…]'))
    if (fields.length === 0) continue
    const key = `${meta.namespace}/${meta.labels[serviceNameLabel]}`
    ofEndpoints.set(key, [...(ofEndpoints.get(key) ?? []), ...fields])
  }
  const fieldsOf = new Map<string, readonly string[]>()
  for (const { service } of plan.ports) {
    const key = keyOf(service.meta)
    if (fieldsOf.has(key)) continue
    const own = service.meta.assumed.filter((field) => serviceFields.test(field))
    fieldsOf.set(key, [...new Set([...own, ...(ofEndpoints.get(key) ?? [])])])
  }
  return [...fieldsOf].filter(([, fields]) => fields.length > 0).map(([service, fields]) => ({ service, fields }))
}

/** `Service shop/web: spec.clusterIPs, endpoints[*].addresses`. */
export function printAssumption({ service, fields }: Assumption): string {
  return `Service ${service}: ${fields.join(', ')}`
}
