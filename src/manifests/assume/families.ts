/** Which address families a cluster uses, as far as its objects tell. */
import { type Family, familyOf } from '#base/ip'
import type { Draft } from '#manifests/draft'
import type { Service } from '#model/service'

/** The family of a Service that asks for none comes first. IPv4 alone when nothing tells. */
export function clusterFamilies(draft: Draft): readonly Family[] {
  const seen = new Set<Family>()
  const kubernetes = draft.services.get('default/kubernetes')
  for (const family of kubernetes === undefined ? [] : familiesOfService(kubernetes)) seen.add(family)
  const isTold = seen.size > 0
  addFamilies(draft, seen)
  if (seen.size === 0) addNodeAddresses(draft, seen)
  if (seen.size === 0) return ['ipv4']
  return isTold || !seen.has('ipv4') ? [...seen] : ['ipv4', ...[...seen].filter((family) => family !== 'ipv4')]
}

export function otherFamily(family: Family): Family {
  return family === 'ipv4' ? 'ipv6' : 'ipv4'
}

function addFamilies(draft: Draft, seen: Set<Family>): void {
  for (const { service, familyPolicy } of draft.openServices.values()) {
    for (const family of familiesOfService(service)) seen.add(family)
    if (familyPolicy === 'RequireDualStack' && !isFree(service)) {
      seen.add('ipv4')
      seen.add('ipv6')
    }
  }
  for (const node of draft.nodes.values()) for (const range of node.podCIDRs) seen.add(familyOf(range))
  for (const pod of draft.pods.values()) {
    if (!pod.hostNetwork) for (const ip of pod.podIPs) seen.add(familyOf(ip))
  }
}

function familiesOfService(service: Service): readonly Family[] {
  return isFree(service) ? [] : service.ipFamilies
}

/** A headless Service without a selector may ask for families that the cluster does not have. */
function isFree(service: Service): boolean {
  return service.clusterIPs[0] === 'None' && service.selector === undefined
}

/** Nodes often hold addresses that pods do not use, so they count only when nothing else tells. */
function addNodeAddresses(draft: Draft, seen: Set<Family>): void {
  for (const node of draft.nodes.values()) {
    const internal = node.addresses.find(({ type }) => type === 'InternalIP')
    if (internal !== undefined) seen.add(familyOf(internal.address))
  }
}
