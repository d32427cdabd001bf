/** Whether this kernel and this process can run the datapath: each ability is tried, no version is compared. */
import { spawnSync } from 'node:child_process'
import { Failure } from '#base/failure'
import type { MapShape } from '#compile/bpf/map-shape'
import { snapshotShape } from '#compile/traffic-policy/datapath-maps'
import { clockProgram } from '#compile/traffic-policy/program-clock'
import { type Bpf, openBpf } from './bpf-sys'
import { checkBpffs } from './bpffs'
import { hasTcx } from './links'
import { closeMap, createMap } from './maps'
import { loadNative, type Native } from './native'
import { closeProgram, loadProgram, testRun } from './programs'

export type Preflight =
  | { readonly ok: true; readonly hooks: 'tcx' | 'clsact' }
  /** Every ability that is missing, as a sentence with the remedy. */
  | { readonly ok: false; readonly reasons: readonly string[] }

const shapes: readonly MapShape[] = [
  { name: 'probe_counters', type: 'perCpuArray', keySize: 4, valueSize: 16, maxEntries: 1 },
  { name: 'probe_conns', type: 'lruHash', keySize: 8, valueSize: 8, maxEntries: 64 },
  { name: 'probe_prefixes', type: 'prefixTrie', keySize: 8, valueSize: 4, maxEntries: 1 },
  { name: 'probe_programs', type: 'programArray', keySize: 4, valueSize: 4, maxEntries: 1 },
  { name: 'probe_events', type: 'ringBuffer', keySize: 0, valueSize: 0, maxEntries: 1 << 16 },
]

/** `folder` is where the bpffs is to be; it is left as it is found. */
export function runPreflight({
  folder,
  native,
}: {
  readonly folder?: string
  readonly native?: Native
} = {}): Preflight {
  const reasons: string[] = []
  const attempt = <T>(work: () => T): T | undefined => {
    try {
      return work()
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      const [sentence = error.message] = error.message.split('\n')
      if (!reasons.includes(sentence)) reasons.push(sentence)
      return undefined
    }
  }
  const bpf = attempt(() => openBpf(native ?? loadNative()))
  if (bpf === undefined) return { ok: false, reasons }
  for (const shape of shapes) attempt(() => closeMap(createMap(bpf, shape)))
  attempt(() => probeMapInMap(bpf))
  const hooks = attempt(() => probeProgram(bpf))
  if (folder !== undefined) attempt(() => checkBpffs(folder))
  return reasons.length === 0 && hooks !== undefined ? { ok: true, hooks } : { ok: false, reasons }
}

function probeMapInMap(bpf: Bpf): void {
  const inner = createMap(bpf, snapshotShape())
  try {
    const shape: MapShape = { name: 'probe_bound', type: 'arrayOfMaps', keySize: 4, valueSize: 4, maxEntries: 1 }
    closeMap(createMap(bpf, shape, inner))
  } finally {
    closeMap(inner)
  }
}

/** Loads, runs once, and asks which way leads onto an interface. */
function probeProgram(bpf: Bpf): 'tcx' | 'clsact' {
  const program = loadProgram(bpf, 'probe_clock', clockProgram(), () => 0)
  try {
    testRun(bpf, program.fd, { packet: Buffer.alloc(64) })
    if (hasTcx(bpf, program.fd)) return 'tcx'
  } finally {
    closeProgram(program)
  }
  const tc = spawnSync('tc', ['-Version'], {
    env: { ...process.env, PATH: `${process.env.PATH ?? ''}:/usr/sbin:/sbin` },
  })
  if (tc.status === 0) return 'clsact'
  throw new Failure(
    'kernel.unsupported',
    'this kernel has no TCX (it came with Linux 6.6), and tc, by which older ones are reached, is not installed; install iproute2',
  )
}
