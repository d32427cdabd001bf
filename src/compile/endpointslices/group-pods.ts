/** The pods of a Service as endpoints of one family, grouped by the ports they have. */
import type { Finding } from '#base/finding'
import type { Family } from '#base/ip'
import { listOf } from '#base/text'
import type { Cluster } from '#model/cluster'
import type { Endpoint } from '#model/endpoint-slice'
import type { Pod } from '#model/pod'
import type { Service } from '#model/service'
import { buildEndpoint } from './build-endpoint'
import { type Assumptions, noteAssumed } from './collect-assumed'
import { findingAt } from './findings'
import type { Group } from './pack-slices'
import { buildPorts, explainMissingPort, fixedPorts, type PortNumbers, resolvePorts } from './resolve-ports'

export type EndpointGroups = { readonly groups: readonly Group[]; readonly assumptions: Assumptions }

export type GroupOptions = {
  readonly families: readonly Family[]
  readonly controller: { readonly cluster: Cluster; readonly findings: Finding[] }
}

type OpenGroup = { readonly numbers: PortNumbers; readonly endpoints: ReadonlyMap<Family, Endpoint[]> }

/** Mirrors the first half of endpointslice/reconciler.go reconcileByAddressType (1.34), for all families at once. */
export function groupPods(
  service: Service,
  pods: readonly Pod[],
  options: GroupOptions,
): ReadonlyMap<Family, EndpointGroups> {
  const { families, controller } = options
  const fixed = fixedPorts(service)
  const groups = new Map<string, OpenGroup>()
  const assumptions: Assumptions = new Map()
  const troubles: Troubles = { withoutNode: [], withUnknownNode: [], withoutPort: new Map(), addressed: new Map() }
  for (const pod of pods) {
    const numbers = fixed ?? resolvePorts(service, pod)
    const group = openGroup(groups, numbers, families)
    if (fixed === undefined) notePorts(service, pod, { numbers, troubles })
    const node = pod.nodeName === undefined ? undefined : controller.cluster.nodes.get(pod.nodeName)
    if (node === undefined && !mayGoWithoutNode(pod, service, { cluster: controller.cluster, troubles })) continue
    const isAssumed = pod.meta.assumed.length > 0 || (node?.meta.assumed.length ?? 0) > 0
    for (const family of families) {
      const endpoint = buildEndpoint(pod, { service, node, family })
      if (endpoint === undefined) continue
      group.endpoints.get(family)?.push(endpoint)
      troubles.addressed.set(family, true)
      if (isAssumed) noteAssumed(assumptions, endpoint, { pod, node })
    }
  }
  if (pods.length > troubles.withoutNode.length) tellFamilies(service, troubles, options)
  tell(service, troubles, controller.findings)
  const groupsOf = (family: Family): readonly Group[] =>
    Array.from(groups.values(), ({ numbers, endpoints }) => ({
      ports: buildPorts(service, numbers),
      endpoints: endpoints.get(family) ?? [],
    }))
  return new Map(families.map((family) => [family, { groups: groupsOf(family), assumptions }]))
}

function openGroup(groups: Map<string, OpenGroup>, numbers: PortNumbers, families: readonly Family[]): OpenGroup {
  const key = numbers.join()
  const open = groups.get(key)
  if (open !== undefined) return open
  const group = { numbers, endpoints: new Map(families.map((family) => [family, []])) }
  groups.set(key, group)
  return group
}

type Troubles = {
  readonly withoutNode: Pod[]
  readonly withUnknownNode: Pod[]
  /** Pods by the sentence that says which port they lack and why. */
  readonly withoutPort: Map<string, Pod[]>
  readonly addressed: Map<Family, boolean>
}

/**
 * The controller drops a pod whose Node does not exist, unless the Service publishes addresses that are not ready. Where
 * the input tells no node of the pod, or holds no nodes at all, nothing is known to be missing and the pod stays.
 */
function mayGoWithoutNode(
  pod: Pod,
  service: Service,
  { cluster, troubles }: { readonly cluster: Cluster; readonly troubles: Troubles },
): boolean {
  if (pod.nodeName === undefined || cluster.nodes.size === 0) {
    troubles.withUnknownNode.push(pod)
    return true
  }
  if (service.publishNotReadyAddresses) return true
  troubles.withoutNode.push(pod)
  return false
}

function notePorts(
  service: Service,
  pod: Pod,
  { numbers, troubles }: { readonly numbers: PortNumbers; readonly troubles: Troubles },
): void {
  for (const [at, port] of service.ports.entries()) {
    if (numbers[at] !== undefined) continue
    const sentence = `port ${port.port}/${port.protocol}: ${explainMissingPort(pod, port)}`
    const pods = troubles.withoutPort.get(sentence)
    if (pods === undefined) troubles.withoutPort.set(sentence, [pod])
    else pods.push(pod)
  }
}

function tell(service: Service, troubles: Troubles, findings: Finding[]): void {
  const { withoutNode, withUnknownNode, withoutPort } = troubles
  if (withoutNode.length > 0) {
    const nodes = [...new Set(withoutNode.map((pod) => pod.nodeName ?? ''))]
    const message = `left out: ${namesOf(withoutNode)}, because no Node ${listOf(nodes)} exists`
    findings.push(findingAt(service.meta, 'endpointslices.node-missing', { message }))
  }
  if (withUnknownNode.length > 0) {
    const message = `the input does not hold the node of ${namesOf(withUnknownNode)}: endpoints without zone`
    findings.push(findingAt(service.meta, 'endpointslices.node-unknown', { message }))
  }
  for (const [sentence, pods] of withoutPort) {
    const message = `${sentence} (${namesOf(pods)})`
    findings.push(findingAt(service.meta, 'endpointslices.named-port-missing', { message, path: 'spec.ports' }))
  }
}

function tellFamilies(service: Service, troubles: Troubles, { families, controller }: GroupOptions): void {
  for (const family of families) {
    if (troubles.addressed.has(family)) continue
    const message = `none of its pods has an ${family === 'ipv4' ? 'IPv4' : 'IPv6'} address`
    const finding = findingAt(service.meta, 'endpointslices.no-address-in-family', { message, path: 'spec.ipFamilies' })
    controller.findings.push(finding)
  }
}

function namesOf(pods: readonly Pod[]): string {
  return listOf(
    pods.map((pod) => pod.meta.name),
    3,
  )
}
