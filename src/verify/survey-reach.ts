/** From where a chain is entered: with every destination, with the node's own, with some, or with one that is shown already. */

/** From the narrowest to the widest. `shown`: only by rules that stand in the survey themselves. */
export type Reach = 'shown' | 'some' | 'local' | 'any'

const widths: Readonly<Record<Reach, number>> = { shown: 0, some: 1, local: 2, any: 3 }

/** `reach` says what the jump itself asks of the destination. */
export type Jump = { readonly target: string; readonly reach: Reach }

export type ReachInput = {
  /** The chains the kernel calls, with what it calls them for. */
  readonly roots: ReadonlyMap<string, Reach>
  readonly jumpsOf: (chain: string) => readonly Jump[]
}

/** Chains that nothing enters are left out. Each is walked again only when it turns out to be wider. */
export function reachOf({ roots, jumpsOf }: ReachInput): ReadonlyMap<string, Reach> {
  const found = new Map<string, Reach>()
  const open = [...roots].map(([target, reach]): Jump => ({ target, reach }))
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const known = found.get(next.target)
    if (known !== undefined && widths[known] >= widths[next.reach]) continue
    found.set(next.target, next.reach)
    for (const jump of jumpsOf(next.target)) open.push({ target: jump.target, reach: narrower(next.reach, jump.reach) })
  }
  return found
}

function narrower(a: Reach, b: Reach): Reach {
  return widths[a] < widths[b] ? a : b
}
