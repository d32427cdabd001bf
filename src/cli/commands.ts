/** Every command, in the order `--help` lists them. */
import type { AddCommand } from './command'
import { addDemo } from './demo'
import { addEndpoints } from './endpoints'
import { addIptables } from './iptables'
import { addTrace } from './trace'

export const commands: readonly AddCommand[] = [addEndpoints, addIptables, addTrace, addDemo]
