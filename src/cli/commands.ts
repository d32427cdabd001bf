/** Every command, in the order `--help` lists them. */

import { addAgent } from './agent'
import { addBroker } from './broker'
import type { AddCommand } from './command'
import { addDemo } from './demo'
import { addDns } from './dns'
import { addEndpoints } from './endpoints'
import { addExplain } from './explain'
import { addFlows } from './flows'
import { addGenerate } from './generate'
import { addIptables } from './iptables'
import { addMaps } from './maps'
import { addNftables } from './nftables'
import { addPolicy } from './policy'
import { addResolvConf } from './resolv-conf'
import { addTrace } from './trace'
import { addWho } from './who'

export const commands: readonly AddCommand[] = [
  addEndpoints,
  addIptables,
  addNftables,
  addTrace,
  addExplain,
  addDns,
  addResolvConf,
  addPolicy,
  addMaps,
  addGenerate,
  addBroker,
  addFlows,
  addWho,
  addAgent,
  addDemo,
]
