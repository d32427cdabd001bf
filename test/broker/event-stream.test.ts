/** A live stream whose client left before it began. */
import { type ClientRequest, createServer, get } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { openEventStream } from '../../src/broker/event-stream'
import { manualClock } from './manual-clock'

test('a client that left while what it missed was read holds no place among the streams', async () => {
  const clock = manualClock('2026-09-10T12:00:00')
  const ended = await new Promise<string>((done) => {
    const server = createServer((_request, response) => {
      response.on('close', () => {
        const stream = openEventStream(response, {
          clock,
          heartbeatMs: 15_000,
          bufferBytes: 16_384,
          headers: {},
          ended: done,
        })
        if (stream.isOpen()) done('nobody noticed')
        server.close()
      })
      asking?.destroy()
    })
    let asking: ClientRequest | undefined
    server.listen(0, '127.0.0.1', () => {
      asking = get({ port: (server.address() as AddressInfo).port }).on('error', () => {})
    })
  })
  expect(ended).toBe('gone')
})
