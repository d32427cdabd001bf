/** Why a port of a Service has no endpoint: the first thing that is missing on the way from selector to address. */
import { countOf, listOf } from '#base/text'
import { explainMissingPort, resolvePorts } from '#compile/endpointslices/resolve-ports'
import type { ServicePortPlan } from '#compile/services/service-plan'
import { type Labels, selects } from '#model/meta'
import type { Pod } from '#model/pod'
import { endpointsOf } from './describe-endpoint'
import type { ServiceView } from './service-view'

export type Emptiness = { readonly because: string; readonly evidence: readonly string[]; readonly hint: string }

export function explainEmptiness(view: ServiceView, plan: ServicePortPlan): Emptiness {
  const { service, slices, pods } = view
  if (plan.endpoints.length > 0) return allUnready(plan)
  const unnamed = lacksNamedPort(view, plan)
  if (unnamed !== undefined) return unnamed
  if ([...endpointsOf(slices.used)].length > 0) return lacksPort(view, plan)
  if (service.selector === undefined) {
    return {
      because: 'it has no selector and no EndpointSlice names it',
      evidence: [`label kubernetes.io/service-name=${service.meta.name}: on no slice of the input`],
      hint: 'add a selector, or an EndpointSlice with that label',
    }
  }
  if (pods.length === 0) return selectsNothing(view, service.selector)
  const addressed = pods.filter((pod) => pod.podIPs.length > 0)
  if (addressed.length === 0) {
    return {
      because: `no pod that it selects has an address yet`,
      evidence: pods.slice(0, 10).map((pod) => `pod ${pod.meta.name}: phase ${pod.phase}`),
      hint: 'see why the pods do not start (kubectl describe pod)',
    }
  }
  return {
    because: `its slices hold no pod that it selects`,
    evidence: addressed.slice(0, 10).map((pod) => `pod ${pod.meta.name} (${listOf(pod.podIPs)}): phase ${pod.phase}`),
    hint: 'see that the EndpointSlice controller runs, and the layers below',
  }
}

function allUnready({ endpoints }: ServicePortPlan): Emptiness {
  return {
    because: `not one of its endpoints is ready`,
    evidence: endpoints.slice(0, 10).map(({ text, endpoint, isServing, isTerminating }) => {
      const pod = endpoint.targetRef === undefined ? '' : `${endpoint.targetRef.name} `
      return `${pod}${text}: ready=false serving=${isServing} terminating=${isTerminating}`
    }),
    hint: 'see why the readiness probes fail (kubectl describe pod)',
  }
}

/** A targetPort by name that not one of the selected pods has. */
function lacksNamedPort({ service, pods }: ServiceView, { servicePort }: ServicePortPlan): Emptiness | undefined {
  const { targetPort, protocol } = servicePort
  const at = service.ports.indexOf(servicePort)
  const lacksIt = (pod: Pod): boolean => resolvePorts(service, pod)[at] === undefined
  if (typeof targetPort === 'number' || pods.length === 0 || !pods.every(lacksIt)) return undefined
  const reasons = [...new Set(pods.map((pod) => explainMissingPort(pod, servicePort)))]
  return {
    because: `no pod that it selects has targetPort "${targetPort}" (${protocol}): ${listOf(reasons, 2)}`,
    evidence: [`selected: ${listOf(pods.map(({ meta }) => meta.name))}`],
    hint: `name a container port "${targetPort}" with protocol ${protocol}, or use its number as targetPort`,
  }
}

function lacksPort({ service, slices }: ServiceView, { servicePort }: ServicePortPlan): Emptiness {
  const { name, protocol } = servicePort
  const offered = slices.used.flatMap((slice) =>
    slice.ports.map((port) => `${slice.meta.name}: port "${port.name ?? ''}" ${port.port ?? '*'}/${port.protocol}`),
  )
  const evidence = offered.length === 0 ? slices.used.map((slice) => `${slice.meta.name}: no ports`) : offered
  return {
    because: `no slice has a port named "${name}" with protocol ${protocol}`,
    evidence: evidence.slice(0, 10),
    hint: `give the slices of ${service.meta.name} the port name and protocol that the Service has`,
  }
}

function selectsNothing({ input, service }: ServiceView, selector: Labels): Emptiness {
  const wanted = Object.entries(selector).map(([key, value]) => `${key}=${value}`)
  const near = nearMisses([...input.cluster.pods.values()], service.meta.namespace, selector)
  return {
    because: `no pod of namespace ${service.meta.namespace} has ${wanted.join(',')}`,
    evidence: near,
    hint:
      near.length === 0 ? 'correct the selector, or create the pods' : 'correct the selector or the labels of the pods',
  }
}

/** What the pods have that would be selected but for the namespace or one label. */
function nearMisses(pods: readonly Pod[], namespace: string, selector: Labels): readonly string[] {
  const elsewhere: string[] = []
  const values = new Map<string, Map<string, number>>()
  for (const { meta } of pods) {
    if (meta.namespace !== namespace) {
      if (selects(selector, meta.labels)) elsewhere.push(`${meta.namespace}/${meta.name}`)
      continue
    }
    const missed = Object.keys(selector).filter((key) => meta.labels[key] !== selector[key])
    const [key] = missed
    if (key === undefined || missed.length > 1) continue
    const counts = values.get(key) ?? new Map<string, number>()
    values.set(key, counts)
    const value = meta.labels[key] ?? 'not there'
    counts.set(value, (counts.get(value) ?? 0) + 1)
  }
  const near = [...values].map(([key, counts]) => {
    const texts = [...counts].map(([value, count]) => `${value} on ${countOf(count, 'pod')}`)
    return `label ${key} in namespace ${namespace}: ${listOf(texts)}`
  })
  return elsewhere.length === 0 ? near : [...near, `in another namespace: ${listOf(elsewhere, 5)}`]
}
