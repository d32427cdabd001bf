/** The address range of each node's pods: its own, else the one its pods show, else the next free block of the pool. */
import { type Family, familyOf } from '#base/ip'
import { bitsOf, overlaps, type Prefix, printPrefix } from '#base/prefix'
import { assume, type Draft } from '#manifests/draft'
import type { Writable } from '#manifests/kinds/writable'
import type { ClusterNode } from '#model/node'
import { blockIn, knownPrefix, rangeAround } from './range'

const blockLengths: Readonly<Record<Family, number>> = { ipv4: 24, ipv6: 64 }

/** The ranges that most guides give, wide enough for a thousand nodes; the first block is left to the control plane. */
const defaultPools: Readonly<Record<Family, Prefix>> = {
  ipv4: knownPrefix('10.244.0.0/14'),
  ipv6: knownPrefix('fd00:10:244::/48'),
}

export type PodRanges = {
  /** Blocks in which pods of one node alone were seen, by node and family; and every block seen. */
  readonly shown: ReadonlyMap<string, Prefix>
  readonly seen: ReadonlySet<string>
  readonly owned: Prefix[]
  readonly pools: Readonly<Record<Family, Prefix>>
  /** How long a prefix the block of one node is. */
  readonly lengths: Readonly<Record<Family, number>>
  readonly next: Record<Family, number>
}

export function gatherPodRanges(draft: Draft, podCidrs: readonly Prefix[]): PodRanges {
  const given = (family: Family): Prefix | undefined => podCidrs.find((range) => range.ip.family === family)
  const pools = { ipv4: given('ipv4') ?? defaultPools.ipv4, ipv6: given('ipv6') ?? defaultPools.ipv6 }
  const owned = [...draft.nodes.values()].flatMap((node) => node.podCIDRs.map(knownPrefix))
  const first = (family: Family): number => (given(family) === undefined ? 1 : 0)
  // A small pool is shared out, so that each node has a block.
  const shareBits = Math.ceil(Math.log2(Math.max(1, draft.nodes.size)))
  const length = (family: Family): number =>
    Math.min(bitsOf(family), Math.max(blockLengths[family], pools[family].length + shareBits))
  return {
    ...gatherShown(draft),
    owned,
    pools,
    lengths: { ipv4: length('ipv4'), ipv6: length('ipv6') },
    next: { ipv4: first('ipv4'), ipv6: first('ipv6') },
  }
}

/** The node's range of a family, assumed when it has none; undefined when the pool is used up. */
export function rangeOfNode(node: Writable<ClusterNode>, family: Family, ranges: PodRanges): Prefix | undefined {
  const own = node.podCIDRs.find((range) => familyOf(range) === family)
  if (own !== undefined) return knownPrefix(own)
  const range = ranges.shown.get(`${node.meta.name} ${family}`) ?? takeBlock(ranges, family)
  if (range === undefined) return undefined
  node.podCIDRs = [...node.podCIDRs, printPrefix(range)]
  assume(node, 'spec.podCIDRs')
  return range
}

/** The next block of the pool that no node holds and no pod was seen in. */
export function takeBlock(ranges: PodRanges, family: Family): Prefix | undefined {
  const pool = ranges.pools[family]
  for (;;) {
    const block = blockIn(pool, ranges.lengths[family], ranges.next[family]++)
    if (block === undefined) return undefined
    if (ranges.seen.has(printPrefix(block)) || ranges.owned.some((range) => overlaps(range, block))) continue
    return block
  }
}

function gatherShown(draft: Draft): Pick<PodRanges, 'shown' | 'seen'> {
  const nodes = new Map<string, string>()
  for (const pod of draft.pods.values()) {
    if (pod.hostNetwork) continue
    for (const ip of pod.podIPs) {
      const block = printPrefix(rangeAround(ip, blockLengths[familyOf(ip)]))
      const node = nodes.get(block)
      nodes.set(block, node === undefined || node === pod.nodeName ? (pod.nodeName ?? '') : '')
    }
  }
  const shown = new Map<string, Prefix>()
  for (const [block, node] of nodes) {
    const key = `${node} ${familyOf(block)}`
    if (node !== '' && !shown.has(key)) shown.set(key, knownPrefix(block))
  }
  return { shown, seen: new Set(nodes.keys()) }
}
