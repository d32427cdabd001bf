/** The kinds that are read, in one table: to add a kind, write its parser and add a row. */
import type { Meta } from '#model/meta'
import type { TierPolicyKind } from '#model/tier-policy'
import { trafficGroup, trafficGroupAlias } from '#model/traffic-policy'
import type { WorkloadKind } from '#model/workload'
import { assume, type Draft, keep, keepAs, keepWorkload } from './draft'
import { parseCidrGroup, parseCiliumEndpoint, parseCiliumIdentity, parseCiliumNode } from './kinds/cilium-identities'
import { parseCiliumEndpointSlice, parseEgressGatewayPolicy, parseLocalRedirectPolicy } from './kinds/cilium-network'
import { parseCiliumPolicy } from './kinds/cilium-policy'
import { parseConfigMap } from './kinds/config-map'
import { parseEndpointSlice } from './kinds/endpoint-slice'
import { parseEndpoints } from './kinds/endpoints'
import { type Fields, has, hasStatus, mapAt } from './kinds/fields'
import { parseNamespace } from './kinds/namespace'
import { parseNetworkPolicy } from './kinds/network-policy'
import { parseNode, parseNodeRules } from './kinds/node'
import { parsePod } from './kinds/pod'
import { parseService } from './kinds/service'
import { parseTierPolicy } from './kinds/tier-policy'
import {
  parseEdgeAttachment,
  parseEdgeService,
  parseTrafficPolicy,
  parseTrafficPolicyBinding,
  parseVpcAttachment,
} from './kinds/traffic-object'
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
  ['NetworkPolicy', { groups: ['networking.k8s.io', 'extensions'], isNamespaced: true, add: addNetworkPolicy }],
  ['AdminNetworkPolicy', tierRow('AdminNetworkPolicy')],
  ['BaselineAdminNetworkPolicy', tierRow('BaselineAdminNetworkPolicy')],
  ['ClusterNetworkPolicy', tierRow('ClusterNetworkPolicy')],
  ['Deployment', workloadRow('Deployment', ['apps', 'extensions'])],
  ['ReplicaSet', workloadRow('ReplicaSet', ['apps', 'extensions'])],
  ['DaemonSet', workloadRow('DaemonSet', ['apps', 'extensions'])],
  ['StatefulSet', workloadRow('StatefulSet', ['apps'])],
  ['Job', workloadRow('Job', ['batch'])],
  ['CronJob', workloadRow('CronJob', ['batch'])],
  ['CiliumNetworkPolicy', { groups: ['cilium.io'], isNamespaced: true, add: addCiliumPolicy }],
  ['CiliumClusterwideNetworkPolicy', { groups: ['cilium.io'], isNamespaced: false, add: addCiliumPolicy }],
  ['CiliumCIDRGroup', { groups: ['cilium.io'], isNamespaced: false, add: addCidrGroup }],
  ['CiliumIdentity', { groups: ['cilium.io'], isNamespaced: false, add: addCiliumIdentity }],
  ['CiliumEndpoint', { groups: ['cilium.io'], isNamespaced: true, add: addCiliumEndpoint }],
  ['CiliumNode', { groups: ['cilium.io'], isNamespaced: false, add: addCiliumNode }],
  ['CiliumEndpointSlice', { groups: ['cilium.io'], isNamespaced: false, add: addCiliumEndpointSlice }],
  ['CiliumEgressGatewayPolicy', { groups: ['cilium.io'], isNamespaced: false, add: addEgressGatewayPolicy }],
  ['CiliumLocalRedirectPolicy', { groups: ['cilium.io'], isNamespaced: true, add: addLocalRedirectPolicy }],
  ['TrafficPolicy', trafficRow(parseTrafficPolicy, (draft) => draft.trafficPolicies)],
  ['TrafficPolicyBinding', trafficRow(parseTrafficPolicyBinding, (draft) => draft.trafficPolicyBindings)],
  ['VPCAttachment', trafficRow(parseVpcAttachment, (draft) => draft.vpcAttachments)],
  ['EdgeService', trafficRow(parseEdgeService, (draft) => draft.edgeServices)],
  ['EdgeAttachment', trafficRow(parseEdgeAttachment, (draft) => draft.edgeAttachments)],
])

