/** The frames that arrive at the far end of a link, captured there by tcpdump: what left the node, whatever its rules say. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { printIp } from '#base/ip'
import type { KernelNode } from './kernel-node'
import { endWithUs, inside } from './namespace'
import { parsePcap } from './pcap'
import { toolEnvironment, waitUntil } from './run-command'
import { linkNamed } from './wire'

/** Ports are those of TCP, UDP and SCTP; `id` is the IPv4 identification or the IPv6 flow label. */
type ArrivedFrame = {
  readonly protocol: number
  readonly source: string
  readonly destination: string
  readonly sourcePort?: number
  readonly destinationPort?: number
  readonly id: number
}

export type Capture = {
  /** All IP frames so far; waits, two seconds at most, until there are `count`. */
  readonly read: (count: number) => ArrivedFrame[]
  readonly close: () => void
}

export function startCapture(node: KernelNode, linkName: string): Capture {
  const link = linkNamed(node, linkName)
  const folder = mkdtempSync(join(tmpdir(), 'portolan-capture-'))
  const file = join(folder, 'frames.pcap')
  const options = ['-Q', 'in', '-U', '--immediate-mode', '-B', '16384', '-n', '-Z', 'root']
  const [program = '', ...args] = inside(link.peerNamespace, ['tcpdump', '-i', 'peer', ...options, '-w', file])
  const child = spawn(program, args, { stdio: 'ignore', env: toolEnvironment })
  endWithUs(child)
  const frames = () => parsePcap(existsSync(file) ? readFileSync(file) : Buffer.alloc(0)).flatMap(parseFrame)
  // The file is made once the socket is open and bound.
  waitUntil(`tcpdump listens at the far end of ${linkName}`, () => existsSync(file) && readFileSync(file).length >= 24)
  return {
    read: (count) => {
      const end = Date.now() + 2000
      waitUntil('frames', () => frames().length >= count || Date.now() > end)
      return frames()
    },
    close: () => {
      child.kill('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Nothing for a frame that is neither IPv4 nor IPv6. */
function parseFrame(frame: Buffer): ArrivedFrame[] {
  const ip = frame.subarray(14)
  const type = frame.readUInt16BE(12)
  if (type === 0x0800) {
    const ends = { source: addressAt(ip, 12, 1), destination: addressAt(ip, 16, 1) }
    const protocol = ip[9] ?? 0
    return [{ protocol, ...ends, ...portsOf(protocol, ip.subarray(20)), id: ip.readUInt16BE(4) }]
  }
  if (type !== 0x86dd) return []
  const ends = { source: addressAt(ip, 8, 4), destination: addressAt(ip, 24, 4) }
  const protocol = ip[6] ?? 0
  return [{ protocol, ...ends, ...portsOf(protocol, ip.subarray(40)), id: ip.readUInt32BE(0) & 0xfffff }]
}

function portsOf(protocol: number, segment: Buffer) {
  const hasPorts = [6, 17, 132].includes(protocol)
  return hasPorts ? { sourcePort: segment.readUInt16BE(0), destinationPort: segment.readUInt16BE(2) } : {}
}

function addressAt(ip: Buffer, at: number, words: 1 | 4): string {
  const family = words === 1 ? 'ipv4' : 'ipv6'
  return printIp({ family, words: Array.from({ length: words }, (_, index) => ip.readUInt32BE(at + index * 4)) })
}
