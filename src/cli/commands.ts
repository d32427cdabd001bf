/** Every command, in the order `--help` lists them. */
import type { AddCommand } from './command'
import { addDemo } from './demo'
import { addDns } from './dns'
import { addEndpoints } from './endpoints'
import { addExplain } from './explain'
import { addIptables } from './iptables'
import { addNftables } from './nftables'
import { addResolvConf } from './resolv-conf'
import { addTrace } from './trace'

export const commands: readonly AddCommand[] = [
  addEndpoints,
  addIptables,
  addNftables,
  addTrace,
  addExplain,
  addDns,
  addResolvConf,
  addDemo,
]
