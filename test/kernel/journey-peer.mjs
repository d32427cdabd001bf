/**
 * One end of a connection for the journeys' kernel tests. `server PORT` prints and sends back whom it sees on each connection;
 * `client HOST PORT SPORT MILLISECONDS` connects once from a port of its own and prints both ends as it sees them, and what
 * the server saw. `datagram HOST PORT SPORT TTL` sends one of UDP.
 */
import { createSocket } from 'node:dgram'
import { connect, createServer } from 'node:net'

const [role, ...args] = process.argv.slice(2)
const ends = (socket) => ({
  local: `${socket.localAddress}:${socket.localPort}`,
  remote: `${socket.remoteAddress}:${socket.remotePort}`,
})

if (role === 'server') {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.end(JSON.stringify(ends(socket)))
  })
  server.listen(Number(args[0]), '0.0.0.0', () => console.log('listening'))
} else if (role === 'datagram') {
  const [host, port, localPort, ttl] = args
  const socket = createSocket('udp4')
  socket.bind(Number(localPort), () => {
    socket.setTTL(Number(ttl))
    socket.send('portolan', Number(port), host, () => socket.close())
  })
} else {
  const [host, port, localPort, milliseconds] = args
  const socket = connect({ host, port: Number(port), localPort: Number(localPort), family: 4 })
  const timer = setTimeout(() => finish({ error: 'ETIMEDOUT' }), Number(milliseconds))
  const finish = (told) => {
    clearTimeout(timer)
    console.log(JSON.stringify(told))
    socket.destroy()
  }
  socket.on('error', ({ code }) => finish({ error: code }))
  socket.on('data', (bytes) => finish({ client: ends(socket), server: JSON.parse(String(bytes)) }))
}
