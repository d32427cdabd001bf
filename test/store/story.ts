/** Shorthand of the store's stories: times as texts, pods, Services and flows with what is usual filled in. */
import { everyFlow } from '#flows/filter'
import type { IncomingFlow, StoredFlow } from '#flows/flow'
import { type Instant, parseInstant } from '#flows/instant'
import type { FlowBatch, IngestAnswer, PodPost, ServicePost, Store, StoredPod } from '#store/store'

export function at(text: string): Instant {
  const instant = parseInstant(text.length === 10 ? `${text}T00:00:00` : text)
  if (instant === undefined) throw new Error(`${text} is no time`)
  return instant
}

/** The day on which most stories play. */
export const noon = at('2026-07-23T12:00:00')
export const second = 1_000_000
export const day = 86_400 * second

export async function putPod(
  store: Store,
  path: string,
  address: string,
  more: Partial<PodPost> & { readonly now?: Instant } = {},
): Promise<StoredPod> {
  const { now, ...post } = more
  const [namespace = '', name = ''] = path.split('/')
  const given = { namespace, name, addresses: address === '' ? [] : [address], startedAt: at('2026-07-01'), ...post }
  const stored = await store.putPod(given, now ?? noon)
  if (stored === undefined) throw new Error(`${path} was not stored`)
  return stored
}

export async function putService(
  store: Store,
  path: string,
  address: string,
  more: Partial<ServicePost> = {},
): Promise<void> {
  const [namespace = '', name = ''] = path.split('/')
  const addresses = address === '' ? [] : [{ address, kind: 'cluster' as const }]
  await store.putService({ namespace, name, addresses, isComplete: true, ...more }, noon)
}

/** From `shop/web` to an address, port 5432/TCP. */
export function egress(
  peerAddress: string | null,
  time: string | Instant,
  more: Partial<IncomingFlow> = {},
): IncomingFlow {
  return {
    pod: { namespace: 'shop', name: 'web', address: '10.0.0.1' },
    direction: 'EGRESS',
    protocol: 'TCP',
    ownPort: 0,
    peerAddress,
    peerPort: 5432,
    decision: 'ALLOW',
    time: typeof time === 'number' ? time : at(time),
    ...more,
  }
}

/** Rows of any age, unless the batch says otherwise. */
export function ingest(
  store: Store,
  rows: readonly IncomingFlow[],
  more: Partial<FlowBatch> = {},
): Promise<IngestAnswer> {
  return store.ingest({ rows, now: noon, limits: { futureSeconds: 400 * 86_400, pastSeconds: 400 * 86_400 }, ...more })
}

export async function allFlows(store: Store): Promise<readonly StoredFlow[]> {
  const rows: StoredFlow[] = []
  for await (const page of store.streamFlows(everyFlow)) rows.push(...page)
  return rows
}

/** `pod shop/db-0`, or null. */
export function peerOf(flow: StoredFlow | undefined): string | null {
  if (flow === undefined) throw new Error('there is no such row')
  return flow.peer === null ? null : `${flow.peer.kind} ${flow.peer.namespace}/${flow.peer.name}`
}

/** Stores one row and answers how it was stamped. */
export async function stamped(store: Store, row: IncomingFlow): Promise<string | null> {
  await ingest(store, [row])
  return peerOf(
    (await allFlows(store)).find((flow) => flow.peerAddress === row.peerAddress && flow.firstSeen === row.time),
  )
}
