/** Whatever goes wrong between a command and its broker is one sentence, with the address and what to do. */
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import Type from 'typebox'
import { afterEach, describe, expect, test } from 'vitest'
import { openClient } from '../../src/cli/broker-client'
import { readBrokerDirectory } from '../../src/cli/broker-directory'
import { swapped, troubleOf } from '../../src/cli/broker-trouble'

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

async function listening(server: Server): Promise<string> {
  servers.push(server)
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const speaking = (onSocket: (socket: Socket) => void): Promise<string> =>
  listening(
    createServer((socket) => {
      socket.on('error', () => {})
      onSocket(socket)
    }),
  )
const answering = (listener: RequestListener): Promise<string> => listening(createHttpServer(listener))

async function askFor(broker: string): Promise<string> {
  const error: unknown = await openClient({ broker })
    .getJson('/api/v1/x', Type.Object({ items: Type.Array(Type.String()) }))
    .catch((thrown: unknown) => thrown)
  const { message } = error as Error
  expect(message).not.toMatch(/\n|OpenSSL|undici/)
  return message
}

test('nothing listens, or nobody has the name', async () => {
  const start = 'start one with portolan broker, or name another with --broker'
  const gone = await speaking(() => {})
  await new Promise((done) => servers.pop()?.close(done))
  expect(await askFor(gone)).toBe(`no broker answers on ${gone}: nothing listens there; ${start}`)
  expect(await askFor('http://127.0.0.1:9')).toBe(
    `no broker answers on http://127.0.0.1:9: its port is kept for another protocol and is never asked; ${start}`,
  )
  expect(await askFor('http://no-such-name.invalid')).toMatch(
    /^no broker answers on http:\/\/no-such-name\.invalid: its name (is not known|cannot be looked up now); /,
  )
})

test('TLS where there is none, and none where there is', async () => {
  const plain = await answering((_, response) => response.end('{}'))
  expect(await askFor(swapped(plain))).toBe(
    `no broker answers on ${swapped(plain)}: what listens there does not speak TLS; ask it as ${plain}`,
  )
  const closing = await speaking((socket) => void socket.once('data', () => socket.destroy()))
  expect(await askFor(closing)).toMatch(
    /the connection was (closed|reset); ask again, or as https:\S+ if it speaks TLS$/,
  )
  const alert = Buffer.from('15030100020246', 'hex')
  const tls = await speaking((socket) => void socket.once('data', () => socket.end(alert)))
  expect(await askFor(tls)).toMatch(/does not speak HTTP; check the port, or ask it as https:/)
  const go = await answering((_, response) =>
    response.writeHead(400).end('Client sent an HTTP request to an HTTPS server.'),
  )
  expect(await askFor(go)).toBe(`what listens on ${go} speaks TLS; ask it as ${swapped(go)}`)
})

test('an answer that breaks off in the middle', async () => {
  const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'
  for (const rest of ['Content-Length: 100\r\n\r\n{"items":', 'Transfer-Encoding: chunked\r\n\r\n64\r\n{"items":']) {
    const cut = await speaking((socket) => void socket.once('data', () => socket.end(`${head}${rest}`)))
    expect(await askFor(cut)).toMatch(/^http:\S+ broke the answer off: the connection was closed; ask again$/)
  }
})

test.each([
  [503, {}, '; try again later'],
  [503, { 'Retry-After': '7' }, '; try again in 7 s'],
  [429, { 'Retry-After': 'Tue, 01 Dec 2026 12:00:00 GMT' }, '; try again after Tue, 01 Dec 2026 12:00:00 GMT'],
  [404, {}, ''],
])('a refusal with %i and %j', async (status, headers, advice) => {
  const broker = await answering((_, response) => response.writeHead(status, headers).end('{"detail":"the reason"}'))
  expect(await askFor(broker)).toBe(`${broker} refused (${status}): the reason${advice}`)
})

test.each([
  ['', 'it is empty'],
  ['<html>', 'it is not JSON'],
  ['null', 'it must be object'],
  ['{}', 'items is missing'],
  ['{"items":[7]}', 'items.0 must be string'],
])('another server’s answer: %s', async (body, reason) => {
  const broker = await answering((_, response) => response.end(body))
  expect(await askFor(broker)).toBe(
    `what ${broker}/api/v1/x answers is not a Portolan broker’s answer: ${reason}; check --broker`,
  )
})

test('each line of the directory is held to its schema', async () => {
  const broker = await answering(({ url }, response) =>
    response.end(url === '/api/v1/pods' ? '{"namespace":"a"}\n' : ''),
  )
  await expect(readBrokerDirectory(openClient({ broker }))).rejects.toThrow(
    `what ${broker}/api/v1/pods answers is not a Portolan broker’s answer: name is missing; check --broker`,
  )
})

describe('what cannot be staged here', () => {
  const coded = (code: string, message = 'raw'): Error =>
    Object.assign(new TypeError('fetch failed'), { cause: Object.assign(new Error(message), { code }) })

  test.each([
    ['UND_ERR_HEADERS_TIMEOUT', 'it did not begin to answer in time'],
    ['UND_ERR_BODY_TIMEOUT', 'it stopped in the middle of its answer'],
    ['UND_ERR_CONNECT_TIMEOUT', 'the connection was not taken in time'],
    ['ENETUNREACH', 'no way leads to its network'],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'its certificate is signed by nobody that is trusted here'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'its certificate is for other names'],
    ['ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR', 'TLS failed (ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR)'],
  ])('%s', (code, why) => {
    expect(troubleOf('https://broker', coded(code), 1000).why).toBe(why)
  })

  test('a timeout tells how long it was waited, and what is not known is one line', () => {
    const aborted = Object.assign(new Error('aborted'), { name: 'AbortError' })
    expect(troubleOf('http://broker', aborted, 35_000).why).toBe('it did not begin to answer within 35 s')
    expect(troubleOf('http://broker', coded('EWHAT', 'one\n  two\n'), 1).why).toBe('one two')
  })
})
