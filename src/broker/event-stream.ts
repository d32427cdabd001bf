/** One client’s stream of server-sent events: headers, events, signs of life, and the end of a client that is too slow. */
import type { ServerResponse } from 'node:http'
import type { Clock } from './clock'

export type EventStream = {
  /** False when the client is gone, or so far behind that it was cut off. */
  readonly send: (event: { readonly id?: string; readonly name: string; readonly data: unknown }) => boolean
  /** Waits until what was sent has left, for a replay that is longer than the buffer. */
  readonly drain: () => Promise<boolean>
  readonly isOpen: () => boolean
  readonly close: () => void
}

export type EventStreamOptions = {
  readonly clock: Clock
  readonly heartbeatMs: number
  /** What may wait for this client. */
  readonly bufferBytes: number
  readonly headers: Readonly<Record<string, string>>
  readonly ended: (why: 'gone' | 'slow') => void
}

export function openEventStream(response: ServerResponse, options: EventStreamOptions): EventStream {
  let isOpen = true
  let cancelHeartbeat = (): void => {}
  const end = (why: 'gone' | 'slow'): void => {
    if (!isOpen) return
    isOpen = false
    cancelHeartbeat()
    options.ended(why)
  }
  const write = (text: string): boolean => {
    if (!isOpen) return false
    response.write(text)
    if (response.writableLength <= options.bufferBytes) return true
    end('slow')
    // An orderly end would wait behind what the client does not read.
    response.destroy()
    return false
  }
  const beat = (): void => {
    cancelHeartbeat = options.clock.after(options.heartbeatMs, () => {
      if (write(': alive\n\n')) beat()
    })
  }
  response.on('close', () => end('gone'))
  // It may have left while what it missed was read; then nobody tells again.
  if (response.destroyed) end('gone')
  response.writeHead(200, {
    ...options.headers,
    'Content-Type': 'text/event-stream; charset=utf-8',
    'Cache-Control': 'no-store',
    'X-Accel-Buffering': 'no',
  })
  // The first byte shows the client that the stream is open, whenever the first event comes.
  write('retry: 3000\n\n')
  if (isOpen) beat()
  return {
    send: ({ id, name, data }) =>
      write(`${id === undefined ? '' : `id: ${id}\n`}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`),
    drain: async () => {
      if (isOpen && response.writableNeedDrain) await drained(response)
      return isOpen
    },
    isOpen: () => isOpen,
    close: () => {
      end('gone')
      response.end()
    },
  }
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((done) => {
    const finish = (): void => {
      response.off('drain', finish)
      response.off('close', finish)
      done()
    }
    response.on('drain', finish)
    response.on('close', finish)
  })
}
