/** Whom a rule's selector takes in: labels that last, what keeps others of the namespace out, and whom nothing keeps out. */
import { isIdentityLabel, parseLabelFilter } from '#compile/identities/label-filter'
import type { DirectoryIndex } from '#flows/directory'
import type { Labels, Workload } from '#flows/holder'
import { stableLabels } from '#flows/stable-labels'
import { explainBadName } from '#manifests/kinds/names'
import { selects } from '#model/meta'
import type { PolicyKind } from './policy-name'

export type PodSelection = {
  readonly labels: Labels
  /** Keys that none of the workload's pods has, and others with the same labels have. */
  readonly without: readonly string[]
  /** `Deployment shop/web`, whose pods are meant. */
  readonly owner: string
  /** Workloads whose pods no label tells apart, sorted. */
  readonly others: readonly string[]
}

export type SelectedPod = {
  readonly namespace: string
  readonly workload: Workload | null
  readonly name: string
  /** Stable ones. */
  readonly labels: Labels
}

export type Surroundings = {
  readonly kind: PolicyKind
  readonly index: DirectoryIndex
  /** Whether policies of the kind can ask for a label. */
  readonly isSeen: (key: string) => boolean
  /** By namespace. */
  readonly crowds: ReadonlyMap<string, readonly Crowded[]>
  readonly known: Map<Labels, PodSelection | undefined>
}

/** One set of labels that pods of a workload have. */
type Crowded = { readonly owner: string; readonly labels: Labels }

export function surroundingsOf(index: DirectoryIndex, kind: PolicyKind): Surroundings {
  const filter = parseLabelFilter()
  // Cilium makes identities of some labels alone: what asks for another one selects nobody.
  const isSeen = kind === 'networkpolicy' ? () => true : (key: string) => isIdentityLabel(labelOf(key), filter)
  return { kind, index, isSeen, crowds: crowdsOf(index), known: new Map() }
}

function labelOf(key: string): { readonly source: string; readonly key: string; readonly value: string } {
  return { source: 'k8s', key, value: '' }
}

function crowdsOf({ pods, workloads }: DirectoryIndex): ReadonlyMap<string, readonly Crowded[]> {
  const crowds = new Map<string, Map<string, Crowded>>()
  const add = (pod: SelectedPod): void => {
    const one = { owner: ownerOf(pod), labels: stableLabels(pod.labels) }
    const crowd = crowds.get(pod.namespace) ?? new Map<string, Crowded>()
    crowds.set(pod.namespace, crowd.set(JSON.stringify(one), one))
  }
  for (const pod of pods) if (!pod.isHostNetwork) add(pod)
  for (const { kind, name, namespace, labels, isHostNetwork } of workloads) {
    // Their pods are counted to what owns them.
    if (isHostNetwork || kind === 'ReplicaSet' || kind === 'Job') continue
    add({ namespace, name, workload: { kind, name }, labels })
  }
  return new Map([...crowds].map(([namespace, crowd]) => [namespace, [...crowd.values()]]))
}

function ownerOf({ namespace, workload, name }: Omit<SelectedPod, 'labels'>): string {
  return workload === null ? `Pod ${namespace}/${name}` : `${workload.kind} ${namespace}/${workload.name}`
}

/** Undefined where no selector can mean the pod, and it is an address. */
export function selectionOf(surroundings: Surroundings, pod: SelectedPod): PodSelection | undefined {
  const { known } = surroundings
  if (known.has(pod.labels)) return known.get(pod.labels)
  const made = canBeNamed(pod) ? selectPods(surroundings, pod) : undefined
  known.set(pod.labels, made)
  return made
}

/** Names and labels that no cluster can hold come of a file that somebody wrote. */
function canBeNamed({ namespace, labels }: SelectedPod): boolean {
  return isNamespace(namespace) && areLabels(labels)
}

export function isNamespace(name: string): boolean {
  return explainBadName('Namespace', name) === undefined
}

/** Labels of a release are kept where they alone keep another workload out. */
function selectPods(surroundings: Surroundings, pod: SelectedPod): PodSelection | undefined {
  const seen = seenLabels(surroundings, pod.labels)
  if (Object.keys(seen).length === 0) return undefined
  const lasting = select(surroundings, pod, lastingLabels(seen))
  if (lasting.others.length === 0) return lasting
  const exact = select(surroundings, pod, seen)
  return exact.others.length < lasting.others.length ? exact : lasting
}

function select({ crowds, isSeen }: Surroundings, pod: SelectedPod, labels: Labels): PodSelection {
  const owner = ownerOf(pod)
  const crowd = crowds.get(pod.namespace) ?? []
  const own = new Set(crowd.filter((one) => one.owner === owner).flatMap((one) => Object.keys(one.labels)))
  for (const key of Object.keys(pod.labels)) own.add(key)
  const without = new Set<string>()
  const others = new Set<string>()
  const strangers = crowd.filter((one) => one.owner !== owner && selects(labels, one.labels))
  for (const { owner: other, labels: theirs } of strangers.sort(compareCrowded)) {
    const keys = Object.keys(theirs).filter((key) => !own.has(key) && isSeen(key))
    const [first] = keys.sort((a, b) => Number(isOfRelease(a)) - Number(isOfRelease(b)))
    if (keys.some((key) => without.has(key))) continue
    if (first === undefined) others.add(other)
    else without.add(first)
  }
  return { labels, without: [...without].sort(), owner, others: [...others].sort() }
}

function compareCrowded(a: Crowded, b: Crowded): number {
  const [left, right] = [JSON.stringify(a), JSON.stringify(b)]
  return left < right ? -1 : left > right ? 1 : 0
}

export function seenLabels({ isSeen }: Pick<Surroundings, 'isSeen'>, labels: Labels): Labels {
  return Object.fromEntries(Object.entries(labels).filter(([key]) => isSeen(key)))
}

/** Of each release its own: the version and the chart, and what Argo Rollouts 1.8 tells its ReplicaSets apart by. */
const ofRelease: ReadonlySet<string> = new Set([
  'app.kubernetes.io/version',
  'helm.sh/chart',
  'rollouts-pod-template-hash',
])

function isOfRelease(key: string): boolean {
  return ofRelease.has(key)
}

/** But for those of a release, where others are left. */
export function lastingLabels(labels: Labels): Labels {
  const lasting = Object.entries(labels).filter(([key]) => !isOfRelease(key))
  return lasting.length === 0 ? labels : Object.fromEntries(lasting)
}

const word = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/

/** Whether the API server takes them (apimachinery 1.34, pkg/util/validation). */
export function areLabels(labels: Labels): boolean {
  return Object.entries(labels).every(([key, value]) => isLabelKey(key) && (value === '' || word.test(value)))
}

function isLabelKey(key: string): boolean {
  const [name = '', prefix, ...more] = key.split('/').reverse()
  return more.length === 0 && word.test(name) && (prefix === undefined || explainBadName('label', prefix) === undefined)
}
