/** Who would be reached by pods that do not exist yet: any pod at all, and pods with the labels that rules name but no pod has. */
import { compareText } from '#base/text'
import type { NamespaceMatch, PodsMatch } from '#compile/policy/policy-rule'
import type { Cluster } from '#model/cluster'
import type { Labels, Meta } from '#model/meta'
import type { Pod } from '#model/pod'
import { matchesSelector } from '#model/selector'
import type { Party } from '#trace/policy/party'
import type { ImaginedEnd, MatrixRow, WorkloadEnd } from './matrix'
import type { Lanes } from './matrix-lanes'
import { namedPods } from './named-pods'
import { isEverything, labelsFor, printSelector } from './selector-text'

export const entireCluster = 'entire-cluster'
const nameLabel = 'kubernetes.io/metadata.name'

/** Those that any pod has first; of others only what they have beyond it. */
export function exposureRows(lanes: Lanes, workloads: readonly WorkloadEnd[]): readonly MatrixRow[] {
  const anyone = imagine(entireCluster, {
    namespace: unheardOf,
    namespaceLabels: { [nameLabel]: unheardOf },
    labels: {},
  })
  const ends = [anyone, ...imaginedEnds(lanes)]
  const general = lanes.classOf(anyone.example)
  return ends.flatMap((end) => {
    const id = lanes.classOf(end.example)
    return workloads.flatMap((workload): readonly MatrixRow[] => {
      const own = lanes.classOf(workload.members[0])
      const ingress = lanes.text(id, own)
      const egress = lanes.text(own, id)
      const isNews = (text: string, usual: string): boolean => text !== '' && (end === anyone || text !== usual)
      return [
        ...(isNews(ingress, lanes.text(general, own)) ? [{ src: end, dst: workload, conn: ingress }] : []),
        ...(isNews(egress, lanes.text(own, general)) ? [{ src: workload, dst: end, conn: egress }] : []),
      ]
    })
  })
}

/** A namespace that the cluster does not have: its name is none that Kubernetes allows. */
const unheardOf = '(a namespace to come)'

type Imagined = { readonly namespace: string; readonly namespaceLabels: Labels; readonly labels: Labels }

function imagine(name: string, { namespace, namespaceLabels, labels }: Imagined): ImaginedEnd {
  const meta: Meta = {
    kind: 'Pod',
    name: '(a pod to come)',
    namespace,
    labels,
    annotations: {},
    ownerReferences: [],
    origin: { file: 'assumed' },
    assumed: ['*'],
  }
  const pod: Pod = {
    meta,
    containers: [],
    initContainers: [],
    hostNetwork: false,
    dnsPolicy: 'ClusterFirst',
    phase: 'Pending',
    podIPs: [],
    hostIPs: [],
    isReady: false,
  }
  const example: Party = { kind: 'pod', pod, namespaceLabels }
  return { kind: 'imagined', name, example }
}

function imaginedEnds({ world }: Lanes): readonly ImaginedEnd[] {
  const { cluster } = world
  const ends = new Map<string, ImaginedEnd>()
  for (const named of namedPods(world)) {
    const name = nameOf(named)
    if (ends.has(name) || hasPod(cluster, named)) continue
    const imagined = placeOf(cluster, named)
    if (imagined !== undefined) ends.set(name, imagine(name, imagined))
  }
  return [...ends.values()].sort((a, b) => compareText(a.name, b.name))
}

function hasPod(cluster: Cluster, { namespaces, pods }: PodsMatch): boolean {
  for (const { meta } of cluster.pods.values()) {
    if (matchesSelector(pods, meta.labels) && isIn(cluster, namespaces, meta.namespace)) return true
  }
  return false
}

function isIn(cluster: Cluster, namespaces: NamespaceMatch, name: string): boolean {
  return 'name' in namespaces
    ? namespaces.name === name
    : matchesSelector(namespaces.selector, labelsOfNamespace(cluster, name))
}

/** Every namespace carries its name as a label, whether or not the input says so. */
export function labelsOfNamespace({ namespaces }: Cluster, name: string): Labels {
  return { ...namespaces.get(name)?.meta.labels, [nameLabel]: name }
}

function nameOf({ namespaces, pods }: PodsMatch): string {
  const where = 'name' in namespaces ? namespaces.name : within(namespaces.selector)
  return `${where}/${isEverything(pods) ? '[all pods]' : `[pod with {${printSelector(pods)}}]`}`
}

function within(selector: Parameters<typeof printSelector>[0]): string {
  return isEverything(selector) ? '[all namespaces]' : `[namespace with {${printSelector(selector)}}]`
}

/** In a namespace that the cluster has where one fits; undefined where no labels can satisfy the selectors. */
function placeOf(cluster: Cluster, { namespaces, pods }: PodsMatch): Imagined | undefined {
  const labels = labelsFor(pods)
  if (labels === undefined) return undefined
  if ('name' in namespaces) {
    const { name } = namespaces
    return { namespace: name, namespaceLabels: labelsOfNamespace(cluster, name), labels }
  }
  const namespaceLabels = labelsFor(namespaces.selector, { [nameLabel]: unheardOf })
  if (namespaceLabels === undefined) return undefined
  return { namespace: namespaceLabels[nameLabel] ?? unheardOf, namespaceLabels, labels }
}
