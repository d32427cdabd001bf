/** What a name below the zone stands for: the addresses or the other name of a Service, of one endpoint, or of a pod. */
import { type Family, familyOf, parseIp, printIp } from '#base/ip'
import { countOf, listOf } from '#base/text'
import type { Endpoint, EndpointSlice } from '#model/endpoint-slice'
import { isHeadless, type Service } from '#model/service'
import { explainEmpty, explainEndpoint, explainPorts, explainService } from './explain-absence'
import type { KubernetesOptions } from './kubernetes-options'
import type { ObjectQuestion } from './parse-question'
import { isServed, type ZoneIndex } from './zone-index'

/** `owner` is the name that SRV records point to, without the zone; a port below 0 has no SRV record. */
export type Target = { readonly owner: string; readonly port: number } & (
  | { readonly kind: 'address'; readonly address: string; readonly family: Family }
  | { readonly kind: 'name'; readonly name: string }
)

/** Undefined targets: the name does not exist. No targets: it exists and holds nothing. */
export type Found = { readonly targets?: readonly Target[]; readonly because: string }

export type ZoneView = { readonly index: ZoneIndex; readonly options: KubernetesOptions }

/** Mirrors findServices and findPods of plugin/kubernetes/kubernetes.go, CoreDNS 1.14. */
export function findTargets(question: ObjectQuestion, view: ZoneView): Found {
  const { namespace } = question
  if (!view.index.hasNamespace(namespace)) {
    const hidden = view.index.isHidden(namespace)
    return {
      because: hidden ? `the Corefile does not expose namespace ${namespace}` : `there is no namespace ${namespace}`,
    }
  }
  return question.branch === 'pod' ? findPod(question, view) : findService(question, view)
}

function findService(question: ObjectQuestion, view: ZoneView): Found {
  const { namespace, name } = question
  const service = view.index.service(namespace, name)
  if (service === undefined) return { because: explainService(question, view.index) }
  const { ignoresEmptyServices } = view.options
  const isExternal = service.type === 'ExternalName'
  if (ignoresEmptyServices && !isExternal && !isHeadless(service) && !hasServed(view, service)) {
    return { because: `Service ${namespace}/${name} has no ready endpoint, and the Corefile says ignore empty_service` }
  }
  if (question.topology !== undefined && !isHeadless(service)) {
    return { because: `Service ${namespace}/${name} is not headless, and only headless ones have names by zone` }
  }
  if (isExternal) return findExternal(question, service)
  if (isHeadless(service) || question.endpoint !== undefined) return findEndpoints(question, service, view)
  return findAddresses(question, service)
}

function findExternal({ endpoint, port, protocol }: ObjectQuestion, service: Service): Found {
  const { namespace, name } = service.meta
  const external = service.externalName ?? ''
  const place = `Service ${namespace}/${name} is of type ExternalName`
  if ((endpoint ?? '') !== '' || (port ?? '') !== '' || (protocol ?? '') !== '') {
    return { because: `${place}, which has no names below its own` }
  }
  if (parseIp(external) !== undefined) {
    return {
      because: `${place} and names an address, ${external}: a CNAME can only name a name; use a Service without selector and an EndpointSlice`,
    }
  }
  const target: Target = { kind: 'name', name: external, owner: `${name}.${namespace}.svc`, port: 0 }
  return { targets: [target], because: `${place} and stands for ${external}` }
}

function findAddresses(question: ObjectQuestion, service: Service): Found {
  const { namespace, name } = service.meta
  const owner = `${name}.${namespace}.svc`
  const ports = service.ports.filter((port) => matchesPort(question, port))
  const numbers = service.ports.length === 0 && matchesPort(question, noPort) ? [-1] : ports.map(({ port }) => port)
  if (numbers.length === 0) return { because: explainPorts(question, service) }
  const targets = numbers.flatMap((port) =>
    service.clusterIPs.map((address): Target => ({ kind: 'address', address, family: familyOf(address), owner, port })),
  )
  return { targets, because: `Service ${namespace}/${name} has ${listOf(service.clusterIPs) || 'no address'}` }
}

/** A slice without ports stands in the plugin as one with port -1 and no name. */
const noPort = { name: '', protocol: '', port: -1 }

