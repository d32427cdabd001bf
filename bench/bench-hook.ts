/** Nanoseconds a packet on a device's ingress hook: XDP makes frames of a test packet, and what hangs on the hook drops them. */
import { closeSync } from 'node:fs'
import { assemble } from '#compile/bpf/assemble'
import { createAssembler } from '#compile/bpf/assembler'
import { type Bpf, succeed } from '#kernel/bpf-sys'
import { createLink } from '#kernel/links'
import { insideNamespace } from '#kernel/network-namespace'
import { createNamespaces, inside, removeNamespaces } from '../test/kernel/namespace'
import { mustRun } from '../test/kernel/run-command'
import { firstPort } from './bench-ports'

/** A run has some 20 ms of its own, whatever it sends. */
const frames = 200_000
const liveFrames = 2
const xdpType = 6
const loopback = 1

export type HookTimes = Readonly<Record<'drop' | 'datapath' | 'nftables', number>>

type Measured = {
  readonly rounds: number
  readonly drop: number
  readonly datapath: number
  readonly frame: Uint8Array
}

export function measureOnHook(bpf: Bpf, { rounds, drop, datapath, frame }: Measured): HookTimes {
  const [namespace = ''] = createNamespaces(['hook'])
  const times = {
    drop: Number.POSITIVE_INFINITY,
    datapath: Number.POSITIVE_INFINITY,
    nftables: Number.POSITIVE_INFINITY,
  }
  const note = (name: keyof HookTimes, time: number): void => {
    times[name] = Math.min(times[name], time)
  }
  mustRun(['ip', '-n', namespace, 'link', 'set', 'lo', 'up'])
  const xdp = loadPass(bpf)
  const send = (): number => sendFrames(bpf, xdp, frame)
  try {
    for (let round = 0; round < rounds; round++) {
      for (const [name, program] of [['drop', drop] as const, ['datapath', datapath] as const]) {
        insideNamespace(bpf.native, `/run/netns/${namespace}`, () => {
          const link = createLink(bpf, 'ingress', program, loopback)
          note(name, send())
          closeSync(link)
        })
      }
      mustRun(inside(namespace, ['nft', '-f', '-']), linearRules())
      insideNamespace(bpf.native, `/run/netns/${namespace}`, () => note('nftables', send()))
      mustRun(inside(namespace, ['nft', 'flush', 'ruleset']))
    }
  } finally {
    closeSync(xdp)
    removeNamespaces([namespace])
  }
  return times
}

function linearRules(): string {
  const rules = Array.from({ length: 64 }, (_, rule) => `ip saddr 10.0.0.0/8 udp dport ${firstPort + rule} accept`)
  const chain = 'type filter hook ingress device "lo" priority 0; policy drop;'
  return `table netdev bench { chain ingress { ${chain}\n${rules.join('\n')}\n}\n}\n`
}

function loadPass(bpf: Bpf): number {
  const a = createAssembler()
  a.mov(0, 2)
  a.exit()
  const { bytes } = assemble(a.listing)
  const license = Buffer.from('Apache-2.0\0')
  const result = bpf.call('programLoad', 'load bench_xdp', (attributes) => {
    attributes.u32(0, xdpType)
    attributes.u32(4, bytes.length / 8)
    attributes.pointer(8, bytes)
    attributes.pointer(16, license)
    attributes.name(48, 'bench_xdp')
  })
  return succeed(result, 'loading an XDP program')
}

function sendFrames(bpf: Bpf, xdp: number, frame: Uint8Array): number {
  const start = process.hrtime.bigint()
  const result = bpf.call('testRun', 'live frames', (attributes) => {
    attributes.u32(0, xdp)
    attributes.u32(8, frame.length)
    attributes.pointer(16, frame)
    attributes.u32(32, frames)
    attributes.u32(64, liveFrames)
  })
  succeed(result, 'sending frames')
  return Number(process.hrtime.bigint() - start) / frames
}
