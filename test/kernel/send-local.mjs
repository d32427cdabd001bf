/**
 * Sends packets as a process on the node does: one line of JSON on stdout for each, `null` or the error's code. Runs inside
 * the node's namespace, plain JavaScript so that any Node starts it as it is.
 */
import { spawnSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'

const senders = { udp: sendUdp, tcp: sendSyn, icmp: sendEcho }

for (const packet of JSON.parse(readFileSync(0, 'utf8'))) {
  const code = await senders[packet.protocol](packet).catch((error) => error.code ?? String(error))
  process.stdout.write(`${JSON.stringify(code ?? null)}\n`)
}
process.exit(0)

async function sendUdp({ source, sourcePort, destination, destinationPort, payload, ttl }) {
  const socket = createSocket(source.includes(':') ? 'udp6' : 'udp4')
  try {
    socket.bind({ address: source, port: sourcePort, exclusive: true })
    await once(socket, 'listening')
    if (ttl !== undefined) socket.setTTL(ttl)
    await new Promise((resolve, reject) => {
      socket.send(payload ?? 'portolan', destinationPort, destination, (error) => (error ? reject(error) : resolve()))
    })
  } finally {
    socket.close()
  }
}

/** The kernel sends the SYN within connect(2); what comes after it, an answer or none, is of no interest. */
async function sendSyn({ source, sourcePort, destination, destinationPort }) {
  const socket = connect({ host: destination, port: destinationPort, localAddress: source, localPort: sourcePort })
  const failed = once(socket, 'error').then(([error]) => error.code)
  const code = await Promise.race([failed, once(socket, 'connect').then(() => undefined), setTimeout(3)])
  socket.resetAndDestroy()
  return code === 'ECONNREFUSED' ? undefined : code
}

/** ping ends with 1 when nothing answers, which is usual here. */
async function sendEcho({ source, destination, icmp, payload, ttl }) {
  const size = Buffer.byteLength(payload ?? 'portolan')
  const options = ['-n', '-q', '-c', '1', '-W', '0.001', '-s', String(size), '-e', String(icmp?.id ?? 1), '-I', source]
  const done = spawnSync('ping', [...options, ...(ttl === undefined ? [] : ['-t', String(ttl)]), destination])
  const said = done.stderr?.toString() ?? ''
  if (/not permitted/.test(said)) return 'EPERM'
  return done.status === 0 || done.status === 1 ? undefined : said.trim() || `ping ended with ${done.status}`
}
