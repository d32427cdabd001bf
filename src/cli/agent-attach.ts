/** `portolan agent attach`: an interface is put under policy, before its link is up: from a CNI chain, or for an edge. */
import { type Command, Option } from 'commander'
import { modeNumbers } from '#compile/traffic-policy/datapath-maps'
import type { Attached } from '#kernel/attach-once'
import { addBpffsOption, type BpffsOption, openNative } from './bpffs-option'
import type { CommandContext, ExitCode } from './command'
import type { Io } from './io'
import { asInterface, asNumber } from './options'

type AttachOptions = BpffsOption & {
  readonly netns?: string
  readonly side?: 'host' | 'workload'
  readonly vpc?: number
  readonly mode?: keyof typeof modeNumbers
  readonly output: 'text' | 'json'
}

export function addAgentAttach(agent: Command, { io, end }: CommandContext): void {
  const command = agent
    .command('attach')
    .description('put an interface under policy before its link is up: without a published policy it denies everything')
    .argument('<interface>', 'its name', asInterface)
    .option('--netns <name|path>', 'the network namespace it is in, as of ip-netns or as /proc/PID/ns/net')
    .addOption(
      new Option(
        '--side <side>',
        'which end of the link it is (default: workload with --netns, host without): what leaves the host’s end is ingress',
      ).choices(['host', 'workload']),
    )
    .option('--vpc <number>', 'the VPC whose prefixes give its packets a path class', asNumber(0, 0xffffffff))
    .addOption(
      new Option('--mode <mode>', 'the mode, where none was set on this node yet (default: off)')
        .choices(Object.keys(modeNumbers))
        .env('GALACTIC_CNI_TRAFFIC_POLICY'),
    )
  addBpffsOption(command)
    .addOption(new Option('-o, --output <format>', 'output').choices(['text', 'json']).default('text'))
    .action(async (name: string) => {
      // Options that `agent` has as well are taken by it, wherever they stand.
      end(await runAttach(io, name, command.optsWithGlobals<AttachOptions>()))
    })
}

async function runAttach(io: Io, name: string, options: AttachOptions): Promise<ExitCode> {
  const native = await openNative(io)
  const { attachOnce } = await import('#kernel/attach-once')
  const { netns, side = netns === undefined ? 'host' : 'workload', vpc, mode } = options
  const attached = attachOnce({
    name,
    folder: options.bpffs,
    native,
    side,
    ...(netns !== undefined && { namespacePath: netns.includes('/') ? netns : `/run/netns/${netns}` }),
    ...(vpc !== undefined && { vpc }),
    ...(mode !== undefined && { startMode: mode }),
  })
  const shown = describeAttached(attached, netns)
  io.out(options.output === 'json' ? `${JSON.stringify(shown, undefined, 2)}\n` : printShown(shown))
  for (const note of notesOf(attached, options)) io.err(`note: ${note}\n`)
  return 0
}

type Shown = Readonly<Record<string, string | number | boolean>>

function describeAttached({ held, isNew, hooks, mode }: Attached, netns: string | undefined): Shown {
  return {
    interface: held.name,
    index: held.index,
    ...(netns !== undefined && { netns }),
    side: held.side,
    vpc: held.vpc,
    slot: held.slot,
    token: held.token.toString(16).padStart(16, '0'),
    hooks,
    mode: mode ?? 'unknown',
    attached: isNew ? 'now' : 'before',
  }
}

function printShown(shown: Shown): string {
  return Object.entries(shown)
    .map(([key, value]) => `${key.padEnd(11)}${value}\n`)
    .join('')
}

function notesOf({ held, isNew, wasUp, mode }: Attached, asked: AttachOptions): readonly string[] {
  const wrong =
    mode === asked.mode || asked.mode === undefined
      ? []
      : [`the mode of this node was set before and stays; change it with portolan agent mode ${asked.mode}`]
  const idle = mode === 'off' ? ['the mode is off: nothing is denied until portolan agent mode enforce'] : []
  const late = isNew && wasUp ? [`${held.name} was up already: what passed before was not decided`] : []
  return [...wrong, ...idle, ...late]
}
