/** Choosing ClusterIPs: the range of the cluster's Services, and a free address in it that depends on the name alone. */
import { compareIp, type Family, type Ip, parseIp } from '#base/ip'
import { containsIp, type Prefix, prefixOf } from '#base/prefix'
import type { Draft } from '#manifests/draft'
import { hashText } from '#manifests/hash-text'
import { addressIn, knownPrefix, sizeOf } from './range'

/** kubeadm's range, and the IPv6 range that Kubernetes' own examples use. */
const defaultRanges: Readonly<Record<Family, Prefix>> = {
  ipv4: knownPrefix('10.96.0.0/12'),
  ipv6: knownPrefix('fd00:10:96::/112'),
}

/** Addresses that every cluster gives alike. */
const customary: Readonly<Record<string, number>> = { 'default/kubernetes': 1, 'kube-system/kube-dns': 10 }

/** The given range, else the default one unless existing ClusterIPs lie outside it: then the range around them. */
export function serviceRange(draft: Draft, family: Family, given: readonly Prefix[]): Prefix {
  const told = given.find((range) => range.ip.family === family)
  if (told !== undefined) return told
  const lowest = lowestClusterIp(draft, family)
  if (lowest === undefined || containsIp(defaultRanges[family], lowest)) return defaultRanges[family]
  return prefixOf(lowest, family === 'ipv4' ? 16 : 112)
}

function lowestClusterIp(draft: Draft, family: Family): Ip | undefined {
  let lowest: Ip | undefined
  for (const service of draft.services.values()) {
    for (const text of service.clusterIPs) {
      const ip = parseIp(text)
      if (ip?.family === family && (lowest === undefined || compareIp(ip, lowest) < 0)) lowest = ip
    }
  }
  return lowest
}

/**
 * Like the API server, keeps to the upper part of a range, as people choose from the lower one by hand. The place is a
 * hash of the name, so that it stays when other Services come and go.
 */
export function chooseAddress(key: string, range: Prefix, taken: ReadonlyMap<string, string>): string | undefined {
  const size = sizeOf(range)
  const custom = customary[key]
  if (custom !== undefined && custom < size - 1 && !taken.has(addressIn(range, custom))) return addressIn(range, custom)
  const low = size <= 16 ? 1 : Math.min(Math.max(16, Math.floor(size / 16)), 256)
  const last = size - 2
  const first = low + (hashText(key) % Math.max(1, last - low + 1))
  for (let step = 0; step < last; step++) {
    // Past the end it goes on at the lowest address, as the API server does when the upper part is full.
    const offset = ((first - 1 + step) % last) + 1
    const address = addressIn(range, offset)
    if (!taken.has(address)) return address
  }
  return undefined
}
