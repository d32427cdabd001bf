/** The addresses outside the cluster, in ranges that no policy tells apart. */
import { type Family, type Ip, ipFromBigint, ipToBigint, printIp } from '#base/ip'
import { type Prefix, printPrefix } from '#base/prefix'
import type { Cluster } from '#model/cluster'
import { type AddressAtom, cutAddresses } from '#trace/policy/address-atoms'
import { policiesFor } from '#trace/policy/lane'
import type { PartyClass } from '#trace/policy/party'
import type { PolicyWorld } from '#trace/policy/world'

/** First and last address, and one between that no pod and no node holds, where there is such a one. */
export type OutsideRange = {
  readonly family: Family
  readonly from: bigint
  readonly to: bigint
  readonly example: Ip
}

/** Sorted, without gaps. */
export type OutsideRanges = {
  /** Cut by every policy. */
  readonly all: (family: Family) => readonly OutsideRange[]
  /** Cut by the policies of one party alone: those of all others do not matter for it, and are many. */
  readonly seenBy: (party: PartyClass, family: Family) => readonly OutsideRange[]
}

export function outsideRanges(world: PolicyWorld): OutsideRanges {
  const held = heldAddresses(world.cluster)
  const known = new Map<string, readonly OutsideRange[]>()
  const cut = (prefixes: readonly Prefix[], family: Family): readonly OutsideRange[] => {
    const key = `${family} ${prefixes.map(printPrefix).join()}`
    const ranges = known.get(key) ?? cutAddresses(prefixes, family).atoms.map((atom) => rangeOf(atom, { family, held }))
    known.set(key, ranges)
    return ranges
  }
  return {
    all: (family) => world.atoms[family].atoms.map((atom) => rangeOf(atom, { family, held })),
    seenBy: (party, family) => {
      const own = (['ingress', 'egress'] as const).flatMap((direction) => policiesFor(world, direction, party).policies)
      return cut(world.semantics.rangesOf(own), family)
    },
  }
}

type Setting = { readonly family: Family; readonly held: ReadonlySet<string> }

function rangeOf(atom: AddressAtom, { family, held }: Setting): OutsideRange {
  const [from, to] = [ipToBigint(atom.from), ipToBigint(atom.to)]
  for (let at = from; at <= to; at++) {
    const example = ipFromBigint(family, at)
    if (!held.has(printIp(example))) return { family, from, to, example }
  }
  return { family, from, to, example: atom.from }
}

function heldAddresses({ pods, nodes }: Cluster): ReadonlySet<string> {
  const held = new Set<string>()
  for (const { podIPs } of pods.values()) for (const ip of podIPs) held.add(ip)
  for (const { addresses } of nodes.values()) for (const { address } of addresses) held.add(address)
  return held
}
