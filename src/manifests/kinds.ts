/** The kinds that are read, in one table: to add a kind, write its parser and add a row. */
import type { Meta } from '#model/meta'
import type { WorkloadKind } from '#model/workload'
import { assume, type Draft, keep, keepWorkload } from './draft'
import { parseConfigMap } from './kinds/config-map'
import { parseEndpointSlice } from './kinds/endpoint-slice'
import { parseEndpoints } from './kinds/endpoints'
import { type Fields, hasStatus, mapAt } from './kinds/fields'
import { parseNamespace } from './kinds/namespace'
import { parseNode, parseNodeRules } from './kinds/node'
import { parsePod } from './kinds/pod'
import { parseService } from './kinds/service'
import { parseWorkload } from './kinds/workload'

export type KindRow = {
  /** API groups that serve the kind, the present one first; the core group is empty. */
  readonly groups: readonly string[]
  readonly isNamespaced: boolean
  readonly add: (root: Fields, meta: Meta, draft: Draft) => void
}

export const kinds: ReadonlyMap<string, KindRow> = new Map<string, KindRow>([
  ['Service', { groups: [''], isNamespaced: true, add: addService }],
  ['Pod', { groups: [''], isNamespaced: true, add: addPod }],
  ['EndpointSlice', { groups: ['discovery.k8s.io'], isNamespaced: true, add: addEndpointSlice }],
  ['Endpoints', { groups: [''], isNamespaced: true, add: addEndpoints }],
  ['Node', { groups: [''], isNamespaced: false, add: addNode }],
  ['Namespace', { groups: [''], isNamespaced: false, add: addNamespace }],
  ['ConfigMap', { groups: [''], isNamespaced: true, add: addConfigMap }],
  ['Deployment', workloadRow('Deployment', ['apps', 'extensions'])],
  ['ReplicaSet', workloadRow('ReplicaSet', ['apps', 'extensions'])],
  ['DaemonSet', workloadRow('DaemonSet', ['apps', 'extensions'])],
  ['StatefulSet', workloadRow('StatefulSet', ['apps'])],
  ['Job', workloadRow('Job', ['batch'])],
  ['CronJob', workloadRow('CronJob', ['batch'])],
])

function workloadRow(kind: WorkloadKind, groups: readonly string[]): KindRow {
  const add = (root: Fields, meta: Meta, draft: Draft): void => keepWorkload(draft, parseWorkload(root, meta, kind))
  return { groups, isNamespaced: true, add }
}

function addService(root: Fields, meta: Meta, draft: Draft): void {
  const text = parseService(root, meta)
  draft.openServices.set(keep(draft, draft.services, text.service), text)
}

/** A pod with a status and no address is waiting for one, and stays as it is. */
function addPod(root: Fields, meta: Meta, draft: Draft): void {
  const pod = parsePod(root, meta)
  const key = keep(draft, draft.pods, pod)
  const isNew = !hasStatus(root)
  const isOpen = isNew || (pod.podIPs.length > 0 && pod.nodeName === undefined)
  if (isOpen) draft.openPods.set(key, { pod, placement: mapAt(root, 'spec'), isNew, isReady: true })
  else draft.openPods.delete(key)
}

function addEndpointSlice(root: Fields, meta: Meta, draft: Draft): void {
  const slice = parseEndpointSlice(root, meta)
  if (slice !== undefined) keep(draft, draft.slices, slice)
}

function addEndpoints(root: Fields, meta: Meta, draft: Draft): void {
  keep(draft, draft.endpoints, parseEndpoints(root, meta))
}

function addNode(root: Fields, meta: Meta, draft: Draft): void {
  const node = parseNode(root, meta)
  if (!hasStatus(root)) {
    node.isReady = true
    assume(node, 'status.conditions')
    draft.openNodes.add(meta.name)
  } else draft.openNodes.delete(meta.name)
  keep(draft, draft.nodes, node)
  draft.nodeRules.set(meta.name, parseNodeRules(root))
}

function addNamespace(_root: Fields, meta: Meta, draft: Draft): void {
  keep(draft, draft.namespaces, parseNamespace(meta))
}

function addConfigMap(root: Fields, meta: Meta, draft: Draft): void {
  keep(draft, draft.configMaps, parseConfigMap(root, meta))
}
