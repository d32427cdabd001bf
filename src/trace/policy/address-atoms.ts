/** Addresses cut by every range that policies name: two addresses in the same piece are in the same ranges. */
import { type Family, type Ip, ipFromBigint, ipToBigint } from '#base/ip'
import { bitsOf, type Prefix, printPrefix } from '#base/prefix'

export type AddressRange = { readonly from: Ip; readonly to: Ip }

/** `id` is that of the innermost range, which tells all the ranges around it; -1 outside of all. */
export type AddressAtom = AddressRange & { readonly id: number }

export type AddressAtoms = { readonly starts: readonly bigint[]; readonly atoms: readonly AddressAtom[] }

/** Ranges either hold one another or are apart, so that one walk over them in order cuts the whole space. */
export function cutAddresses(prefixes: readonly Prefix[], family: Family): AddressAtoms {
  const ranges = sortRanges(prefixes, family)
  const cuts: { readonly start: bigint; readonly id: number }[] = [{ start: 0n, id: -1 }]
  const open: { readonly end: bigint; readonly id: number }[] = []
  const close = (until: bigint): void => {
    for (let top = open.at(-1); top !== undefined && top.end < until; top = open.at(-1)) {
      open.pop()
      cuts.push({ start: top.end + 1n, id: open.at(-1)?.id ?? -1 })
    }
  }
  for (const [id, { start, end }] of ranges.entries()) {
    close(start)
    cuts.push({ start, id })
    open.push({ end, id })
  }
  const last = 2n ** BigInt(bitsOf(family)) - 1n
  close(last + 1n)
  return buildAtoms(cuts, { family, last })
}

type NumberRange = { readonly start: bigint; readonly end: bigint }

/** Outer ranges before those inside them, each once. */
function sortRanges(prefixes: readonly Prefix[], family: Family): readonly NumberRange[] {
  const own = new Map(prefixes.filter(({ ip }) => ip.family === family).map((prefix) => [printPrefix(prefix), prefix]))
  return [...own.values()]
    .map(({ ip, length }) => {
      const start = ipToBigint(ip)
      return { start, end: start + 2n ** BigInt(bitsOf(family) - length) - 1n }
    })
    .sort((a, b) => (a.start === b.start ? Number(b.end > a.end) - Number(b.end < a.end) : a.start < b.start ? -1 : 1))
}

/** Of cuts at one place the last counts, as it is the innermost range or what is left after it. */
function buildAtoms(
  cuts: readonly { readonly start: bigint; readonly id: number }[],
  { family, last }: { readonly family: Family; readonly last: bigint },
): AddressAtoms {
  const kept = cuts.filter(({ start }, at) => start <= last && cuts[at + 1]?.start !== start)
  const atoms = kept.map(({ start, id }, at) => ({
    id,
    from: ipFromBigint(family, start),
    to: ipFromBigint(family, (kept[at + 1]?.start ?? last + 1n) - 1n),
  }))
  return { starts: kept.map(({ start }) => start), atoms }
}

export function findAtom({ starts, atoms }: AddressAtoms, ip: Ip): AddressAtom | undefined {
  const value = ipToBigint(ip)
  let low = 0
  let high = starts.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if ((starts[middle] ?? 0n) <= value) low = middle
    else high = middle - 1
  }
  return atoms[low]
}
