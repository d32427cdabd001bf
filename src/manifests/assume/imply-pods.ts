/** The pods that workloads imply when the input holds none of theirs, named and labelled as their controllers would. */
import { compareText, countOf, listOf } from '#base/text'
import type { Draft } from '#manifests/draft'
import { manifestFinding } from '#manifests/findings'
import type { Workload } from '#manifests/kinds/workload'
import type { Writable } from '#manifests/kinds/writable'
import { keyOf, refOf } from '#model/meta'
import type { ClusterNode } from '#model/node'
import type { Pod } from '#model/pod'
import { findWorkloadsWithPods } from './find-owned'
import { nameImpliedPod } from './implied-names'
import { daemonTolerations, mayRunOn, parsePlacement } from './scheduling'

/** The largest cluster that Kubernetes is made for has 150,000 pods. */
const mostPods = 150_000

/** After nodes are known, as a DaemonSet has a pod on each. Where objects are live, a status tells that a controller has acted. */
export function implyPods(draft: Draft, isLive = false): void {
  if (draft.workloads.size === 0) return
  const withPods = findWorkloadsWithPods(draft)
  const implied: string[] = []
  let count = 0
  for (const [key, workload] of [...draft.workloads].sort(([a], [b]) => compareText(a, b))) {
    if (withPods.has(key) || (isLive && workload.hasStatus)) continue
    const nodes = workload.count === 'each-node' ? nodesFor(workload, draft) : []
    const wanted = workload.count === 'each-node' ? nodes.length : workload.count
    if (wanted === 0 || !canImply(draft, workload, { wanted, total: count + wanted })) continue
    for (let index = 0; index < wanted; index++) addPod(draft, workload, { index, nodeName: nodes[index]?.meta.name })
    count += wanted
    implied.push(`${key} (${wanted}${isBetweenRuns(workload) ? ', not ready between runs' : ''})`)
  }
  if (count === 0) return
  const message = `${countOf(implied.length, 'workload')} without pods in the input got the ${countOf(count, 'pod')} implied: ${listOf(implied, 5)}`
  draft.findings.push(
    manifestFinding('workload.implied-pods', { message, hint: 'add the output of kubectl get pods -A -o yaml' }),
  )
}

function nodesFor({ template }: Workload, draft: Draft): readonly ClusterNode[] {
  const rules = parsePlacement(template.placement)
  const tolerant = { ...rules, tolerations: [...rules.tolerations, ...daemonTolerations] }
  return [...draft.nodes.values()].filter(
    (node) => node.meta.assumed[0] === '*' || mayRunOn(tolerant, node, draft.nodeRules.get(node.meta.name)),
  )
}

function isBetweenRuns({ kind, readyCount }: Workload): boolean {
  return kind === 'CronJob' && readyCount === 0
}

type Wish = { readonly wanted: number; readonly total: number }

function canImply(draft: Draft, { kind, meta }: Workload, { wanted, total }: Wish): boolean {
  const place = { object: refOf(meta), origin: meta.origin }
  if (total > mostPods) {
    const message = `the workload asks for ${wanted} pods, which makes more than the ${mostPods} a cluster can hold; none are implied`
    draft.findings.push(
      manifestFinding('workload.too-many-pods', {
        message,
        ...place,
        ...(kind !== 'DaemonSet' && { path: kind === 'Job' ? 'spec.parallelism' : 'spec.replicas' }),
      }),
    )
    return false
  }
  // The controllers write the name into a label of each pod, which takes 63 characters.
  const longest = kind === 'StatefulSet' ? 61 : 63
  if ((kind === 'StatefulSet' || kind === 'Job') && meta.name.length > longest) {
    const message = `its name has ${meta.name.length} characters, too many for the label its pods would carry; none are implied`
    draft.findings.push(manifestFinding('workload.name-too-long', { message, ...place, hint: 'shorten the name' }))
    return false
  }
  return true
}

type Place = { readonly index: number; readonly nodeName: string | undefined }

function addPod(draft: Draft, workload: Workload, { index, nodeName }: Place): void {
  const { namespace, origin } = workload.meta
  const isTaken = (name: string): boolean => draft.pods.has(keyOf({ namespace, name }))
  const naming = nameImpliedPod(workload, index, isTaken)
  if (isTaken(naming.name)) return
  const { template, serviceName, readyCount } = workload
  const pod: Writable<Pod> = {
    meta: {
      kind: 'Pod',
      name: naming.name,
      namespace,
      labels: { ...template.labels, ...naming.labels },
      annotations: {},
      ownerReferences: [naming.owner],
      origin,
      assumed: ['*'],
    },
    ...template.spec,
    phase: 'Pending',
    podIPs: [],
    hostIPs: [],
    isReady: false,
  }
  const hostname = pod.hostname ?? naming.hostname
  const subdomain = pod.subdomain ?? serviceName
  if (hostname !== undefined) pod.hostname = hostname
  if (subdomain !== undefined) pod.subdomain = subdomain
  if (nodeName !== undefined) pod.nodeName = nodeName
  const isReady = readyCount === undefined || index < readyCount
  draft.pods.set(keyOf(pod.meta), pod)
  draft.openPods.set(keyOf(pod.meta), { pod, placement: template.placement, isNew: true, isReady })
}
