/** Sends frames from the far ends of a node's links, whatever their source addresses are. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildFrame } from './frame'
import type { KernelLink, KernelNode } from './kernel-node'
import { inside } from './namespace'
import { printPcap } from './pcap'
import { mustRun } from './run-command'
import type { SentPacket } from './sent-packet'

export type NumberedPacket = { readonly packet: SentPacket; readonly id: number }

/** One tcpreplay for each run of packets from the same link, so that all packets arrive in the order given. */
export function sendFromWire(node: KernelNode, packets: readonly NumberedPacket[]): void {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-wire-'))
  try {
    for (const run of runsByLink(packets)) {
      const link = linkNamed(node, run[0]?.packet.from ?? '')
      const ends = { sourceMac: link.peerMac, destinationMac: link.mac }
      const file = join(folder, 'frames.pcap')
      writeFileSync(file, printPcap(run.map(({ packet, id }) => buildFrame(packet, id, ends))))
      mustRun(inside(link.peerNamespace, ['tcpreplay', '--quiet', '--topspeed', '--intf1=peer', file]))
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

export function linkNamed(node: KernelNode, name: string): KernelLink {
  const link = node.links.find((one) => one.name === name)
  if (link === undefined) throw new Error(`the node has no link ${name}`)
  return link
}

function runsByLink(packets: readonly NumberedPacket[]): NumberedPacket[][] {
  const runs: NumberedPacket[][] = []
  for (const one of packets) {
    const last = runs.at(-1)
    if (last?.[0]?.packet.from === one.packet.from) last.push(one)
    else runs.push([one])
  }
  return runs
}
