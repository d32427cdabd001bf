/** Draws connections by their shares with a seeded generator, so that a run can be repeated. */
import type { Target } from '#model/trace'

/** mulberry32: small, well spread, and the same on every machine. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

/** Counts by address, in the order of `targets`; what no target takes is under `other`. */
export function drawConnections(
  targets: readonly Target[],
  other: string,
  draw: { readonly count: number; readonly seed: number },
): Readonly<Record<string, number>> {
  const random = randomFrom(draw.seed)
  const bounds: { readonly name: string; readonly upTo: number }[] = []
  let sum = 0
  for (const target of targets) {
    sum += target.share
    bounds.push({ name: target.address, upTo: sum })
  }
  const isWhole = sum > 1 - 1e-3
  const counts: Record<string, number> = Object.fromEntries(targets.map((target) => [target.address, 0]))
  for (let index = 0; index < draw.count; index++) {
    const value = random() * (isWhole ? sum : 1)
    const name = bounds.find((bound) => value < bound.upTo)?.name ?? (isWhole ? (bounds.at(-1)?.name ?? other) : other)
    counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}
