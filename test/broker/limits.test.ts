/** What a broker puts up with: long bodies, long batches, many requests, many connections, and clients that dawdle. */
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { buildProgram, startProcess } from './broker-process'
import { flowPost } from './messages'
import { openBroker, type TestBroker, type TestBrokerOptions } from './running-broker'

let broker: TestBroker | undefined
const open = async (options: TestBrokerOptions): Promise<TestBroker> => {
  broker = await openBroker(options)
  return broker
}
afterEach(async () => {
  await broker?.stop()
  broker = undefined
})

test('a body of 50 MB is refused with 413, and the broker goes on', async () => {
  const { post, get } = await open({})
  const response = await post('/pod/traffic/batch', `[${' '.repeat(50_000_000)}]`).catch((error: unknown) => error)
  if (response instanceof Response) {
    expect([response.status, await response.json()]).toMatchObject([413, { code: 'too-large' }])
  } else {
    // The answer may come while the client still writes, which some clients take for a broken connection.
    expect(String(response)).toMatch(/fetch failed/)
  }
  expect((await get('/health')).status).toBe(200)
})

test('a chunked body of 50 MB without a length is refused too', async () => {
  const { port, get } = await open({ settings: { bodyLimitBytes: 1_000_000 } })
  const socket = connect(port, '127.0.0.1')
  let isAnswered = false
  const answer = firstLine(socket).finally(() => {
    isAnswered = true
  })
  socket.write(
    'POST /pod/traffic/batch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n',
  )
  const chunk = `10000\r\n${' '.repeat(0x10000)}\r\n`
  for (let sent = 0; sent < 50_000_000 && !isAnswered && !socket.destroyed; sent += 0x10000) {
    if (!socket.write(chunk)) await Promise.race([new Promise((done) => socket.once('drain', done)), answer])
    if (socket.readableEnded) break
  }
  expect(await answer).toBe('HTTP/1.1 413 Payload Too Large')
  socket.destroy()
  expect((await get('/health')).status).toBe(200)
})

test('a batch with more rows than the limit is refused as a whole, and says how many may come', async () => {
  const { post } = await open({ settings: { batchLimitRows: 10 } })
  const rows = Array.from({ length: 11 }, () => flowPost({ peer: '203.0.113.1', time: '2026-09-10T11:00:00' }))
  const response = await post('/pod/traffic/batch', rows)
  expect([response.status, await response.json()]).toMatchObject([
    413,
    { detail: expect.stringContaining('10 is the most') },
  ])
})

test('too many requests get 429 with the time to wait, and health is still answered', async () => {
  const { get } = await open({ settings: { requestsPerMinute: 5 } })
  const statuses: number[] = []
  for (let count = 0; count < 7; count++) statuses.push((await get('/pod/traffic')).status)
  expect(statuses).toEqual([200, 200, 200, 200, 200, 429, 429])
  const refused = await get('/pod/traffic')
  expect(Number(refused.headers.get('Retry-After'))).toBeGreaterThan(0)
  expect(refused.headers.get('content-type')).toMatch(/^application\/problem\+json/)
  expect(await refused.json()).toMatchObject({ status: 429, code: 'too-many-requests' })
  expect((await get('/health')).status).toBe(200)
})

test('10,000 silent connections do not keep others from being answered, and are cut off', async () => {
  // A process of its own: both ends of the connections would be more files than one process may have open.
  buildProgram()
  const process = await startProcess(['--data', ':memory:', '--header-timeout', '30'])
  const { get, post } = process
  const port = Number(new URL(process.url).port)
  const sockets: Socket[] = []
  let closed = 0
  for (let start = 0; start < 10_000; start += 500) {
    await Promise.all(
      Array.from({ length: 500 }, async () => {
        const socket = connect(port, '127.0.0.1')
        socket.resume().on('close', () => closed++)
        socket.on('error', () => {})
        sockets.push(socket)
        await new Promise((done) => socket.once('connect', done))
      }),
    )
  }
  const started = performance.now()
  expect((await get('/health')).status).toBe(200)
  expect(performance.now() - started).toBeLessThan(1000)
  const row = flowPost({ peer: '203.0.113.1', time: new Date().toISOString() })
  expect((await post('/pod/traffic/batch', [row])).status).toBe(200)
  expect(await (await get('/metrics')).text()).toMatch(/^portolan_broker_connections 1000\d$/m)
  while (closed < 10_000) await sleep(200)
  expect((await get('/health')).status).toBe(200)
  for (const socket of sockets) socket.destroy()
  expect(await process.end('SIGTERM')).toBe(0)
}, 180_000)

test('more connections than the limit are closed', async () => {
  const { port } = await open({ settings: { maxConnections: 10 } })
  const sockets = Array.from({ length: 15 }, () => connect(port, '127.0.0.1').on('error', () => {}))
  let closed = 0
  for (const socket of sockets) socket.on('close', () => closed++)
  while (closed < 5) await sleep(20)
  await sleep(200)
  expect(closed).toBe(5)
  for (const socket of sockets) socket.destroy()
})

test('a header that dribbles in is answered with 408 when its time is up', async () => {
  const { port, get } = await open({ settings: { headerTimeoutSeconds: 1 } })
  const socket = connect(port, '127.0.0.1')
  const answer = firstLine(socket)
  socket.write('GET /health HTTP/1.1\r\n')
  const drip = setInterval(() => socket.write('X-Slow: 1\r\n'), 100)
  expect(await answer).toBe('HTTP/1.1 408 Request Timeout')
  clearInterval(drip)
  socket.destroy()
  expect((await get('/health')).status).toBe(200)
})

test('a body that dribbles in is cut off when its time is up', async () => {
  const { port, get } = await open({ settings: { headerTimeoutSeconds: 1, requestTimeoutSeconds: 2 } })
  const socket = connect(port, '127.0.0.1')
  const answer = firstLine(socket)
  socket.write(
    'POST /pod/spec HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{',
  )
  const drip = setInterval(() => socket.write(' '), 100)
  expect(await answer).toMatch(/^HTTP\/1\.1 (408|503) /)
  clearInterval(drip)
  socket.destroy()
  expect((await get('/health')).status).toBe(200)
})

test('what is no HTTP is answered as such and closed', async () => {
  const { port } = await open({})
  const socket = connect(port, '127.0.0.1')
  const answer = firstLine(socket)
  socket.write('\x16\x03\x01 not http\r\n\r\n')
  expect(await answer).toBe('HTTP/1.1 400 Bad Request')
})

/** The first line that a server answers, or an empty text when it closes without one. */
function firstLine(socket: Socket): Promise<string> {
  return new Promise((done) => {
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk.toString()
      if (text.includes('\r\n')) done(text.slice(0, text.indexOf('\r\n')))
    })
    socket.on('error', () => {})
    socket.on('close', () => done(text.split('\r\n')[0] ?? ''))
  })
}
