/** DNS on the wire: one address, UDP and TCP, until it is closed. What comes in from outside never ends it. */
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { Failure } from '#base/failure'
import { printEndpoint } from '#base/ip'
import { type Answering, answerMessage } from './answer-message'

export type ListenAddress = { readonly address: string; readonly port: number }

export type Nameserver = ListenAddress & { readonly close: () => Promise<void> }

/** Port 0 takes any that is free for both. Throws `Failure` when the address cannot be had. */
export async function serveDns(listen: ListenAddress, answering: Answering): Promise<Nameserver> {
  const connections = new Set<Socket>()
  const tcp = createServer((socket) => {
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
    serveConnection(socket, answering)
  })
  const udp = createSocket(listen.address.includes(':') ? 'udp6' : 'udp4')
  const close = async (): Promise<void> => {
    for (const socket of connections) socket.destroy()
    await Promise.all([closing(udp), closing(tcp)])
  }
  try {
    const port = await listenTcp(tcp, listen)
    await bindUdp(udp, { address: listen.address, port })
    serveDatagrams(udp, answering)
    tcp.on('error', () => {})
    return { address: listen.address, port, close }
  } catch (error) {
    await close()
    throw explain(error, listen)
  }
}

function serveDatagrams(socket: UdpSocket, answering: Answering): void {
  socket.on('error', () => {})
  socket.on('message', (message, sender) => {
    const reply = answerMessage(message, { address: plainAddress(sender.address), transport: 'udp' }, answering)
    // A reply that cannot be sent is the sender's loss alone.
    if (reply !== undefined) socket.send(reply, sender.port, sender.address, () => {})
  })
}

/** On `::` addresses of IPv4 come written as IPv6. */
function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/, '')
}

/** A connection that is silent for so long is closed, and so many at most are open at once. */
const idleMilliseconds = 10_000
const mostConnections = 256
const mostUnread = 1 << 20

async function listenTcp(server: Server, { address, port }: ListenAddress): Promise<number> {
  server.maxConnections = mostConnections
  server.listen({ host: address, port })
  await once(server, 'listening')
  return portOf(server.address(), port)
}

function portOf(address: AddressInfo | string | null, fallback: number): number {
  return typeof address === 'object' && address !== null ? address.port : fallback
}

async function bindUdp(socket: UdpSocket, { address, port }: ListenAddress): Promise<void> {
  socket.bind({ address, port })
  await once(socket, 'listening')
}

function closing(server: { close: (done: () => void) => unknown }): Promise<void> {
  return new Promise((done) => {
    try {
      server.close(() => done())
    } catch {
      // One that never listened has nothing to close.
      done()
    }
  })
}

/** Messages follow one another, each behind its length in two bytes. */
function serveConnection(socket: Socket, answering: Answering): void {
  const address = plainAddress(socket.remoteAddress ?? '')
  let held: Buffer = Buffer.alloc(0)
  socket.setTimeout(idleMilliseconds, () => socket.destroy())
  socket.on('error', () => socket.destroy())
  socket.on('data', (chunk: Buffer) => {
    held = Buffer.concat([held, chunk])
    while (held.length >= 2 && held.length >= 2 + held.readUInt16BE(0)) {
      const length = held.readUInt16BE(0)
      const reply = answerMessage(held.subarray(2, 2 + length), { address, transport: 'tcp' }, answering)
      held = held.subarray(2 + length)
      if (reply === undefined) {
        socket.destroy()
        return
      }
      const prefix = Buffer.alloc(2)
      prefix.writeUInt16BE(reply.length, 0)
      socket.write(Buffer.concat([prefix, reply]))
      // One that asks and never reads is not waited for.
      if (socket.writableLength > mostUnread) socket.destroy()
    }
  })
}

function explain(error: unknown, { address, port }: ListenAddress): Failure {
  const code = typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : ''
  const place = printEndpoint(address, port)
  const why: Readonly<Record<string, string>> = {
    EADDRINUSE: 'another program listens there already; choose another port',
    EACCES: 'ports below 1024 need root; choose another port, such as 5353',
    EADDRNOTAVAIL: 'this machine has no such address; choose one of its own, such as 127.0.0.1',
  }
  const reason = why[code] ?? String(error)
  return new Failure('system.command-failed', `cannot listen on ${place}: ${reason}`, error)
}
