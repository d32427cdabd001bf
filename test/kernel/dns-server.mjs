/** A nameserver that says what it is told to: names with a reply each, in JSON on the command line; every question is a line of output. */
import { createSocket } from 'node:dgram'
import { Packet } from 'dns2'

const replies = JSON.parse(process.argv[2] ?? '{}')
const types = { 1: 'A', 28: 'AAAA' }
const rcodes = { NOERROR: 0, NODATA: 0, SERVFAIL: 2, NXDOMAIN: 3, REFUSED: 5 }

/** Two addresses, for a resolv.conf with two nameservers. */
const listening = ['127.0.0.1', '127.0.0.2'].map((address) => {
  const socket = createSocket('udp4')
  socket.on('message', (message, sender) => answer(message, (reply) => socket.send(reply, sender.port, sender.address)))
  return new Promise((done) => {
    socket.bind(53, address, done)
  })
})
await Promise.all(listening)
// A round of the event loop reads every socket before it comes to signals; the second round is for what came meanwhile.
process.on('SIGUSR2', () => setImmediate(() => setImmediate(() => process.stdout.write('all read\n'))))
process.stdout.write('ready\n')

function answer(message, send) {
  const query = Packet.parse(message)
  const [question] = query.questions
  // musl 1.2.3 asks for a name with an empty label in a message that cannot be read.
  if (question === undefined) return
  const { name, type } = question
  process.stdout.write(`${types[type] ?? type} ${name}.\n`)
  const reply = replies[`${name}. ${types[type]}`] ?? replies[`${name}.`] ?? 'NXDOMAIN'
  if (reply === 'SILENT') return
  const packet = Packet.createResponseFromRequest(query)
  packet.additionals = []
  packet.header.rcode = rcodes[reply] ?? 0
  // Without this glibc takes an answer without records for that of a server that does not know the zone.
  packet.header.aa = 1
  if (rcodes[reply] === undefined) packet.answers.push({ name, type, class: 1, ttl: 5, address: reply })
  send(packet.toBuffer())
}
