/** The datapath's programs with a mark at each branch, so that it can be told which of them packets took. */
import { assemble, type Program } from '#compile/bpf/assemble'
import { createAssembler, type ListingLine } from '#compile/bpf/assembler'
import { classCodes, framePointer, jumpAlways } from '#compile/bpf/instruction-codes'
import type { MapShape } from '#compile/bpf/map-shape'
import { type DatapathMap, programNumbers } from '#compile/traffic-policy/datapath-maps'
import { datapathListing } from '#compile/traffic-policy/program-datapath'
import { stack } from '#compile/traffic-policy/program-frame'
import { createMap, lookUp, numberKey, update } from '#kernel/maps'
import { measureTicksPerSecond } from '#kernel/measure-ticks'
import { closeProgram, loadProgram } from '#kernel/programs'
import type { DatapathCase } from './datapath-case'

const branchMap = 'branches'
/** Below all that the programs keep there. */
const spill = Math.floor((Math.min(...Object.values(stack)) - 8) / 8) * 8

export type BranchMarks = {
  /** The branches that no packet took, each as its program and what it follows. */
  readonly untaken: () => readonly string[]
  readonly count: number
}

/** Puts marked programs in the places of the usual ones. */
export function markBranches({ bpf, tables }: DatapathCase, readsDirectly = true): BranchMarks {
  const ticksPerSecond = measureTicksPerSecond(bpf)
  const marked = (['ethernet', 'ip'] as const).flatMap((linkLayer) =>
    (['ingress', 'egress'] as const).map((direction) => {
      const { program, names } = mark(datapathListing({ direction, linkLayer, ticksPerSecond, readsDirectly }))
      const shape: MapShape = {
        name: 'test_branches',
        type: 'array',
        keySize: 4,
        valueSize: names.length,
        maxEntries: 1,
      }
      const map = createMap(bpf, shape)
      const fdOf = (name: string): number => (name === branchMap ? map : tables[name as DatapathMap]).fd
      const loaded = loadProgram(bpf, 'test_marked', program, fdOf)
      update(bpf, tables.programs, numberKey(programNumbers[linkLayer][direction]), numberKey(loaded.fd))
      closeProgram(loaded)
      const live = new Set(program.relocations.flatMap((one) => (one.map === branchMap ? [one.valueOffset ?? 0] : [])))
      return { map, names, live, direction, title: `${linkLayer} ${direction}` }
    }),
  )
  return {
    count: marked.reduce((sum, { live }) => sum + live.size, 0),
    untaken: () => {
      const taken = marked.map(({ map, names }) => lookUp(bpf, map, numberKey(0)) ?? Buffer.alloc(names.length))
      return marked.flatMap(({ names, live, title, direction }, of) =>
        names.flatMap((name, index) => {
          const isTaken = marked.some((other, at) => {
            const same = at === of ? index : placeOfSame(names, index, other.names)
            return other.direction === direction && same !== undefined && taken[at]?.[same] === 1
          })
          return live.has(index) && !isTaken ? [`${title}: ${name}`] : []
        }),
      )
    },
  }
}

/** From where IP begins on the programs of both link layers are one: a packet of either tells of both. */
function placeOfSame(names: readonly string[], index: number, others: readonly string[]): number | undefined {
  return index < names.indexOf('ipv4') ? undefined : others.length - (names.length - index)
}

function mark(listing: readonly ListingLine[]): { readonly program: Program; readonly names: readonly string[] } {
  const names: string[] = []
  let last = 'start'
  const lines = listing.flatMap((line): readonly ListingLine[] => {
    if ('place' in line) {
      last = line.place.label
      names.push(last)
      return [line, ...markLines(names.length - 1)]
    }
    const kind = line.opcode & 7
    const isJump = kind === classCodes.jmp || kind === classCodes.jmp32
    if (!isJump || line.target === undefined || (line.opcode & 0xf0) === jumpAlways) return [line]
    names.push(`${last}, not to ${line.target.label}`)
    return [line, ...markLines(names.length - 1)]
  })
  return { program: assemble(lines), names }
}

/** A register that always holds something is put aside for it. */
function markLines(index: number): readonly ListingLine[] {
  const a = createAssembler()
  a.store('u64', framePointer, spill, { reg: 6 })
  a.loadMapValue(6, branchMap, index)
  a.store('u8', 6, 0, 1)
  a.load('u64', 6, framePointer, spill)
  return a.listing
}
