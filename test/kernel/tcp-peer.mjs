/**
 * One end of a TCP connection for the kernel tests. `server PORT` sends back what it reads, and after the other end's FIN
 * one line more before its own. `client HOST PORT` sends each line of stdin, END closes its half; it prints what it reads.
 */
import { connect, createServer } from 'node:net'
import { createInterface } from 'node:readline'

const [role, ...args] = process.argv.slice(2)
if (role === 'server') {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {})
    socket.on('data', (bytes) => socket.write(`back ${bytes}`))
    socket.on('end', () => setTimeout(() => socket.end('after your FIN\n'), 300))
    createInterface(process.stdin).on('line', (line) => socket.write(`${line}\n`))
  })
  server.listen(Number(args[0]), '::', () => console.log('listening'))
} else {
  const socket = connect({ host: args[0], port: Number(args[1]), allowHalfOpen: true }, () => console.log('connected'))
  socket.on('error', (error) => console.log(`error ${error.code}`))
  socket.on('data', (bytes) => process.stdout.write(bytes))
  socket.on('end', () => console.log('the other end is done'))
  createInterface(process.stdin).on('line', (line) => (line === 'END' ? socket.end() : socket.write(`${line}\n`)))
}
