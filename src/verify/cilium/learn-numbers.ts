/** Numbers that a node drew for itself, as its dump tells them: of endpoints, of label sets and of prefixes. */
import { parsePrefix } from '#base/prefix'
import type { FoundMap, FoundRow } from '#compile/cilium/found-map'
import type { Learned, NodeWorld } from '#compile/cilium/node-world'
import type { GivenIdentity } from '#compile/identities/identities'
import { type LabelSet, labelSet, parseLabel, printLabelSet } from '#compile/identities/label'
import { firstClusterNumber, firstLocalNumber, firstRemoteNodeNumber } from '#compile/identities/numbers'
import { prefixLabels } from '#compile/identities/prefix-identities'

/** `world` is the node without any of them: whose labels are in question. */
export function learnNumbers(world: NodeWorld, maps: readonly FoundMap[]): Learned {
  const rows = (kind: FoundMap['kind']): readonly FoundRow[] =>
    maps.filter((map) => map.kind === kind).flatMap((map) => map.rows)
  const ofEndpoints = [...rows('lxc'), ...rows('endpoints')]
  const listed = rows('identities').flatMap(listedIdentity)
  return {
    identities: [...listed, ...voted(world, [...ofEndpoints, ...rows('ipcache')], listed)],
    endpointIds: new Map(
      ofEndpoints.flatMap(({ key, fields }) =>
        fields.id === undefined || fields.host === 'yes' ? [] : [[key, Number(fields.id)]],
      ),
    ),
    prefixNumbers: new Map(rows('ipcache').flatMap(prefixNumber)),
  }
}

function listedIdentity({ key, fields }: FoundRow): readonly GivenIdentity[] {
  const number = Number(key)
  if (!isOfPods(number) || fields.labels === undefined) return []
  return [{ number, labels: labelSet(fields.labels.split(';').map((text) => parseLabel(text))) }]
}

function isOfPods(number: number): boolean {
  return number >= firstClusterNumber && number < firstLocalNumber - 1
}

/** Pods of one set of labels share a number: the one that most of their addresses have on the node. */
function voted(
  world: NodeWorld,
  rows: readonly FoundRow[],
  listed: readonly GivenIdentity[],
): readonly GivenIdentity[] {
  const known = new Set(listed.map(({ labels }) => printLabelSet(labels)))
  const taken = new Set(listed.map(({ number }) => number))
  const owners = new Map(world.pods.flatMap(({ labels, pod }) => pod.podIPs.map((ip) => [ip, labels] as const)))
  const votes = new Map<string, { readonly labels: LabelSet; readonly counts: Map<number, number> }>()
  for (const { key, fields } of rows) {
    const labels = owners.get(key.replace(/\/(?:32|128)$/, ''))
    const number = Number(fields.identity)
    if (labels === undefined || !isOfPods(number) || taken.has(number) || known.has(printLabelSet(labels))) continue
    const vote = votes.get(printLabelSet(labels)) ?? { labels, counts: new Map<number, number>() }
    votes.set(printLabelSet(labels), vote)
    vote.counts.set(number, (vote.counts.get(number) ?? 0) + 1)
  }
  return [...votes.values()].flatMap(({ labels, counts }) => {
    const [best] = [...counts].sort(([a, one], [b, other]) => other - one || a - b)
    return best === undefined ? [] : [{ number: best[0], labels }]
  })
}

function prefixNumber({ key, fields }: FoundRow): readonly (readonly [string, number])[] {
  const number = Number(fields.identity)
  const prefix = parsePrefix(key)?.prefix
  if (prefix === undefined || number < firstLocalNumber || number >= firstRemoteNodeNumber - 1) return []
  const label = prefixLabels(prefix, false).labels.find(({ source }) => source === 'cidr')
  return label === undefined ? [] : [[label.key, number]]
}
