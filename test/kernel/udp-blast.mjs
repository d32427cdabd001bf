/** Sends that many UDP datagrams to HOST PORT as fast as the socket takes them, then says so. */
import { createSocket } from 'node:dgram'

const [host, port, count] = process.argv.slice(2)
const socket = createSocket('udp4')
socket.on('error', () => {})
socket.connect(Number(port), host, () => {
  let sent = 0
  const some = () => {
    for (let burst = 0; burst < 50 && sent < Number(count); burst++, sent++) socket.send('x', () => {})
    if (sent < Number(count)) setImmediate(some)
    else setTimeout(() => socket.close(() => console.log('sent')), 200)
  }
  some()
})
