/** `portolan policy`: the commands about network policies and traffic policies, each in a file of its own. */
import type { Command } from 'commander'
import type { AddCommand, CommandContext } from './command'
import { addPolicyAudit } from './policy-audit'
import { addPolicyDiff } from './policy-diff'
import { addPolicyEval } from './policy-eval'
import { addPolicyExplain } from './policy-explain'
import { addPolicyLint } from './policy-lint'
import { addPolicyMatrix } from './policy-matrix'
import { addPolicyShow } from './policy-show'

const commands: readonly AddCommand[] = [
  addPolicyEval,
  addPolicyMatrix,
  addPolicyDiff,
  addPolicyLint,
  addPolicyExplain,
  addPolicyShow,
  addPolicyAudit,
]

export function addPolicy(program: Command, context: CommandContext): void {
  const policy = program
    .command('policy')
    .description(
      'network policies: may a packet pass, who may reach whom, what differs, what is suspicious, what would have been denied',
    )
  for (const add of commands) add(policy, context)
}
