/** `portolan demo`: a guided tour over the sample cluster that comes with Portolan. */
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import type { CommandContext } from './command'

export function addDemo(program: Command, { io, end }: CommandContext): void {
  program
    .command('demo')
    .description('a guided tour over a bundled sample cluster')
    .action(async () => {
      io.out(`${fileURLToPath(new URL('../samples/shop', import.meta.url))}\n`)
      end(0)
    })
}
