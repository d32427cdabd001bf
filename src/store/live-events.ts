/** Live events: what one broker stores, all of them hear of. Only keys travel; each reads the rows itself. */
import { randomUUID } from 'node:crypto'
import type { Engine } from './engine'
import { listenerName, openListener } from './postgres-engine'
import { flowsByKeys } from './read-flows'
import type { StoreEvent } from './store'

/** The next event waits until this one has been taken. */
type Listener = (event: StoreEvent) => void | Promise<void>

export type LiveEvents = {
  /** Whether anybody, here or elsewhere, wants to know what a batch wrote. */
  readonly isWanted: () => boolean
  readonly publish: (keys: readonly string[]) => void
  readonly listen: (onEvent: Listener) => Promise<() => Promise<void>>
  readonly close: () => Promise<void>
}

const channel = 'portolan_flows'
/** A notification holds at most 8000 bytes; a key is 16 bytes, 22 characters in base64. */
const keysPerMessage = 300
/** More than this at once is more than anybody reads; the rest is counted. */
const mostKeys = 2000
const presenceMillis = 2000

type Message = { readonly from: string; readonly day: string; readonly keys: string; readonly missed: number }

/** `database` is the URL of a PostgreSQL that other brokers may share. */
export function makeLiveEvents(engine: Engine, database?: string): LiveEvents {
  const self = randomUUID()
  const listeners = new Set<Listener>()
  const deliver = makeDelivery(engine, listeners)
  const presence = makePresence(engine, database)
  const hearing = makeHearing(database, (text) => {
    const message = parseMessage(text)
    if (message !== undefined && message.from !== self) deliver(unpack(message), message.missed)
  })
  const publish = (keys: readonly string[]): void => {
    if (listeners.size > 0) deliver(keys, 0)
    if (presence.isAnyone()) void notify(engine, self, keys).catch(() => undefined)
  }
  const listen: LiveEvents['listen'] = async (onEvent) => {
    listeners.add(onEvent)
    if (listeners.size === 1) await hearing.start()
    return async () => {
      if (listeners.delete(onEvent) && listeners.size === 0) await hearing.stop()
    }
  }
  return { isWanted: () => listeners.size > 0 || presence.isAnyone(), publish, listen, close: hearing.stop }
}

/** One read at a time; while it runs, at most `mostKeys` wait for the next. */
function makeDelivery(
  engine: Engine,
  listeners: ReadonlySet<Listener>,
): (keys: readonly string[], missed: number) => void {
  let waiting: string[] = []
  let missedSoFar = 0
  let isReading = false
  const read = async (): Promise<void> => {
    isReading = true
    while (waiting.length > 0 || missedSoFar > 0) {
      const [keys, missed] = [waiting, missedSoFar]
      waiting = []
      missedSoFar = 0
      const flows = await flowsByKeys(engine, keys).catch(() => undefined)
      const event: StoreEvent = {
        kind: 'flows',
        flows: flows ?? [],
        missed: missed + (flows === undefined ? keys.length : 0),
      }
      for (const listener of listeners) await listener(event)
    }
    isReading = false
  }
  return (keys, missed) => {
    const room = Math.max(0, mostKeys - waiting.length)
    waiting = waiting.concat(keys.slice(0, room))
    missedSoFar += missed + Math.max(0, keys.length - room)
    if (!isReading && listeners.size > 0) void read()
  }
}

/** Asks now and then whether a connection waits for notifications; nobody is told what nobody hears. */
function makePresence(engine: Engine, database: string | undefined): { readonly isAnyone: () => boolean } {
  if (database === undefined) return { isAnyone: () => false }
  let isThere = false
  let asked = 0
  const ask = async (): Promise<void> => {
    const { rows } = await engine.query({
      text: 'select from pg_stat_activity where application_name = $1 and datname = current_database() limit 1',
      values: [listenerName],
    })
    isThere = rows.length > 0
  }
  return {
    isAnyone: () => {
      const now = performance.now()
      if (asked === 0 || now - asked > presenceMillis) {
        asked = now
        void ask().catch(() => undefined)
      }
      return isThere
    },
  }
}

/** The connection that hears; one that breaks is made again. */
function makeHearing(
  database: string | undefined,
  onMessage: (text: string) => void,
): { readonly start: () => Promise<void>; readonly stop: () => Promise<void> } {
  let current: { readonly close: () => Promise<void> } | undefined
  let timer: NodeJS.Timeout | undefined
  let isWanted = false
  const open = async (): Promise<void> => {
    if (database === undefined || !isWanted) return
    current = await openListener(database, channel, { payload: onMessage, lost: again })
    if (!isWanted) await current.close()
  }
  const again = (): void => {
    current = undefined
    timer = setTimeout(() => void open().catch(again), 1000)
    timer.unref()
  }
  return {
    start: async () => {
      isWanted = true
      await open()
    },
    stop: async () => {
      isWanted = false
      clearTimeout(timer)
      // Let go of before it is closed: whoever starts meanwhile makes another.
      const ending = current
      current = undefined
      await ending?.close()
    },
  }
}

async function notify(engine: Engine, from: string, keys: readonly string[]): Promise<void> {
  const shown = keys.slice(0, mostKeys)
  const days = groupByDay(shown)
  const messages: Message[] = []
  for (const [day, all] of days) {
    for (let start = 0; start < all.length; start += keysPerMessage) {
      messages.push({ from, day, keys: pack(all.slice(start, start + keysPerMessage)), missed: 0 })
    }
  }
  const [first, ...others] = messages
  if (first === undefined) return
  const told = [{ ...first, missed: keys.length - shown.length }, ...others]
  for (const message of told) {
    await engine.query({ text: 'select pg_notify($1, $2)', values: [channel, JSON.stringify(message)] })
  }
}

function groupByDay(keys: readonly string[]): Map<string, string[]> {
  const days = new Map<string, string[]>()
  for (const key of keys) {
    const day = key.slice(0, 10)
    const others = days.get(day)
    if (others === undefined) days.set(day, [key])
    else others.push(key)
  }
  return days
}

function pack(keys: readonly string[]): string {
  return Buffer.concat(keys.map((key) => Buffer.from(key.slice(11).replaceAll('-', ''), 'hex'))).toString('base64')
}

function unpack({ day, keys }: Message): readonly string[] {
  const bytes = Buffer.from(keys, 'base64').toString('hex')
  return (bytes.match(/.{32}/g) ?? []).map((key) => `${day} ${key}`)
}

function parseMessage(text: string): Message | undefined {
  try {
    const message: Partial<Message> = JSON.parse(text)
    const { from, day, keys, missed } = message
    if (typeof from !== 'string' || typeof day !== 'string' || typeof keys !== 'string') return undefined
    return /^\d{4}-\d\d-\d\d$/.test(day) ? { from, day, keys, missed: Number(missed ?? 0) } : undefined
  } catch {
    return undefined
  }
}
