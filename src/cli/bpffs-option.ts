/** Where the datapath's pins lie, and the kernel as a test may have spoiled it: what the commands of a node share. */
import type { Command } from 'commander'
import type { Native } from '#kernel/native'
import type { Io } from './io'

export type BpffsOption = { readonly bpffs: string }

export function addBpffsOption(command: Command): Command {
  return command.option('--bpffs <dir>', 'a folder on a bpffs, for the pins', '/sys/fs/bpf/portolan')
}

/** Faults are for tests, so that they are never injected in silence. */
export async function openNative(io: Io): Promise<Native> {
  const { nativeOf } = await import('#kernel/faults')
  const faults = process.env.PORTOLAN_FAULTS ?? ''
  const native = nativeOf(faults)
  if (faults !== '') io.err(`note: faults are injected by PORTOLAN_FAULTS: ${faults}\n`)
  return native
}
