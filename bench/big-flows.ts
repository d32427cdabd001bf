/** A million distinct flows of the pods of `big-policies.ts`: rows as a broker stores them, made chunk by chunk. */
import type { ObservedFlow } from '#flows/observed-flow'

const workloadCount = 300
const namespaceCount = 50
const chunkRows = 10_000

type Pod = ObservedFlow['pod'] & { readonly workload: { readonly kind: string; readonly name: string } }

const pods: readonly Pod[] = Array.from({ length: 3000 }, (_, at) => {
  const workload = at % workloadCount
  return {
    namespace: `space-${workload % namespaceCount}`,
    name: `app-${workload}-7c5d8f6b94-${at.toString(36).padStart(5, '0')}`,
    uid: `uid-${at}`,
    address: `10.${16 + (at >> 16)}.${(at >> 8) & 255}.${at & 255}`,
    workload: { kind: 'Deployment', name: `app-${workload}` },
    labels: {
      app: `app-${workload}`,
      tier: ['front', 'back', 'data'][workload % 3] ?? '',
      zone: `zone-${workload % 7}`,
    },
  }
})

/** Each row another pod, peer, port or direction; every row has labels of its own, as rows read from JSON have. */
export function* bigFlows(count: number): Generator<readonly ObservedFlow[]> {
  for (let start = 0; start < count; start += chunkRows) {
    yield Array.from({ length: Math.min(chunkRows, count - start) }, (_, offset) => flowAt(start + offset))
  }
}

/**
 * Every pod speaks to each pod of its workload's seventeen peers, on one port for each, seen at both ends; one of forty rows is
 * with an address outside instead.
 */
function flowAt(at: number): ObservedFlow {
  const own = pods[at % pods.length] as Pod
  const turn = Math.floor(at / pods.length)
  const isEgress = turn % 2 === 0
  const pair = Math.floor(turn / 2)
  const distance = 1 + (pair % 17)
  const replica = Math.floor(pair / 17) % 10
  const workload = at % workloadCount
  const other = (workload + (isEgress ? distance : workloadCount - distance)) % workloadCount
  const peer = pods[other + replica * workloadCount] as Pod
  const port = 8000 + ((isEgress ? other : workload) % 40)
  const isOutside = at % 40 === 39
  const time = Date.UTC(2026, 6, 23) * 1000 + at
  return {
    firstSeen: time,
    lastSeen: time + 1000,
    hits: 1 + (at % 5),
    pod: { ...own, labels: { ...own.labels } },
    direction: isEgress ? 'EGRESS' : 'INGRESS',
    protocol: 'TCP',
    ownPort: isEgress ? 0 : port,
    peerAddress: isOutside ? `203.0.113.${workload % 250}` : peer.address,
    peerPort: isEgress ? port : 0,
    decision: at % 50 === 0 ? 'DROP' : 'ALLOW',
    peer: isOutside
      ? null
      : {
          kind: 'pod',
          namespace: peer.namespace ?? '',
          name: peer.name,
          uid: peer.uid,
          workload: peer.workload,
          labels: { ...peer.labels },
        },
    outcome: { kind: isOutside ? 'never-held' : 'resolved' },
  }
}
