/** `portolan path --datapath cilium`: the walk by the maps of every node, from the state that is given. */
import type { Finding } from '#base/finding'
import type { Walk } from '#model/walk'
import { prepareCilium } from '#trace/cilium/cilium-net'
import { readState } from '#trace/cilium/read-state'
import { newState } from '#trace/cilium/state-tables'
import { walkCilium } from '#trace/cilium/walk-cilium'
import type { PathAsked } from './path-asked'

export function walkPathOfCilium({ cluster, slices, question, cilium, devices, state: given }: PathAsked): Walk {
  const net = prepareCilium(cluster, { slices, cilium: { version: cilium }, devices })
  const state = newState(cilium)
  const usual = question.source.node ?? question.entryNode ?? question.destination.node ?? net.nodeNames[0] ?? ''
  const findings = readState(state, given, usual)
  const walk = walkCilium(net, question, state)
  return { ...walk, findings: [...findings, ...walk.findings.map(tellDatapath)] }
}

/** Nothing tells that these nodes run Cilium at all: the choice of another datapath stands beside what is assumed. */
function tellDatapath(finding: Finding): Finding {
  if (finding.code !== 'maps.no-config') return finding
  const other = 'where the nodes run kube-proxy, add --datapath iptables or nftables'
  return { ...finding, hint: finding.hint === undefined ? other : `${finding.hint}; ${other}` }
}