function findEndpoints(question: ObjectQuestion, service: Service, view: ZoneView): Found {
  const { namespace, name } = service.meta
  const slices = view.index.slicesOf(namespace, name)
  const inZone = targetsOf(question, slices, view)
  const { topology } = question
  const targets =
    topology?.prefers === true && inZone.length === 0 ? targetsOf(withoutTopology(question), slices, view) : inZone
  if (targets.length > 0 || topology !== undefined)
    return { targets, because: describeEndpoints(service, targets, question.endpoint) }
  if (question.endpoint !== undefined) return { because: explainEndpoint(question, slices) }
  if (!view.options.hasEndpoints) return { because: 'the Corefile says noendpoints, so endpoints have no records' }
  const hasAny = slices.some((slice) => slice.endpoints.some(isServed))
  return { because: hasAny ? explainPorts(question, service) : explainEmpty(service, slices) }
}

function withoutTopology({ topology: _, ...rest }: ObjectQuestion): ObjectQuestion {
  return rest
}

function targetsOf(
  question: ObjectQuestion,
  slices: readonly EndpointSlice[],
  { options }: ZoneView,
): readonly Target[] {
  const targets: Target[] = []
  const { endpoint: asked, topology } = question
  for (const slice of slices) {
    const ports = (slice.ports.length === 0 ? [noPort] : slice.ports).filter((port) => matchesPort(question, port))
    if (ports.length === 0) continue
    for (const endpoint of slice.endpoints) {
      if (!isServed(endpoint)) continue
      if (topology !== undefined && endpoint.zone?.toLowerCase() !== topology.zone) continue
      for (const address of endpoint.addresses) {
        const label = endpointLabel(endpoint, address, options.usesPodNames)
        if (asked !== undefined && label.toLowerCase() !== asked) continue
        const owner = `${label}.${question.name}.${question.namespace}.svc`
        const family = familyOf(address)
        for (const { port } of ports) targets.push({ kind: 'address', address, family, owner, port: port ?? -1 })
      }
    }
  }
  return targets
}

/** The first label of an endpoint's own name. */
export function endpointLabel(endpoint: Endpoint, address: string, usesPodNames: boolean): string {
  if (endpoint.hostname !== undefined && endpoint.hostname !== '') return endpoint.hostname
  const pod = endpoint.targetRef?.name
  if (usesPodNames && pod !== undefined && pod !== '' && pod.length < 64) return pod
  if (!address.includes(':')) return address.replaceAll('.', '-')
  const dashed = address.replaceAll(':', '-')
  return dashed.endsWith('-') ? `${dashed}0` : dashed
}

function describeEndpoints({ meta }: Service, targets: readonly Target[], asked: string | undefined): string {
  const service = `Service ${meta.namespace}/${meta.name}`
  const count = new Set(targets.map((target) => target.owner)).size
  return asked === undefined
    ? `${service} has ${countOf(count, 'ready endpoint')}`
    : `${service} has a ready endpoint ${asked}`
}

function hasServed({ index }: ZoneView, { meta }: Service): boolean {
  return index.slicesOf(meta.namespace, meta.name).some((slice) => slice.endpoints.some(isServed))
}

type Port = { readonly name?: string; readonly protocol: string }

/** An empty label asks for any; names and protocols are compared without regard to case. */
function matchesPort({ port, protocol }: ObjectQuestion, { name = '', protocol: has }: Port): boolean {
  const isPort = (port ?? '') === '' || port?.toLowerCase() === name.toLowerCase()
  return isPort && ((protocol ?? '') === '' || protocol?.toLowerCase() === has.toLowerCase())
}

/** More labels before the pod's name are not looked at, as in CoreDNS. */
function findPod({ namespace, name }: ObjectQuestion, { index, options }: ZoneView): Found {
  if (options.pods === 'disabled')
    return { because: 'pod names are off: the Corefile does not say pods insecure or verified' }
  const text = /^[^-]+(-[^-]+){3}$/.test(name) ? name.replaceAll('-', '.') : name.replaceAll('-', ':')
  const ip = parseIp(text)
  const owner = `${name}.${namespace}.pod`
  if (options.pods === 'insecure') {
    if (ip === undefined) return { because: `"${name}" is not an address with dashes` }
    const targets: Target[] = [{ kind: 'address', address: printIp(ip), family: ip.family, owner, port: 0 }]
    return { targets, because: 'pods insecure: any address with dashes is answered, whether a pod has it or not' }
  }
  const pods = index.podsAt(text).filter(({ meta }) => meta.namespace === namespace)
  const [first] = pods
  if (first === undefined || ip === undefined)
    return { because: `no live pod of namespace ${namespace} has the address ${text}` }
  const targets = pods.map((): Target => ({ kind: 'address', address: text, family: ip.family, owner, port: 0 }))
  return { targets, because: `pod ${namespace}/${first.meta.name} has the address ${text}` }
}
