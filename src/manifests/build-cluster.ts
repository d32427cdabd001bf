/** From objects as they stand in texts to a cluster: each kind read, doubles settled, and what is missing assumed. */
import type { Finding, Parsed } from '#base/finding'
import type { Prefix } from '#base/prefix'
import { compareText, listOf } from '#base/text'
import type { Cluster } from '#model/cluster'
import type { Workload } from '#model/workload'
import { assumeNamespaces } from './assume/assume-namespaces'
import { assumeNodes } from './assume/assume-nodes'
import { clusterFamilies } from './assume/families'
import { fillServices } from './assume/fill-services'
import { implyPods } from './assume/imply-pods'
import { placePods } from './assume/place-pods'
import { tellMissingNamespaces } from './assume/tell-missing-namespaces'
import { type Draft, markDraft, newDraft } from './draft'
import { manifestFinding } from './findings'
import { type KindRow, kinds } from './kinds'
import { type Reading, rootFields } from './kinds/fields'
import { parseMeta } from './kinds/meta'
import type { RawObject } from './text/raw-object'

/**
 * Ranges that assumed addresses are taken from, one a family at most; without them the usual ones. Objects that are live
 * come from an API server: a workload that its controller has seen has the pods that there are, and none are implied.
 */
export type BuildOptions = {
  readonly serviceCidrs?: readonly Prefix[]
  readonly podCidrs?: readonly Prefix[]
  readonly isLive?: boolean
}

/** Takes objects one by one, so that the texts they stood in need not be held. */
export type ClusterBuilder = {
  readonly add: (object: RawObject) => void
  /** Remembers what there is; calling what is returned takes out all that was added since. */
  readonly mark: () => () => void
  readonly build: () => Parsed<Cluster>
}

/** Of two objects with one name the later wins. */
export function buildCluster(objects: readonly RawObject[], options: BuildOptions = {}): Parsed<Cluster> {
  const builder = openBuilder(options)
  for (const object of objects) builder.add(object)
  return builder.build()
}

export function openBuilder(options: BuildOptions = {}): ClusterBuilder {
  const draft = newDraft()
  return {
    add: (object) => addObject(object, draft),
    mark: () => markDraft(draft),
    build: () => finish(draft, options),
  }
}

function finish(draft: Draft, options: BuildOptions): Parsed<Cluster> {
  const families = clusterFamilies(draft)
  assumeNodes(draft, families)
  implyPods(draft, options.isLive === true)
  placePods(draft, families, options.podCidrs ?? [])
  fillServices(draft, families, options.serviceCidrs ?? [])
  assumeNamespaces(draft)
  tellMissingNamespaces(draft)
  reportSkipped(draft)
  return { value: clusterOf(draft), findings: draft.findings }
}

function addObject(object: RawObject, draft: Draft): void {
  const { kind, apiVersion, value, origin } = object
  const row = kinds.get(kind)
  if (row === undefined || (apiVersion !== '' && !row.groups.includes(groupOf(apiVersion)))) {
    skipObject(object, row, draft)
    return
  }
  const reading: Reading = { kind, origin, findings: draft.findings, namespace: '', name: '' }
  const root = rootFields(reading, value)
  const meta = parseMeta(root, row.isNamespaced)
  if (meta === undefined) return
  if (apiVersion === '') draft.findings.push(noApiVersion(object, reading))
  row.add(root, meta, draft)
}

function groupOf(apiVersion: string): string {
  const slash = apiVersion.indexOf('/')
  return slash < 0 ? '' : apiVersion.slice(0, slash)
}

/** A kind of another project may share the name of one that is read; a slip of the pen is told. */
function skipObject({ kind, apiVersion, origin }: RawObject, row: KindRow | undefined, draft: Draft): void {
  const name = row === undefined ? kind : `${kind} (${apiVersion})`
  draft.skippedKinds.set(name, (draft.skippedKinds.get(name) ?? 0) + 1)
  const meant = row === undefined ? [...kinds.keys()].find((known) => known.toLowerCase() === kind.toLowerCase()) : kind
  const isKnownGroup = [...kinds.values()].some(({ groups }) => groups.includes(groupOf(apiVersion)))
  if (meant === undefined || !isKnownGroup) return
  const [group = ''] = kinds.get(meant)?.groups ?? []
  draft.findings.push(
    manifestFinding('manifest.bad-value', {
      message: `there is no kind ${kind} in ${apiVersion === '' ? 'any version' : apiVersion}; the object is left out`,
      path: row === undefined ? 'kind' : 'apiVersion',
      origin,
      hint: `write kind: ${meant} and apiVersion: ${group === '' ? 'v1' : `${group}/v1`}`,
    }),
  )
}

function noApiVersion({ kind, origin }: RawObject, { namespace, name }: Reading): Finding {
  return manifestFinding('manifest.no-api-version', {
    message: `the object has no apiVersion; it is read as the usual ${kind}`,
    object: namespace === '' ? { kind, name } : { kind, namespace, name },
    path: 'apiVersion',
    origin,
    hint: 'add apiVersion',
  })
}

function reportSkipped(draft: Draft): void {
  if (draft.skippedKinds.size === 0) return
  const counted = [...draft.skippedKinds]
    .sort(([a], [b]) => compareText(a, b))
    .map(([kind, count]) => `${count} ${kind}`)
  const message = `objects of kinds that Portolan does not read were skipped: ${listOf(counted)}`
  draft.findings.push(manifestFinding('manifest.skipped-kinds', { message }))
}

function clusterOf(draft: Draft): Cluster {
  const { findings, openServices, openPods, openNodes, nodeRules, ...objects } = draft
  return { ...objects, workloads: workloadsOf(draft) }
}

/** Without what only implying their pods needs, which holds on to the text's own maps. */
function workloadsOf(draft: Draft): ReadonlyMap<string, Workload> {
  const workloads = new Map<string, Workload>()
  for (const [key, { kind, meta, selector, template }] of draft.workloads) {
    const { containers, initContainers, hostNetwork, serviceAccountName } = template.spec
    const spec = {
      containers,
      initContainers,
      hostNetwork,
      ...(serviceAccountName !== undefined && { serviceAccountName }),
    }
    const kept = { kind, meta, template: { labels: template.labels, spec } }
    workloads.set(key, selector === undefined ? kept : { ...kept, selector })
  }
  return workloads
}
