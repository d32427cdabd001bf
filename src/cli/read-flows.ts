/** Flows from a broker: page by page, or as they arrive with every break of the connection mended. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createParser } from 'eventsource-parser'
import type { Static } from 'typebox'
import { Failure } from '#base/failure'
import { type Instant, parseInstant, printInstant } from '#flows/instant'
import type { Query } from '#wire/flow-query'
import { FlowRecord } from '#wire/flow-record'
import { listPage } from '#wire/schema-parts'
import { answerReader } from './broker-answer'
import type { BrokerClient } from './broker-client'

const pageRows = 500

const FlowPage = listPage(FlowRecord, 'flows')

/** Newest first, at most `limit` in all. */
export async function* readFlows(
  client: BrokerClient,
  query: Query,
  limit: number,
): AsyncGenerator<readonly FlowRecord[]> {
  let left = limit
  let cursor: string | null = null
  do {
    const parameters = parametersOf(query)
    parameters.set('limit', String(Math.min(left, pageRows)))
    if (cursor !== null) parameters.set('cursor', cursor)
    const page: Static<typeof FlowPage> = await client.getJson(`/api/v1/flows?${parameters}`, FlowPage)
    yield page.items
    left -= page.items.length
    cursor = page.next
  } while (cursor !== null && left > 0)
}

function parametersOf(query: Query): URLSearchParams {
  return new URLSearchParams(
    Object.entries(query).flatMap(([name, values]) =>
      [values ?? []].flat().map((value): [string, string] => [name, value]),
    ),
  )
}

export type Following = {
  readonly query: Query
  /** Of those that are there already, the newest so many. */
  readonly limit: number
  readonly print: (flow: FlowRecord) => void
  readonly note: (text: string) => void
}

const pauseMs = 3000

/** The newest flows, oldest of them first, and then each that arrives. Only an interruption, or a refusal, ends it. */
export async function followFlows(client: BrokerClient, following: Following): Promise<void> {
  const seen = new Map<string, string>()
  const print = (flow: FlowRecord): void => {
    const sighting = `${flow.hits} ${flow.lastSeen}`
    if (seen.get(flow.id) === sighting) return
    remember(seen, flow.id, sighting)
    following.print(flow)
  }
  const past: FlowRecord[] = []
  for await (const page of readFlows(client, following.query, following.limit)) past.push(...page)
  for (const flow of past.toReversed()) print(flow)
  const { until: _until, since: _since, ...live } = following.query
  let since = past.reduce((latest, flow) => Math.max(latest, lastSeenOf(flow)), 0)
  for (;;) {
    try {
      for await (const flow of readStream(
        client,
        { ...live, ...(since > 0 && { since: printInstant(since) }) },
        following.note,
      )) {
        since = Math.max(since, lastSeenOf(flow))
        print(flow)
      }
      following.note('the broker ended the stream; asking again\n')
    } catch (error) {
      if (!(error instanceof Failure) || error.code !== 'broker.unreachable') throw error
      following.note(`${error.message}\n`)
    }
    await sleep(pauseMs)
  }
}

function lastSeenOf(flow: FlowRecord): Instant {
  return parseInstant(flow.lastSeen) ?? 0
}

const mostRemembered = 20_000

/** The oldest is forgotten: it would be told twice at worst. */
function remember(seen: Map<string, string>, id: string, sighting: string): void {
  seen.delete(id)
  seen.set(id, sighting)
  const [oldest] = seen.keys()
  if (seen.size > mostRemembered && oldest !== undefined) seen.delete(oldest)
}

async function* readStream(
  client: BrokerClient,
  query: Query,
  note: (text: string) => void,
): AsyncGenerator<FlowRecord> {
  const path = `/api/v1/flows/stream?${parametersOf(query)}`
  const readFlow = answerReader(`${client.url}${path}`, FlowRecord)
  const arrived: FlowRecord[] = []
  const parser = createParser({
    onEvent: ({ event, data }) => {
      if (event === 'flow') arrived.push(readFlow(data))
      else if (event === 'missed') note('some flows came too fast to be shown\n')
    },
  })
  const decoder = new TextDecoder()
  for await (const chunk of await client.getStream(path, 'text/event-stream')) {
    parser.feed(decoder.decode(chunk, { stream: true }))
    yield* arrived.splice(0)
  }
}
