/** The datapath's programs in the array that the interfaces' own programs jump through. */
import { createHash } from 'node:crypto'
import { type DatapathMap, numberRows, programNumbers } from '#compile/traffic-policy/datapath-maps'
import { datapathProgram } from '#compile/traffic-policy/program-datapath'
import type { LinkLayer } from '#compile/traffic-policy/program-frame'
import type { Bpf } from './bpf-sys'
import { readNumber, type Tables, writeNumber } from './datapath-tables'
import { numberKey, update } from './maps'
import { measureTicksPerSecond } from './measure-ticks'
import { closeProgram, loadProgram } from './programs'

const linkLayers: readonly LinkLayer[] = ['ethernet', 'ip']
const directions = ['ingress', 'egress'] as const

/** Whether they had to be loaded: an array that this version filled before, and noted so, is left alone. */
export function ensurePrograms(bpf: Bpf, tables: Tables): boolean {
  if (readNumber(bpf, tables, numberRows.fingerprint) === fingerprint()) return false
  const ticksPerSecond = measureTicksPerSecond(bpf)
  const fdOf = (name: string): number => tables[name as DatapathMap].fd
  for (const linkLayer of linkLayers) {
    for (const direction of directions) {
      const program = datapathProgram({ direction, linkLayer, ticksPerSecond, readsDirectly: true })
      const loaded = loadProgram(bpf, `tp_${linkLayer}_${direction}`, program, fdOf)
      try {
        update(bpf, tables.programs, numberKey(programNumbers[linkLayer][direction]), numberKey(loaded.fd))
      } finally {
        closeProgram(loaded)
      }
    }
  }
  return true
}

export function notePrograms(bpf: Bpf, tables: Tables): void {
  writeNumber(bpf, tables, numberRows.fingerprint, fingerprint())
}

/** Of the code alone: tick lengths and table numbers do not change while the array lives. */
function fingerprint(): bigint {
  const hash = createHash('sha256')
  for (const linkLayer of linkLayers) {
    for (const direction of directions) {
      hash.update(datapathProgram({ direction, linkLayer, ticksPerSecond: 1, readsDirectly: true }).bytes)
    }
  }
  return hash.digest().readBigUInt64LE(0)
}
