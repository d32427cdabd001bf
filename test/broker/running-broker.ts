/** A real broker for tests: a port of its own, a database of its own, a clock that the test turns, a log that can be read. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openLog } from '../../src/broker/log'
import { readSettings, type Settings } from '../../src/broker/settings'
import { type RunningBroker, startBroker } from '../../src/broker/start-broker'
import { buildTokenBook, type GivenToken } from '../../src/broker/tokens'
import { openStore } from '../../src/store/open-store'
import type { Store } from '../../src/store/store'
import { type ManualClock, manualClock } from './manual-clock'

export type TestBroker = {
  readonly url: string
  readonly port: number
  readonly clock: ManualClock
  readonly store: Store
  readonly log: () => string
  readonly get: (path: string, headers?: Record<string, string>) => Promise<Response>
  /** The body of a 200. */
  readonly read: <Body = unknown>(path: string, headers?: Record<string, string>) => Promise<Body>
  readonly post: (path: string, body: unknown, headers?: Record<string, string>) => Promise<Response>
  readonly send: <Body = unknown>(path: string, body: unknown, headers?: Record<string, string>) => Promise<Body>
  readonly stop: () => Promise<void>
}

export type TestBrokerOptions = {
  readonly now?: string
  readonly settings?: Partial<Settings>
  readonly tokens?: readonly GivenToken[]
  readonly allowedOrigins?: readonly string[]
  /** PostgreSQL instead of a directory of its own. */
  readonly database?: string
}

export async function openBroker(options: TestBrokerOptions = {}): Promise<TestBroker> {
  const folder = options.database === undefined ? mkdtempSync(join(tmpdir(), 'portolan-broker-')) : undefined
  const store = await openStore(
    folder === undefined ? { database: options.database ?? '' } : { data: join(folder, 'data') },
  )
  const clock = manualClock(options.now ?? '2026-09-10T12:00:00')
  const lines: string[] = []
  const broker = await startBroker({
    listen: { address: '127.0.0.1', port: 0 },
    store,
    settings: { ...readSettings({}).settings, ...options.settings },
    tokens: buildTokenBook(options.tokens ?? []),
    isInsecure: false,
    allowedOrigins: options.allowedOrigins ?? [],
    version: '0.0.0-test',
    clock,
    log: openLog((line) => lines.push(line), 'debug'),
  })
  return {
    ...clientOf(broker),
    port: broker.port,
    clock,
    store,
    log: () => lines.join(''),
    stop: async () => {
      await broker.stop()
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
    },
  }
}

export function clientOf({ url }: Pick<RunningBroker, 'url'>) {
  const get = (path: string, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${url}${path}`, { headers })
  const post = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
  const bodyOf = async <Body>(response: Response): Promise<Body> => {
    const text = await response.text()
    if (response.status !== 200) throw new RangeError(`${response.status} ${text}`)
    return JSON.parse(text) as Body
  }
  return {
    url,
    get,
    post,
    read: async <Body>(path: string, headers?: Record<string, string>) => bodyOf<Body>(await get(path, headers)),
    send: async <Body>(path: string, body: unknown, headers?: Record<string, string>) =>
      bodyOf<Body>(await post(path, body, headers)),
  }
}
