/** Errors of ICMP that arrive in a namespace, with the packet that each carries, as tcpdump sees them on its interface. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { endWithUs, inside } from './namespace'
import { parsePcap } from './pcap'
import { toolEnvironment, waitUntil } from './run-command'

/** `inside` is `10.244.1.10:40001 → 10.96.0.54:53`. */
export type SeenError = {
  readonly type: number
  readonly code: number
  readonly source: string
  readonly destination: string
  readonly inside: string
}

export type ErrorCapture = {
  /** Those since it was last read; waits for the first one, half a second at most. */
  readonly next: () => readonly SeenError[]
  readonly close: () => void
}

export function captureErrors(namespace: string): ErrorCapture {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-errors-'))
  const file = join(folder, 'frames.pcap')
  const options = ['-i', 'eth0', '-Q', 'in', '-U', '--immediate-mode', '-n', '-Z', 'root', '-w', file]
  const [program = '', ...args] = inside(namespace, ['tcpdump', ...options, 'icmp'])
  const child = spawn(program, args, { stdio: 'ignore', env: toolEnvironment })
  endWithUs(child)
  waitUntil('tcpdump listens', () => existsSync(file) && readFileSync(file).length >= 24)
  const frames = (): readonly SeenError[] => parsePcap(readFileSync(file)).flatMap(parseError)
  let read = 0
  return {
    next: () => {
      const end = Date.now() + 500
      waitUntil('an error', () => frames().length > read || Date.now() > end)
      const fresh = frames().slice(read)
      read += fresh.length
      return fresh
    },
    close: () => {
      child.kill('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function parseError(frame: Buffer): readonly SeenError[] {
  const ip = frame.subarray(14)
  const icmp = ip.subarray(((ip[0] ?? 0) & 15) * 4)
  const [type = 0, code = 0] = icmp
  if (type !== 3 && type !== 11) return []
  const carried = icmp.subarray(8)
  const ports = carried.subarray(((carried[0] ?? 0) & 15) * 4)
  const from = `${addressAt(carried, 12)}:${ports.readUInt16BE(0)}`
  const to = `${addressAt(carried, 16)}:${ports.readUInt16BE(2)}`
  return [{ type, code, source: addressAt(ip, 12), destination: addressAt(ip, 16), inside: `${from} → ${to}` }]
}

function addressAt(bytes: Buffer, offset: number): string {
  return [...bytes.subarray(offset, offset + 4)].join('.')
}
