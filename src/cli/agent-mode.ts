/** `portolan agent mode`: what this node's datapath does with policy, read from its pinned table or changed in it. */
import { Argument, type Command, Option } from 'commander'
import { modeNumbers } from '#compile/traffic-policy/datapath-maps'
import type { NodeMode } from '#kernel/node-mode'
import { addBpffsOption, type BpffsOption, openNative } from './bpffs-option'
import type { CommandContext, ExitCode } from './command'
import type { Io } from './io'

type Mode = keyof typeof modeNumbers
type ModeOptions = BpffsOption & { readonly output: 'text' | 'json' }

export function addAgentMode(agent: Command, { io, end }: CommandContext): void {
  const command = agent
    .command('mode')
    .description('what this node does with policy; exit code 1 where the kernel cannot do it, 3 where it is unknown')
    .addArgument(
      new Argument(
        '[mode]',
        'set it: off decides nothing, audit decides and counts, enforce drops what is denied',
      ).choices(Object.keys(modeNumbers)),
    )
  addBpffsOption(command)
    .addOption(new Option('-o, --output <format>', 'output').choices(['text', 'json']).default('text'))
    .action(async (mode: Mode | undefined) => {
      // Options that `agent` has as well are taken by it, wherever they stand.
      end(await runMode(io, mode, command.optsWithGlobals<ModeOptions>()))
    })
}

const codes: Readonly<Record<NodeMode['mode'], ExitCode>> = { off: 0, audit: 0, enforce: 0, unsupported: 1, unknown: 3 }

async function runMode(io: Io, mode: Mode | undefined, { bpffs: folder, output }: ModeOptions): Promise<ExitCode> {
  const native = await openNative(io)
  const { readNodeMode, setNodeMode } = await import('#kernel/node-mode')
  if (mode !== undefined) setNodeMode({ folder, native }, mode)
  const found = readNodeMode({ folder, native })
  io.out(output === 'json' ? `${JSON.stringify(found, undefined, 2)}\n` : `${found.mode}\n`)
  if (found.mode === 'unsupported') io.err(`${found.asked} was set, and this node cannot do it: nothing is protected\n`)
  if ('reasons' in found) for (const reason of found.reasons) io.err(`${reason}\n`)
  return codes[found.mode]
}
