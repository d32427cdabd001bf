/** The addresses outside the cluster, in ranges that no policy tells apart. */
import { type Family, type Ip, ipFromBigint, ipToBigint, printIp } from '#base/ip'
import type { Cluster } from '#model/cluster'
import type { PolicyWorld } from '#trace/policy/world'

/** First and last address, and one between that no pod and no node holds, where there is such a one. */
export type OutsideRange = {
  readonly family: Family
  readonly from: bigint
  readonly to: bigint
  readonly example: Ip
}

/** Sorted, without gaps. */
export function outsideRanges({ cluster, atoms }: PolicyWorld, family: Family): readonly OutsideRange[] {
  const held = heldAddresses(cluster)
  return atoms[family].atoms.map((atom) => {
    const [from, to] = [ipToBigint(atom.from), ipToBigint(atom.to)]
    return { family, from, to, example: exampleOf({ family, from, to }, held) }
  })
}

type Bounds = { readonly family: Family; readonly from: bigint; readonly to: bigint }

function exampleOf({ family, from, to }: Bounds, held: ReadonlySet<string>): Ip {
  for (let at = from; at <= to; at++) {
    const ip = ipFromBigint(family, at)
    if (!held.has(printIp(ip))) return ip
  }
  return ipFromBigint(family, from)
}

function heldAddresses({ pods, nodes }: Cluster): ReadonlySet<string> {
  const held = new Set<string>()
  for (const { podIPs } of pods.values()) for (const ip of podIPs) held.add(ip)
  for (const { addresses } of nodes.values()) for (const { address } of addresses) held.add(address)
  return held
}
