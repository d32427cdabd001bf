import { expect, test } from 'vitest'
import { emptyDirectory, indexDirectory, type KnownPod } from './directory'
import { identifyPeer } from './identify-peer'
import { type Ends, newEnds, ownEndOf, peerEndOf } from './intern-ends'
import type { ObservedFlow, ObservedPeer } from './observed-flow'

const day = 86_400_000_000

const peer: ObservedPeer = {
  kind: 'pod',
  namespace: 'shop',
  name: 'web-0',
  uid: null,
  workload: { kind: 'StatefulSet', name: 'web' },
  labels: { app: 'web' },
}

function flow(words: Partial<ObservedFlow> = {}): ObservedFlow {
  return {
    firstSeen: 5 * day,
    lastSeen: 5 * day,
    hits: 1,
    direction: 'INGRESS',
    protocol: 'TCP',
    ownPort: 3306,
    peerAddress: '10.244.1.11',
    peerPort: 0,
    decision: 'ALLOW',
    outcome: { kind: 'resolved' },
    peer,
    pod: { namespace: 'shop', name: 'db-0', uid: null, address: '10.244.1.30', workload: null, labels: null },
    ...words,
  }
}

function incarnation(name: string, app: string, [from, until]: readonly [number, number | null]): KnownPod {
  return {
    namespace: 'shop',
    name,
    uid: `${app}-uid`,
    labels: { app },
    hasAllLabels: true,
    addresses: ['10.244.1.11'],
    isHostNetwork: false,
    nodeName: null,
    workload: null,
    startedAt: from * day,
    lastSeen: (until ?? 9) * day,
    isDead: until !== null,
    diedAt: until === null ? null : until * day,
    deathReason: until === null ? null : 'marked',
    ports: null,
  }
}

const nothing = indexDirectory(emptyDirectory)

test('a peer that was decided and is of a kind nobody knows is an address, and said to be unattributed', () => {
  expect(identifyPeer(nothing, flow({ peer: null }))).toEqual({ kind: 'unattributed', address: '10.244.1.11' })
})

test('a pod without a namespace has labels that select nobody', () => {
  const found = identifyPeer(nothing, flow({ peer: { ...peer, namespace: '' } }))
  expect(found).toEqual({ kind: 'unattributed', address: '10.244.1.11' })
})

const first = incarnation('web-0', 'old', [1, 6])
const second = incarnation('web-0', 'new', [7, null])

test.each([
  ['while the first had it', 5, { app: 'old' }],
  ['while the second had it', 8, { app: 'new' }],
  ['between them', 6.5, undefined],
])('of two pods with one name and no told uid the one of the moment counts: %s', (_, time, labels) => {
  for (const pods of [
    [first, second],
    [second, first],
  ]) {
    const index = indexDirectory({ ...emptyDirectory, pods })
    const asked = flow({ lastSeen: time * day, peer: { ...peer, labels: null } })
    const found = identifyPeer(index, asked)
    expect(found.kind === 'pod' ? found.labels : undefined).toEqual(labels)
    const own = flow({ lastSeen: time * day, pod: { ...asked.pod, name: 'web-0' } })
    expect(ownEndOf(newEnds(index), own).labels ?? undefined).toEqual(labels)
  }
})

test('of one pod with the name it is that one, whenever', () => {
  const index = indexDirectory({ ...emptyDirectory, pods: [second] })
  expect(identifyPeer(index, flow({ peer: { ...peer, labels: null } }))).toMatchObject({ labels: { app: 'new' } })
})

test('rows of one uid that tell a workload and rows that do not are two ends, in either order', () => {
  const told = flow({ pod: { ...flow().pod, uid: 'u', workload: { kind: 'StatefulSet', name: 'db' } } })
  const untold = flow({ pod: { ...flow().pod, uid: 'u' } })
  const workloadsOf = (ends: Ends, flows: readonly ObservedFlow[]) =>
    flows.map((one) => ownEndOf(ends, one).workload?.name)
  expect(workloadsOf(newEnds(nothing), [told, untold, told])).toEqual(['db', undefined, 'db'])
  expect(workloadsOf(newEnds(nothing), [untold, told])).toEqual([undefined, 'db'])
  const host = { ...told, pod: { ...told.pod, isHostNetwork: true } }
  const ends = newEnds(nothing)
  expect([told, host].map((one) => ownEndOf(ends, one).isHostNetwork)).toEqual([false, true])
})

test('peers of one uid and different workloads are two, and those of two moments are looked up for each', () => {
  const ends = newEnds(indexDirectory({ ...emptyDirectory, pods: [first, second] }))
  const kindOf = (one: ObservedFlow) => peerEndOf(ends, one).identity
  const web = flow({ peer: { ...peer, uid: 'u' } })
  const other = flow({ peer: { ...peer, uid: 'u', workload: null } })
  expect(kindOf(web)).toMatchObject({ workload: { name: 'web' } })
  expect(kindOf(other)).toMatchObject({ workload: null })
  const at = (time: number) => flow({ lastSeen: time * day, peer: { ...peer, labels: null } })
  expect([at(5), at(8)].map((one) => kindOf(one))).toMatchObject([
    { labels: { app: 'old' } },
    { labels: { app: 'new' } },
  ])
})
