/** `portolan agent`: the commands about a node's datapath, each in a file of its own. */
import type { Command } from 'commander'
import { addAgentAttach } from './agent-attach'
import { addAgentMode } from './agent-mode'
import type { AddCommand, CommandContext } from './command'

const commands: readonly AddCommand[] = [addAgentAttach, addAgentMode]

export function addAgent(program: Command, context: CommandContext): void {
  const agent = program
    .command('agent')
    .description('traffic policy in the kernel of this node: put an interface under it, read or change its mode')
  for (const add of commands) add(agent, context)
}
