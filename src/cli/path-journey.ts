/** The walker of `portolan path` between nodes that run kube-proxy, and the state that it is given. */
import { basename } from 'node:path'
import { Failure } from '#base/failure'
import type { Finding } from '#base/finding'
import { countOf } from '#base/text'
import type { Cluster } from '#model/cluster'
import type { StateRow, Walk } from '#model/walk'
import { type ConntrackEntry, parseConntrackLines } from '#trace/conntrack-entry'
import { journeyFinding } from '#trace/journey/findings'
import { type JourneyWorld, journeyWorld } from '#trace/journey/journey-world'
import { walkJourney } from '#trace/journey/walk-journey'
import type { GivenState, PathAsked } from './path-asked'

/** A world serves many packets. */
export function journeyOf(asked: Omit<PathAsked, 'question'>): JourneyWorld {
  const { cluster, slices, datapath, kubeProxy } = asked
  const { conntrack, remembered } = readState(asked)
  return journeyWorld({
    cluster,
    slices,
    datapath: datapath === 'nftables' ? 'nftables' : 'iptables',
    settings: kubeProxy?.settings ?? {},
    ...(kubeProxy?.layout !== undefined && { layout: kubeProxy.layout }),
    ...(kubeProxy?.serviceCidrs !== undefined && { serviceCidrs: kubeProxy.serviceCidrs }),
    rulesets: kubeProxy?.rulesets ?? new Map(),
    conntrack,
    remembered,
    seed: 1,
  })
}

export function walkKubeProxy(asked: PathAsked): Walk {
  const walked = walkJourney(journeyOf(asked), asked.question)
  const { findings } = readState(asked)
  return { ...walked, findings: [...(asked.kubeProxy?.findings ?? []), ...findings, ...walked.findings] }
}

type State = {
  readonly conntrack: ReadonlyMap<string, readonly ConntrackEntry[]>
  readonly remembered: readonly StateRow[]
  readonly findings: readonly Finding[]
}

function readState({ state, cluster }: Pick<PathAsked, 'state' | 'cluster'>): State {
  const conntrack = new Map<string, readonly ConntrackEntry[]>()
  const remembered: StateRow[] = []
  const findings: Finding[] = []
  for (const given of state) {
    const node = nodeOf(given, cluster)
    const list = recentList(given)
    if (list !== undefined) {
      const lines = given.text.split('\n').filter((line) => line.trim() !== '')
      remembered.push(...lines.map((row) => ({ node, table: `xt_recent ${list}`, row: row.trim(), isNew: false })))
      continue
    }
    const { entries, badLines } = parseConntrackLines(given.text)
    conntrack.set(node, [...(conntrack.get(node) ?? []), ...entries])
    if (badLines.length > 0) {
      const message = `${given.file}: ${countOf(badLines.length, 'line')} that ${badLines.length === 1 ? 'is' : 'are'} no tracked connection left out, the first in line ${badLines[0]}`
      findings.push(journeyFinding('path.state-bad-line', message, 'take the table with conntrack -L, without -o xml'))
    }
  }
  return { conntrack, remembered, findings }
}

/** Of a single node the table need not say so. */
function nodeOf({ node, file }: GivenState, { nodes }: Cluster): string {
  const [only, second] = nodes.keys()
  if (node !== undefined) return node
  if (only !== undefined && second === undefined) return only
  throw new Failure('usage.bad-argument', `--state ${file} is of no node; write NODE=FILE`)
}

/** Lists are files under /proc/net/xt_recent that are named after them. */
function recentList({ file, text }: GivenState): string | undefined {
  return /^src=\S+ ttl: \d+ last_seen:/.test(text.trimStart()) ? basename(file) : undefined
}
