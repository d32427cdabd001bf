/**
 * A pod of the policy laboratory: answers on every port it is told, and tries connections on demand. Each line on stdin is a
 * job; its results are a file named after the job. Plain JavaScript, so that any Node starts it as it is.
 */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { renameSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { createInterface } from 'node:readline'

const [folder, name, ports] = process.argv.slice(2)
/** Refused packets are answered at once; only what is lost takes so long. */
const patienceMilliseconds = 400

for (const port of JSON.parse(ports)) {
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.end('here')
  })
  server.listen({ port, host: '0.0.0.0', backlog: 512 })
  await once(server, 'listening')
  const socket = createSocket('udp4')
  socket.on('message', (_, from) => socket.send('here', from.port, from.address))
  socket.on('error', () => {})
  socket.bind(port)
  await once(socket, 'listening')
}
report('ready', [])

for await (const line of createInterface({ input: process.stdin })) {
  const { id, probes } = JSON.parse(line)
  report(id, await Promise.all(probes.map(tryOne)))
}

function report(id, results) {
  const path = `${folder}/${name}-${id}`
  writeFileSync(`${path}.part`, JSON.stringify(results))
  renameSync(`${path}.part`, `${path}.json`)
}

function tryOne({ protocol, address, port }) {
  return protocol === 'TCP' ? tryTcp(address, port) : tryUdp(address, port)
}

function tryTcp(host, port) {
  return new Promise((resolve) => {
    const socket = connect({ host, port })
    const end = (result) => {
      clearTimeout(timer)
      socket.destroy()
      resolve(result)
    }
    const timer = setTimeout(end, patienceMilliseconds, 'lost')
    socket.once('data', () => end('open'))
    socket.on('error', (error) => end(error.code === 'ECONNREFUSED' ? 'refused' : error.code))
  })
}

function tryUdp(address, port) {
  return new Promise((resolve) => {
    const socket = createSocket('udp4')
    const end = (result) => {
      clearTimeout(timer)
      socket.close()
      resolve(result)
    }
    const timer = setTimeout(end, patienceMilliseconds, 'lost')
    socket.once('message', () => end('open'))
    socket.once('error', (error) => end(error.code === 'ECONNREFUSED' ? 'refused' : error.code))
    socket.connect(port, address, (error) => {
      if (error) end(error.code)
      else socket.send('hello')
    })
  })
}
