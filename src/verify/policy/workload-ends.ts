/** The workloads of a matrix: pods of one owner together where labels and policies agree on them, else each by itself. */
import { compareText } from '#base/text'
import type { Cluster } from '#model/cluster'
import type { Pod } from '#model/pod'
import type { Party } from '#trace/policy/party'
import { hasEnded } from '#trace/policy/party-facts'
import type { WorkloadEnd } from './matrix'
import type { Lanes } from './matrix-lanes'
import { givenLabels, ownerOf, type PodOwner } from './pod-owner'

type Group = { readonly owner: PodOwner; readonly pods: [Pod, ...Pod[]]; readonly labels: Set<string> }

/** Sorted by name. `others` are parties outside, which may tell pods apart as well. */
export function workloadEnds(cluster: Cluster, lanes: Lanes, others: () => readonly number[]): readonly WorkloadEnd[] {
  const groups = groupPods(cluster)
  let known: ReadonlySet<number> | undefined
  const classes = (): ReadonlySet<number> => {
    known ??= new Set([
      ...others(),
      ...groups.flatMap(({ pods }) => pods.map((pod) => lanes.classOf({ kind: 'pod', pod }))),
    ])
    return known
  }
  return groups.flatMap((group) => endsOf(group, { lanes, classes })).sort((a, b) => compareText(a.name, b.name))
}

function groupPods(cluster: Cluster): readonly Group[] {
  const groups = new Map<string, Group>()
  for (const pod of cluster.pods.values()) {
    if (hasEnded(pod)) continue
    const owner = ownerOf(cluster, pod)
    const key = nameOf(owner)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, { owner, pods: [pod], labels: new Set([givenLabels(pod)]) })
    else {
      group.pods.push(pod)
      group.labels.add(givenLabels(pod))
    }
  }
  return [...groups.values()]
}

function nameOf({ kind, namespace, name }: PodOwner): string {
  return `${namespace}/${name}[${kind}]`
}

type Comparison = { readonly lanes: Lanes; readonly classes: () => ReadonlySet<number> }

function endsOf({ owner, pods, labels }: Group, comparison: Comparison): readonly WorkloadEnd[] {
  const { namespace } = owner
  const isOne = labels.size === 1 && areAlike(pods, comparison)
  if (isOne) return [{ kind: 'workload', name: nameOf(owner), namespace, members: partiesOf(pods) }]
  return pods.map((pod) => ({
    kind: 'workload',
    name: nameOf({ kind: 'Pod', namespace, name: pod.meta.name }),
    namespace,
    members: partiesOf([pod]),
  }))
}

function partiesOf([first, ...rest]: readonly [Pod, ...Pod[]]): readonly [Party, ...Party[]] {
  const partyOf = (pod: Pod): Party => ({ kind: 'pod', pod })
  return [partyOf(first), ...rest.map(partyOf)]
}

/** Classes may differ in what no rule asks of them: what counts is who may reach whom. */
function areAlike(pods: readonly Pod[], { lanes, classes }: Comparison): boolean {
  const own = [...new Set(pods.map((pod) => lanes.classOf({ kind: 'pod', pod })))]
  const [first = 0, ...rest] = own
  if (rest.length === 0) return true
  const others = [...classes()].filter((id) => !own.includes(id))
  return others.every((other) =>
    rest.every(
      (id) => lanes.text(id, other) === lanes.text(first, other) && lanes.text(other, id) === lanes.text(other, first),
    ),
  )
}
