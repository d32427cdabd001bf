/** Peers of denied flows, however long their names. */
import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import type { JudgedFlows } from '#store/audit-store'
import { describeStores } from './describe-stores'
import { egress, ingest, noon, putPod } from './story'

const policy = { kind: 'NetworkPolicy', namespace: 'n'.repeat(253), name: 'p'.repeat(253) }
/** Nothing that a database could compress: namespace, kind and name of 1024 bytes each. */
const longPeer = [512, 512, 512].map((bytes) => randomBytes(bytes).toString('hex')).join('/')

describeStores('offenders', (opened) => {
  test('a peer with names as long as reports may bring is counted, and told apart from its neighbour', async () => {
    const { store } = opened()
    await store.audit.put([{ ...policy, uid: 'uid-1', semantics: 'k8s', manifest: {} }], { isWhole: true, now: noon })
    await putPod(store, 'shop/db', '10.0.0.9')
    for (const second of [1, 2]) {
      await ingest(store, [{ ...egress('10.0.0.9', noon + second * 1_000_000), protocol: `T${second}` }])
      await store.passes.audit(noon + 10_000_000, {
        windowSeconds: 0,
        prepare: async () => () => judgedOf(longPeer, second),
      })
    }
    const { policies } = await store.audit.summary()
    expect(policies[0]?.offenders).toEqual([
      { peer: longPeer, flows: 3, lastSeen: noon + 2 },
      { peer: `${longPeer}2`, flows: 2, lastSeen: noon + 2 },
      { peer: `${longPeer}1`, flows: 1, lastSeen: noon + 1 },
    ])
    await store.audit.remove([policy])
    expect((await store.audit.summary()).policies).toEqual([])
  })
})

function judgedOf(peer: string, flows: number): JudgedFlows {
  const lastSeen = noon + flows
  return {
    verdicts: [],
    sets: [],
    policies: [{ ...policy, evaluated: flows, allowed: 0, wouldDeny: flows }],
    offenders: [
      { ...policy, peer, flows, lastSeen },
      { ...policy, peer: `${peer}${flows}`, flows, lastSeen },
    ],
  }
}
