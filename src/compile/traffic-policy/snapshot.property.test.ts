/** What is printed reads back, and what was tampered with does not. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { randomOf } from '../../../test/random/random'
import { randomEntry } from '../../../test/random/random-entry'
import type { Action, Direction } from './entry'
import { parseSnapshot } from './parse-snapshot'
import { printSnapshot } from './print-snapshot'
import type { Snapshot } from './snapshot'
import { entriesOffset, entryLayout } from './snapshot-layout'

function randomSnapshot(seed: number): Snapshot {
  const random = randomOf(seed)
  const ruleCount = random.between(1, 64)
  return {
    token: BigInt(random.between(1, 2 ** 31)) << 20n,
    direction: random.pick<Direction>(['ingress', 'egress']),
    policyUid: `00000000-0000-4000-8000-${String(seed).padStart(12, '0')}`,
    generation: random.between(1, 1000),
    binding: random.between(1, 2 ** 31),
    publication: random.between(1, 2 ** 31),
    stateful: random.chance(0.5),
    rules: Array.from({ length: ruleCount }, (_, index) => ({
      nameHash: BigInt(random.between(0, 2 ** 31)),
      action: random.pick<Action>(['allow', 'deny']),
      counterRow: index * 3,
    })),
    entries: Array.from({ length: random.between(0, 256) }, () =>
      randomEntry(random, { rule: random.between(0, ruleCount - 1) }),
    ),
  }
}

test('a snapshot reads back as it was printed', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2 ** 31 }), (seed) => {
      const snapshot = randomSnapshot(seed)
      expect(parseSnapshot(printSnapshot(snapshot))).toEqual(snapshot)
    }),
    { numRuns: 60, seed: 8 },
  )
})

test('bytes that another hand changed are refused', () => {
  const bytes = printSnapshot({ ...randomSnapshot(5), entries: [{ action: 'allow', rule: 0, protocol: 'tcp' }] })
  expect(parseSnapshot(bytes)?.entries).toHaveLength(1)
  for (const at of [
    entriesOffset + entryLayout.forbidden,
    entriesOffset + entryLayout.sourceMask + 3,
    bytes.length - 1,
  ]) {
    const changed = Uint8Array.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 0x10
    expect(parseSnapshot(changed)).toBeUndefined()
  }
  expect(parseSnapshot(bytes.subarray(1))).toBeUndefined()
})
