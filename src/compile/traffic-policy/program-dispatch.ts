/** The little program of one interface and direction: names its slot and jumps into the datapath's program. */
import { assemble, type Program } from '#compile/bpf/assemble'
import { createAssembler, reg } from '#compile/bpf/assembler'
import { configLayout, modeNumbers } from './datapath-maps'
import { context } from './program-frame'

/**
 * Interface indexes are numbers of a network namespace, slots are ours: the same tables serve interfaces of many
 * namespaces, and a new version of the datapath is put under all of them by one write.
 */
export function dispatchProgram(slot: number, programNumber: number): Program {
  const a = createAssembler()
  const passes = a.newLabel('passes')
  a.loadMapValue(2, 'config', 0)
  a.load('u32', 3, 2, configLayout.mode)
  a.jumpIf('eq', 3, modeNumbers.off, passes)
  a.mov(4, slot)
  a.store('u32', 1, context.slot, reg(4))
  a.loadMap(2, 'programs')
  a.mov(3, programNumber)
  a.call('tail_call')
  // Only reached when the array is empty: undecided is denied where policy is enforced.
  a.loadMapValue(2, 'config', 0)
  a.load('u32', 3, 2, configLayout.mode)
  a.jumpIf('ne', 3, modeNumbers.enforce, passes)
  a.mov(0, 2)
  a.exit()
  a.place(passes)
  a.mov(0, -1)
  a.exit()
  return assemble(a.listing)
}
