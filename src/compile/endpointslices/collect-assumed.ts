/** What a slice rests on that the input did not say: the assumptions of its Service, pods and nodes, as its own paths. */
import type { Endpoint } from '#model/endpoint-slice'
import type { ClusterNode } from '#model/node'
import type { Pod } from '#model/pod'
import type { Service } from '#model/service'

/** Paths below an endpoint by the endpoint's address; only endpoints with assumptions are in it. */
export type Assumptions = Map<string, readonly string[]>

/** Where a pod's field ends up in its endpoint; any other assumed field touches the endpoint as a whole. */
const podFields: readonly (readonly [field: string, path: string])[] = [
  ['status.podIP', 'addresses'],
  ['status.conditions', 'conditions'],
  ['status.phase', 'conditions'],
  ['spec.nodeName', 'nodeName'],
  ['spec.hostname', 'hostname'],
  ['spec.subdomain', 'hostname'],
  ['metadata.uid', 'targetRef.uid'],
]

const serviceFields = ['spec.ipFamilies', 'spec.ipFamilyPolicy', 'spec.clusterIP', 'spec.clusterIPs']

export function noteAssumed(
  assumptions: Assumptions,
  endpoint: Endpoint,
  { pod, node }: { readonly pod: Pod; readonly node: ClusterNode | undefined },
): void {
  const [address] = endpoint.addresses
  if (address === undefined) return
  const ofPod = pod.meta.assumed.map((field) => podFields.find(([start]) => field.startsWith(start))?.[1] ?? '')
  const isZoneGuessed = node?.meta.assumed.some((field) => field === '*' || field.startsWith('metadata.labels'))
  const paths = isZoneGuessed === true ? [...ofPod, 'zone'] : ofPod
  if (paths.length > 0) assumptions.set(address, paths)
}

/** `endpoints[*].addresses` stands for all endpoints of the slice, `endpoints[3].zone` for one. */
export function assumedOf(
  service: Service,
  endpoints: readonly Endpoint[],
  assumptions: Assumptions,
): readonly string[] {
  const found = new Map<string, number[]>()
  if (assumptions.size > 0) {
    for (const [at, endpoint] of endpoints.entries()) {
      for (const path of new Set(assumptions.get(endpoint.addresses[0] ?? ''))) {
        const places = found.get(path)
        if (places === undefined) found.set(path, [at])
        else places.push(at)
      }
    }
  }
  const ofEndpoints = [...found].flatMap(([path, places]) => {
    const rest = path === '' ? '' : `.${path}`
    return places.length === endpoints.length ? [`endpoints[*]${rest}`] : places.map((at) => `endpoints[${at}]${rest}`)
  })
  return [...ofService(service), ...ofEndpoints]
}

function ofService({ meta }: Service): readonly string[] {
  if (meta.assumed.length === 0) return []
  if (meta.assumed.includes('*')) return ['*']
  return meta.assumed.some((field) => serviceFields.includes(field)) ? ['addressType'] : []
}
