/** A walker of `portolan path` made ready for many packets, and the names that Hubble would give to their ends. */
import type { Finding } from '#base/finding'
import type { Walk, WalkQuestion } from '#model/walk'
import type { NameEnd } from '#verify/flows/name-ends'
import type { PathAsked } from './path-asked'

export type PreparedWalker = {
  /** Each packet finds what was there at first: none leaves a trace for the next. */
  readonly walk: (question: WalkQuestion) => Walk
  readonly describe: NameEnd
  readonly findings: readonly Finding[]
}

export async function prepareWalker(asked: Omit<PathAsked, 'question'>): Promise<PreparedWalker> {
  const { ciliumNames, plainNames } = await import('#verify/flows/name-ends')
  if (asked.datapath === 'cilium') {
    const { prepareCilium } = await import('#trace/cilium/cilium-net')
    const { walkCilium } = await import('#trace/cilium/walk-cilium')
    const { cluster, slices, cilium, devices } = asked
    const net = prepareCilium(cluster, { slices, cilium: { version: cilium }, devices })
    return { walk: (question) => walkCilium(net, question), describe: ciliumNames(net), findings: [] }
  }
  const { journeyOf } = await import('./path-journey')
  const { walkJourney } = await import('#trace/journey/walk-journey')
  const world = journeyOf(asked)
  return {
    walk: (question) => walkJourney(world, question),
    describe: plainNames(asked.cluster),
    findings: asked.kubeProxy?.findings ?? [],
  }
}
