/** Seeded choices: the same seed makes the same case on every machine. */
import { randomFrom } from '#trace/draw-connections'

export type Random = {
  /** 0 to `count` - 1. */
  readonly below: (count: number) => number
  /** Both ends included. */
  readonly between: (from: number, to: number) => number
  readonly chance: (share: number) => boolean
  readonly pick: <T>(list: readonly [T, ...T[]]) => T
  readonly pickFrom: <T>(list: readonly T[]) => T | undefined
  /** Up to `most` different entries, in the order of the list. */
  readonly some: <T>(list: readonly T[], most: number) => T[]
}

export function randomOf(seed: number): Random {
  const next = randomFrom(seed)
  const below = (count: number): number => Math.floor(next() * count)
  const pickFrom = <T>(list: readonly T[]): T | undefined => list[below(list.length)]
  return {
    below,
    between: (from, to) => from + below(to - from + 1),
    chance: (share) => next() < share,
    pick: (list) => pickFrom(list) ?? list[0],
    pickFrom,
    some: (list, most) => {
      const places = new Set(Array.from({ length: below(most + 1) }, () => below(list.length)))
      return list.filter((_, place) => places.has(place))
    },
  }
}

const usualSeed = 20261130

/** Case n of a run has seed + n, so that PORTOLAN_SEED set to a case's own seed makes that case the first. */
export function seedOfRun(): number {
  const given = process.env.PORTOLAN_SEED
  if (given === undefined) return usualSeed
  if (!/^\d{1,15}$/.test(given)) throw new Error(`PORTOLAN_SEED is "${given}", which is not a number`)
  return Number(given)
}
