/** Hits of an edge by hour, added up fold by fold, against a plain sum over what was sent. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Store } from '#store/store'
import { describeStores } from './describe-stores'
import { egress, ingest, noon, second } from './story'

const seed = Number(process.env.PORTOLAN_SEED ?? 4)
const hour = 3_600 * second

type Sighting = { readonly hour: number; readonly port: number; readonly hits: number }

/** Two days, so that edges of both have an hour of one number, and few ports, so that most edges are met again. */
const batch = fc.array(
  fc.record({
    hour: fc.integer({ min: -20, max: 19 }),
    port: fc.integer({ min: 1, max: 4 }),
    hits: fc.integer({ min: 1, max: 5 }),
  }),
  { minLength: 1, maxLength: 8 },
)

describeStores('edges by hour', (opened) => {
  test('every stretch of hours has the hits that were seen in it, however often they were added up', async () => {
    const { store } = opened()
    const sent: Sighting[] = []
    for (const [index, some] of fc.sample(batch, { numRuns: 12, seed }).entries()) {
      await ingest(
        store,
        some.map(({ hour: at, port, hits }) => egress('8.8.8.8', noon + at * hour, { hits, peerPort: port })),
      )
      sent.push(...some)
      if (index % 3 === 0) continue
      await store.passes.foldEdges(noon)
      if (index % 4 === 1) await expectSums(store, sent)
    }
    await store.passes.foldEdges(noon)
    await expectSums(store, sent)
  })
})

async function expectSums(store: Store, sent: readonly Sighting[]): Promise<void> {
  for (let from = -20; from < 20; from++) {
    for (const until of [from + 1, from + 7, from + 30]) {
      const { rows } = await store.edges({ since: noon + from * hour, until: noon + until * hour }, { limit: 10 })
      const expected = new Map<number, number>()
      for (const one of sent) {
        if (one.hour >= from && one.hour < until) expected.set(one.port, (expected.get(one.port) ?? 0) + one.hits)
      }
      const told = new Map(rows.map(({ port, hits }) => [port, hits]))
      expect(told, `seed ${seed}: hours ${from} to ${until}`).toEqual(expected)
    }
  }
}
