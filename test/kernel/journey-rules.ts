/** The rules of kube-proxy that the project computes, in the nodes of a laboratory. */
import { printSave } from '#compile/iptables/print-save'
import { savedRuleset } from '#compile/iptables/render-iptables'
import { printList } from '#compile/nftables/print-list'
import { rulesetOf } from '#compile/nftables/ruleset'
import { nodeIptables } from '#compile/node/node-iptables'
import { nodeNftables } from '#compile/node/node-nftables'
import type { JourneyWorld } from '#trace/journey/journey-world'
import type { JourneyLab } from './journey-lab'

export const journeyNodes = ['n1', 'n2', 'n3'] as const

export type Datapath = 'iptables' | 'nftables'

/** In the place of whatever rules there were. */
export function loadRules(lab: JourneyLab, { setting }: JourneyWorld, datapath: Datapath): void {
  const { cluster, slices, settings } = setting
  for (const node of journeyNodes) {
    const options = { family: 'ipv4', node, settings } as const
    lab.run(node, ['nft', 'flush', 'ruleset'])
    if (datapath === 'iptables') {
      const { sync } = nodeIptables(cluster, slices, options).value
      lab.run(node, ['iptables-restore'], printSave(savedRuleset(sync), { date: 'now' }))
    } else {
      const { table } = nodeNftables(cluster, slices, { ...options, layout: '1.34' }).value
      lab.run(node, ['nft', '-f', '-'], printList(rulesetOf([table])))
    }
  }
}
