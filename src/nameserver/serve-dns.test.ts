import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Packet } from 'dns2'
import { afterEach, expect, test } from 'vitest'
import { Failure } from '#base/failure'
import { emptyReply, type Question, type Reply } from '#compile/dns/record'
import { type Nameserver, serveDns } from './serve-dns'

const answer = ({ name }: Question): Reply => ({
  ...emptyReply('NOERROR', 'test', ''),
  answers: [{ type: 'A', name, ttl: 5, address: '10.96.0.20' }],
})

const open: Nameserver[] = []
async function start(address = '127.0.0.1', port = 0): Promise<Nameserver> {
  const nameserver = await serveDns({ address, port }, { answer, takesOtherClasses: false })
  open.push(nameserver)
  return nameserver
}

afterEach(async () => {
  for (const nameserver of open.splice(0)) await nameserver.close()
})

function query(id: number): Buffer {
  const packet = new Packet()
  packet.header = new Packet.Header({ id, rd: 1 })
  packet.questions.push(new Packet.Question('web.shop', 1, 1))
  return packet.toBuffer()
}

function framed(message: Buffer): Buffer {
  const prefix = Buffer.alloc(2)
  prefix.writeUInt16BE(message.length, 0)
  return Buffer.concat([prefix, message])
}

async function readReply(socket: Socket): Promise<number> {
  let held = Buffer.alloc(0)
  for await (const chunk of socket) {
    held = Buffer.concat([held, chunk])
    if (held.length >= 2 && held.length >= 2 + held.readUInt16BE(0)) return held.readUInt16BE(2)
  }
  return -1
}

async function askUdp({ address, port }: Nameserver, message: Buffer): Promise<number> {
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4')
  socket.send(message, port, address)
  const [reply] = await once(socket, 'message')
  socket.close()
  return reply.readUInt16BE(0)
}

async function askTcp({ address, port }: Nameserver, ...parts: readonly Buffer[]): Promise<number> {
  const socket = connect(port, address)
  for (const part of parts) {
    socket.write(part)
    await new Promise((done) => setTimeout(done, 5))
  }
  return readReply(socket)
}

test('UDP and TCP answer on the same port', async () => {
  const nameserver = await start()
  expect(await askUdp(nameserver, query(7))).toBe(7)
  expect(await askTcp(nameserver, framed(query(8)))).toBe(8)
})

test('IPv6 answers too', async () => {
  const nameserver = await start('::1')
  expect(await askUdp(nameserver, query(7))).toBe(7)
})

test('over TCP a message may come in pieces, and several at once', async () => {
  const nameserver = await start()
  const whole = framed(query(9))
  expect(await askTcp(nameserver, whole.subarray(0, 1), whole.subarray(1, 7), whole.subarray(7))).toBe(9)
  expect(await askTcp(nameserver, Buffer.concat([framed(query(1)), framed(query(2))]))).toBe(1)
})

test('nonsense ends a connection, not the server', async () => {
  const nameserver = await start()
  expect(await askTcp(nameserver, framed(Buffer.from('nonsense')))).toBe(-1)
  expect(await askTcp(nameserver, Buffer.from([0, 0]))).toBe(-1)
  const broken = connect(nameserver.port, nameserver.address)
  await once(broken, 'connect')
  broken.resetAndDestroy()
  const socket = createSocket('udp4')
  for (const bytes of [Buffer.alloc(0), Buffer.alloc(5), Buffer.alloc(4000, 0xc0)])
    socket.send(bytes, nameserver.port, nameserver.address)
  expect(await askUdp(nameserver, query(10))).toBe(10)
  socket.close()
  expect(await askTcp(nameserver, framed(query(11)))).toBe(11)
})

test('an address that is taken is a failure that says so', async () => {
  const { port } = await start()
  const second = start('127.0.0.1', port)
  await expect(second).rejects.toThrow(Failure)
  await expect(second).rejects.toThrow(`cannot listen on 127.0.0.1:${port}: another program listens there already`)
  await expect(start('192.0.2.1', 5353)).rejects.toThrow('this machine has no such address')
})

test('closing ends connections that are open', async () => {
  const nameserver = await start()
  const idle = connect(nameserver.port, nameserver.address)
  await once(idle, 'connect')
  idle.on('error', () => {})
  const closed = once(idle, 'close')
  await nameserver.close()
  open.splice(0)
  await closed
})
