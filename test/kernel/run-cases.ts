/** Runs random cases until enough packets are sent; the first that fails is made smaller and told. */
import { expect } from 'vitest'
import { seedOfRun } from '../random/random'

/** What is not as computed, and how: read side by side. */
export type Trouble = { readonly what: string; readonly shown: string }

export type RandomCases<Sketch> = {
  readonly make: (seed: number) => Sketch
  /** Undefined: all is as computed. */
  readonly check: (sketch: Sketch) => Trouble | undefined
  /** How many packets have been sent in all. */
  readonly sent: () => number
  readonly smaller: (sketch: Sketch) => readonly Sketch[]
  readonly print: (sketch: Sketch) => string
}

/** Making a case smaller takes no longer than this. */
const shrinkMilliseconds = 60_000

export function runCases<Sketch>(cases: RandomCases<Sketch>, packetCount: number): { readonly count: number } {
  const seed = seedOfRun()
  let count = 0
  for (; cases.sent() < packetCount; count++) {
    const sketch = cases.make(seed + count)
    const trouble = cases.check(sketch)
    if (trouble !== undefined) {
      const smallest = shrink(cases, { sketch, trouble }, Date.now() + shrinkMilliseconds)
      const head = `${smallest.trouble.what}; PORTOLAN_SEED=${seed + count} begins with this case, here made smaller:`
      expect.fail([head, cases.print(smallest.sketch), smallest.trouble.shown].join('\n'))
    }
  }
  console.log(`${cases.sent()} packets in ${count} cases from seed ${seed}`)
  return { count }
}

type Found<Sketch> = { readonly sketch: Sketch; readonly trouble: Trouble }

/** Only what fails in the same way is a smaller case of it. */
function shrink<Sketch>(cases: RandomCases<Sketch>, found: Found<Sketch>, end: number): Found<Sketch> {
  for (const sketch of cases.smaller(found.sketch)) {
    if (Date.now() > end) return found
    const trouble = cases.check(sketch)
    if (trouble?.what === found.trouble.what) return shrink(cases, { sketch, trouble }, end)
  }
  return found
}
