/** `portolan path --datapath cilium`: the walk by the maps of every node. */
import type { Walk } from '#model/walk'
import { prepareCilium } from '#trace/cilium/cilium-net'
import { walkCilium } from '#trace/cilium/walk-cilium'
import type { PathAsked } from './path-asked'

export function walkPathOfCilium({ cluster, slices, question, cilium, devices }: PathAsked): Walk {
  const net = prepareCilium(cluster, { slices, cilium: { version: cilium }, devices })
  return walkCilium(net, question)
}
