/** Sends packets from a process on the node: the way through OUTPUT. */
import { fileURLToPath } from 'node:url'
import type { KernelNode } from './kernel-node'
import { inside } from './namespace'
import { mustRun } from './run-command'
import type { SentPacket } from './sent-packet'

const program = fileURLToPath(new URL('./send-local.mjs', import.meta.url))

/** What the system call of each packet said: `EPERM` for a UDP packet that OUTPUT dropped, nothing when it went well. */
export function sendFromLocal(node: KernelNode, packets: readonly SentPacket[]): (string | undefined)[] {
  const foreign = packets.find((packet) => !canSendLocally(packet))
  if (foreign) throw new Error(`a local process cannot send this packet: ${JSON.stringify(foreign)}`)
  const output = mustRun(inside(node.namespace, [process.execPath, program]), JSON.stringify(packets))
  const answers = output
    .trim()
    .split('\n')
    .map((line): unknown => JSON.parse(line))
  return answers.map((answer) => (typeof answer === 'string' ? answer : undefined))
}

/** Node opens no raw sockets: a SYN by connect(2), UDP, and echo requests by ping; no SCTP. */
export function canSendLocally({ protocol, flags, icmp, source }: SentPacket): boolean {
  if (protocol === 'sctp') return false
  const isSyn = flags === undefined || (flags.length === 1 && flags[0] === 'SYN')
  const isEcho = icmp === undefined || (icmp.code === 0 && icmp.type === (source.includes(':') ? 128 : 8))
  return isSyn && isEcho
}
