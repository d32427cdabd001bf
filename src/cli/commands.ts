/** Every command, in the order `--help` lists them. */
import type { AddCommand } from './command'
import { addDemo } from './demo'
import { addEndpoints } from './endpoints'
import { addIptables } from './iptables'
import { addNftables } from './nftables'
import { addTrace } from './trace'

export const commands: readonly AddCommand[] = [addEndpoints, addIptables, addNftables, addTrace, addDemo]
