/** `portolan agent`: the loop of a node, and the commands about its datapath, each in a file of its own. */
import type { Command } from 'commander'
import { addAgentAttach } from './agent-attach'
import { addAgentMode } from './agent-mode'
import { addAgentRun } from './agent-run'
import type { AddCommand, CommandContext } from './command'

const commands: readonly AddCommand[] = [addAgentRun, addAgentAttach, addAgentMode]

export function addAgent(program: Command, context: CommandContext): void {
  const agent = program
    .command('agent')
    .description(
      'traffic policy in the kernel of this node: install what its interfaces are to have, and say what became of it',
    )
  for (const add of commands) add(agent, context)
}
