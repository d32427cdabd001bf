/** How two matrices differ: connections added, removed and changed; ranges of addresses are compared address by address. */
import type { Family } from '#base/ip'
import { compareText } from '#base/text'
import { rangeName } from './build-matrix'
import type { Matrix, MatrixEnd, MatrixRow, OutsideEnd } from './matrix'

/** `before` is absent for an added connection, `after` for a removed one. */
export type MatrixChange = {
  readonly change: 'added' | 'removed' | 'changed'
  readonly src: string
  readonly dst: string
  readonly before?: string
  readonly after?: string
}

/** Sorted by source and target, ranges in their own order. */
export function diffMatrices(before: Matrix, after: Matrix): readonly MatrixChange[] {
  const [old, now] = [index(before.rows), index(after.rows)]
  const pairs = [...new Set([...old.pairs.keys(), ...now.pairs.keys()])].sort(compareText)
  const plain = pairs.flatMap((key) => {
    const [src = '', dst = ''] = key.split('\n')
    return changeOf({ src, dst }, old.pairs.get(key), now.pairs.get(key))
  })
  const lanes = [...new Set([...old.lanes.keys(), ...now.lanes.keys()])].sort(compareText)
  const ranges = lanes.flatMap((key) => diffRanges(key, old.lanes.get(key) ?? [], now.lanes.get(key) ?? []))
  return [...ranges, ...plain].sort(compareChanges)
}

/** Ranges stay in the order of their addresses. */
function compareChanges(a: MatrixChange, b: MatrixChange): number {
  const isOutside = (name: string): boolean => name.endsWith('[External]')
  const [fromA, fromB] = [isOutside(a.src), isOutside(b.src)]
  if (fromA !== fromB) return fromA ? -1 : 1
  if (fromA) return compareText(a.dst, b.dst)
  if (a.src !== b.src) return compareText(a.src, b.src)
  const [toA, toB] = [isOutside(a.dst), isOutside(b.dst)]
  if (toA !== toB) return toA ? -1 : 1
  return toA ? 0 : compareText(a.dst, b.dst)
}

type Index = {
  /** By `source\ntarget`. */
  readonly pairs: ReadonlyMap<string, string>
  /** Rows with addresses outside, by `family\ndirection\nworkload`. */
  readonly lanes: ReadonlyMap<string, readonly Stretch[]>
}

type Stretch = { readonly from: bigint; readonly to: bigint; readonly conn: string }

function index(rows: readonly MatrixRow[]): Index {
  const pairs = new Map<string, string>()
  const lanes = new Map<string, Stretch[]>()
  for (const { src, dst, conn } of rows) {
    const lane = laneOf(src, dst)
    if (lane === undefined) pairs.set(`${src.name}\n${dst.name}`, conn)
    else {
      const { from, to } = lane.end
      const known = lanes.get(lane.key)
      if (known === undefined) lanes.set(lane.key, [{ from, to, conn }])
      else known.push({ from, to, conn })
    }
  }
  return { pairs, lanes }
}

function laneOf(src: MatrixEnd, dst: MatrixEnd): { readonly key: string; readonly end: OutsideEnd } | undefined {
  if (src.kind === 'outside') return { key: `${src.family}\nfrom\n${dst.name}`, end: src }
  return dst.kind === 'outside' ? { key: `${dst.family}\nto\n${src.name}`, end: dst } : undefined
}

type Ends = { readonly src: string; readonly dst: string }

function changeOf({ src, dst }: Ends, before: string | undefined, after: string | undefined): readonly MatrixChange[] {
  if (before === after) return []
  if (before === undefined && after !== undefined) return [{ change: 'added', src, dst, after }]
  if (before !== undefined && after === undefined) return [{ change: 'removed', src, dst, before }]
  return before === undefined || after === undefined ? [] : [{ change: 'changed', src, dst, before, after }]
}

/** Each matrix has ranges as large as they can be, and so cut at other places than the other's. */
function diffRanges(key: string, old: readonly Stretch[], now: readonly Stretch[]): readonly MatrixChange[] {
  const [family, direction, workload = ''] = key.split('\n')
  const starts = [...new Set([...old, ...now].flatMap(({ from, to }) => [from, to + 1n]))]
  const cuts = starts.sort((a, b) => (a < b ? -1 : 1))
  const changes: MatrixChange[] = []
  let open:
    | { readonly from: bigint; readonly before: string | undefined; readonly after: string | undefined }
    | undefined
  const close = (to: bigint): void => {
    if (open === undefined) return
    const outside = rangeName(family as Family, open.from, to)
    const ends = direction === 'from' ? { src: outside, dst: workload } : { src: workload, dst: outside }
    changes.push(...changeOf(ends, open.before, open.after))
  }
  const [connBefore, connAfter] = [follow(old), follow(now)]
  for (const at of cuts) {
    const [before, after] = [connBefore(at), connAfter(at)]
    if (open !== undefined && open.before === before && open.after === after) continue
    close(at - 1n)
    open = { from: at, before, after }
  }
  return changes
}

/** For addresses asked in ascending order. */
function follow(stretches: readonly Stretch[]): (at: bigint) => string | undefined {
  let place = 0
  return (at) => {
    while ((stretches[place]?.to ?? at) < at) place++
    const stretch = stretches[place]
    return stretch !== undefined && stretch.from <= at ? stretch.conn : undefined
  }
}
