/** Flows added up for policies: fewer rows where there may be, and the same policies. */
import { expect, test } from 'vitest'
import { emptyDirectory } from '#flows/directory'
import { everyFlow, type FlowFilter } from '#flows/filter'
import type { StoredFlow } from '#flows/flow'
import { gatherFlows, startGathering } from '#generate/gather-flows'
import { generatePolicies } from '#generate/generate-policies'
import type { Store } from '#store/store'
import { describePostgres, describeStores } from './describe-stores'
import { egress, ingest, noon, putPod, second } from './story'

const web = { labels: { app: 'web' }, workload: { kind: 'Deployment', name: 'web' } }
const db = { labels: { app: 'db' }, workload: { kind: 'StatefulSet', name: 'db' } }

async function postStory(store: Store): Promise<void> {
  await putPod(store, 'shop/web-1', '10.0.0.1', { uid: 'web-1', ...web })
  await putPod(store, 'shop/web-2', '10.0.0.2', { uid: 'web-2', ...web })
  await putPod(store, 'shop/db-0', '10.0.0.9', { uid: 'db-0', ...db })
  await putPod(store, 'shop/bare', '10.0.0.7', { uid: 'bare', labels: {} })
  await putPod(store, 'infra/exporter-1', '10.9.0.1', { uid: 'exporter-1', isHostNetwork: true, ...web })
  const from = (name: string, address: string, peer: string, more: object = {}) =>
    egress(peer, noon, { pod: { namespace: 'shop', name, address }, ...more })
  const toWeb = (peer: string, time: number) =>
    egress(peer, time, {
      pod: { namespace: 'shop', name: 'db-0', address: '10.0.0.9' },
      direction: 'INGRESS',
      ownPort: 5432,
      peerPort: 40_000,
    })
  await ingest(store, [
    from('web-1', '10.0.0.1', '10.0.0.9', { hits: 3 }),
    from('web-2', '10.0.0.2', '10.0.0.9', { hits: 4, time: noon + second }),
    from('web-2', '10.0.0.2', '10.0.0.9', { decision: 'DROP' }),
    from('web-1', '10.0.0.1', '10.0.0.2', { peerPort: 80 }),
    from('web-2', '10.0.0.2', '10.0.0.1', { peerPort: 80 }),
    from('web-1', '10.0.0.1', '10.0.0.1', { peerPort: 80 }),
    from('web-1', '10.0.0.1', '203.0.113.1'),
    from('web-2', '10.0.0.2', '203.0.113.1'),
    from('web-2', '10.0.0.2', '203.0.113.2'),
    from('bare', '10.0.0.7', '10.0.0.9'),
    from('web-1', '10.0.0.1', '10.0.0.7'),
    from('web-2', '10.0.0.2', '10.0.0.7'),
    from('web-1', '10.0.0.1', '10.9.0.1'),
    egress('10.0.0.9', noon, { pod: { namespace: 'infra', name: 'exporter-1', address: '10.9.0.1' } }),
    toWeb('10.0.0.1', noon),
    toWeb('10.0.0.2', noon + 2 * second),
  ])
}

async function rowsOf(pages: AsyncIterable<readonly StoredFlow[]>): Promise<readonly StoredFlow[]> {
  const rows: StoredFlow[] = []
  for await (const page of pages) rows.push(...page)
  return rows
}

function policiesOf(rows: readonly StoredFlow[]): readonly string[] {
  const gathering = gatherFlows(startGathering(emptyDirectory), rows)
  return generatePolicies(gathering, { kind: 'networkpolicy', choice: {} }).policies.map(({ text }) => text)
}

const hitsOf = (rows: readonly StoredFlow[]): number => rows.reduce((sum, { hits }) => sum + hits, 0)

describeStores('connections', (opened) => {
  test.each<[string, FlowFilter]>([
    ['all', everyFlow],
    [
      'of one namespace and a time',
      { since: noon, terms: [{ anyOf: [{ field: 'namespace', side: 'either', namespace: 'shop' }] }] },
    ],
  ])('%s come to the same policies as the rows, and lose no sighting', async (_title, filter) => {
    const { store, engine } = opened()
    await postStory(store)
    const rows = await rowsOf(store.streamFlows(filter))
    const connections = await rowsOf(store.streamConnections(filter))
    expect(policiesOf(connections)).toEqual(policiesOf(rows))
    expect(policiesOf(connections).length).toBeGreaterThan(2)
    expect(hitsOf(connections)).toBe(hitsOf(rows))
    expect(connections).toHaveLength(engine.kind === 'embedded' ? 16 : 11)
  })
})

describePostgres('connections that are added up', (opened) => {
  test('a connection has the first and last times of its rows', async () => {
    const { store } = opened()
    await postStory(store)
    const connections = await rowsOf(store.streamConnections(everyFlow))
    const toDb = connections.find(({ decision, hits }) => decision === 'ALLOW' && hits === 7)
    expect(toDb).toMatchObject({ firstSeen: noon, lastSeen: noon + second, peer: { name: 'db-0' } })
  })
})