function workloadRow(kind: WorkloadKind, groups: readonly string[]): KindRow {
  const add = (root: Fields, meta: Meta, draft: Draft): void => keepWorkload(draft, parseWorkload(root, meta, kind))
  return { groups, isNamespaced: true, add }
}

function tierRow(kind: TierPolicyKind): KindRow {
  const add = (root: Fields, meta: Meta, draft: Draft): void => {
    const policy = parseTierPolicy(root, meta, kind)
    if (policy !== undefined) keepAs(draft, draft.tierPolicies, `${kind} ${meta.name}`, policy)
  }
  return { groups: ['policy.networking.k8s.io'], isNamespaced: false, add }
}

function trafficRow<T extends { readonly meta: Meta }>(
  parse: (root: Fields, meta: Meta) => T,
  mapOf: (draft: Draft) => Map<string, T>,
): KindRow {
  const add = (root: Fields, meta: Meta, draft: Draft): void => {
    keep(draft, mapOf(draft), parse(root, meta))
  }
  return { groups: [trafficGroup, trafficGroupAlias], isNamespaced: true, add }
}

function addNetworkPolicy(root: Fields, meta: Meta, draft: Draft): void {
  const policy = parseNetworkPolicy(root, placedMeta(root, meta))
  if (policy !== undefined) keep(draft, draft.networkPolicies, policy)
}

/** A policy counts in its namespace alone, so that one whose text has none is marked. */
function placedMeta(root: Fields, meta: Meta): Meta {
  if (meta.namespace === '' || has(mapAt(root, 'metadata'), 'namespace')) return meta
  return { ...meta, assumed: [...meta.assumed, 'metadata.namespace'] }
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

function addCiliumPolicy(root: Fields, meta: Meta, draft: Draft): void {
  const policy = parseCiliumPolicy(root, placedMeta(root, meta))
  if (policy !== undefined) keep(draft, draft.ciliumPolicies, policy)
}

function addCidrGroup(root: Fields, meta: Meta, draft: Draft): void {
  const group = parseCidrGroup(root, meta)
  if (group !== undefined) keep(draft, draft.cidrGroups, group)
}

function addCiliumIdentity(root: Fields, meta: Meta, draft: Draft): void {
  const identity = parseCiliumIdentity(root, meta)
  if (identity !== undefined) keep(draft, draft.ciliumIdentities, identity)
}

function addCiliumEndpoint(root: Fields, meta: Meta, draft: Draft): void {
  if (draft.ciliumEndpoints.get(`${meta.namespace}/${meta.name}`)?.meta.kind === 'CiliumEndpointSlice') {
    draft.ciliumEndpoints.delete(`${meta.namespace}/${meta.name}`)
  }
  keep(draft, draft.ciliumEndpoints, parseCiliumEndpoint(root, meta))
}

function addCiliumNode(root: Fields, meta: Meta, draft: Draft): void {
  keep(draft, draft.ciliumNodes, parseCiliumNode(root, meta))
}

/** An endpoint's own object tells more and counts before its part of a slice. */
function addCiliumEndpointSlice(root: Fields, meta: Meta, draft: Draft): void {
  for (const endpoint of parseCiliumEndpointSlice(root, meta)) {
    const key = `${endpoint.meta.namespace}/${endpoint.meta.name}`
    if (!draft.ciliumEndpoints.has(key)) draft.ciliumEndpoints.set(key, endpoint)
  }
}

function addEgressGatewayPolicy(root: Fields, meta: Meta, draft: Draft): void {
  const policy = parseEgressGatewayPolicy(root, meta)
  if (policy !== undefined) keep(draft, draft.egressGatewayPolicies, policy)
}

function addLocalRedirectPolicy(root: Fields, meta: Meta, draft: Draft): void {
  const policy = parseLocalRedirectPolicy(root, placedMeta(root, meta))
  if (policy !== undefined) keep(draft, draft.localRedirectPolicies, policy)
}
