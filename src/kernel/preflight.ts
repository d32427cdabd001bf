/** Whether this kernel and this process can run the datapath: each ability is tried, no version is compared. */
import { spawnSync } from 'node:child_process'
import { Failure } from '#base/failure'
import { listOf } from '#base/text'
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
  /**
   * Every ability that is missing, as a sentence with the remedy. Where a capability is, that tells of this process and
   * not of the node.
   */
  | { readonly ok: false; readonly reasons: readonly string[]; readonly isOnlyThisProcess: boolean }

const shapes: readonly MapShape[] = [
  { name: 'tp_counters', type: 'perCpuArray', keySize: 4, valueSize: 16, maxEntries: 1 },
  { name: 'tp_connections', type: 'lruHash', keySize: 8, valueSize: 8, maxEntries: 64 },
  { name: 'tp_prefixes', type: 'prefixTrie', keySize: 8, valueSize: 4, maxEntries: 1 },
  { name: 'tp_programs', type: 'programArray', keySize: 4, valueSize: 4, maxEntries: 1 },
  { name: 'tp_events', type: 'ringBuffer', keySize: 0, valueSize: 0, maxEntries: 1 << 16 },
]

/** `folder` is where the bpffs is to be; it is left as it is found. */
export function runPreflight({
  folder,
  native,
}: {
  readonly folder?: string
  readonly native?: Native
} = {}): Preflight {
  const sentences: string[] = []
  let isOnlyThisProcess = false
  const attempt = <T>(work: () => T): T | undefined => {
    try {
      return work()
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      const [sentence = error.message] = error.message.split('\n')
      sentences.push(sentence)
      if (error.code === 'kernel.not-permitted') isOnlyThisProcess = true
      return undefined
    }
  }
  const bpf = attempt(() => openBpf(native ?? loadNative()))
  if (bpf === undefined) return { ok: false, reasons: sentences, isOnlyThisProcess }
  for (const shape of shapes) attempt(() => closeMap(createMap(bpf, shape)))
  attempt(() => probeMapInMap(bpf))
  const hooks = attempt(() => probeProgram(bpf))
  if (folder !== undefined) attempt(() => checkBpffs(folder))
  return sentences.length === 0 && hooks !== undefined
    ? { ok: true, hooks }
    : { ok: false, reasons: joinByReason(sentences), isOnlyThisProcess }
}

/** One sentence a remedy: where a capability is missing, all that needs it fails alike. */
function joinByReason(sentences: readonly string[]): readonly string[] {
  const separator = ' failed: '
  const triedByWhy = new Map<string, Set<string>>()
  for (const sentence of sentences) {
    const at = sentence.indexOf(separator)
    const why = at < 0 ? sentence : sentence.slice(at + separator.length)
    const tried = triedByWhy.get(why) ?? new Set()
    if (at >= 0) tried.add(sentence.slice(0, at))
    triedByWhy.set(why, tried)
  }
  return [...triedByWhy].map(([why, tried]) => (tried.size === 0 ? why : `${listOf([...tried])}${separator}${why}`))
}

/** Refuses with every ability that is missing, before anything is made. */
export function checkPreflight(place: Parameters<typeof runPreflight>[0]): Extract<Preflight, { ok: true }> {
  const preflight = runPreflight(place)
  if (preflight.ok) return preflight
  const [first = '', ...more] = preflight.reasons
  throw new Failure('kernel.unsupported', more.length === 0 ? first : preflight.reasons.join('\n'))
}

function probeMapInMap(bpf: Bpf): void {
  const inner = createMap(bpf, snapshotShape())
  try {
    const shape: MapShape = { name: 'tp_bound', type: 'arrayOfMaps', keySize: 4, valueSize: 4, maxEntries: 1 }
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
