/** A slice as the discovery.k8s.io/v1 object that JSON and YAML show. */
import type { ObjectRef } from '#base/finding'
import type { Endpoint, EndpointPort, EndpointSlice } from '#model/endpoint-slice'
import type { Labels, Meta, OwnerReference } from '#model/meta'

/** A value that JSON can hold. */
export type JsonObject = { readonly [key: string]: JsonValue }
export type JsonValue = string | number | boolean | readonly JsonValue[] | JsonObject

export function printEndpointSlice({ meta, addressType, endpoints, ports }: EndpointSlice): JsonObject {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: printMeta(meta),
    addressType,
    endpoints: endpoints.map(printEndpoint),
    ports: ports.map(printPort),
  }
}

function printMeta(meta: Meta): JsonObject {
  const { annotations, creationTimestamp, deletionTimestamp, generateName, labels, ownerReferences, uid } = meta
  return {
    name: meta.name,
    ...(generateName !== undefined && { generateName }),
    namespace: meta.namespace,
    ...(uid !== undefined && { uid }),
    ...(creationTimestamp !== undefined && { creationTimestamp }),
    ...(deletionTimestamp !== undefined && { deletionTimestamp }),
    ...(hasKeys(labels) && { labels }),
    ...(hasKeys(annotations) && { annotations }),
    ...(ownerReferences.length > 0 && { ownerReferences: ownerReferences.map(printOwner) }),
  }
}

/** Services and Endpoints are the owners that the controllers write; both are of the core group. */
function printOwner({ kind, name, uid, controller }: OwnerReference): JsonObject {
  const isCore = kind === 'Service' || kind === 'Endpoints'
  return {
    ...(isCore && { apiVersion: 'v1' }),
    ...(controller === true && { blockOwnerDeletion: true, controller }),
    kind,
    name,
    ...(uid !== undefined && { uid }),
  }
}

function printEndpoint(endpoint: Endpoint): JsonObject {
  const { addresses, conditions, forNodes, forZones, hostname, nodeName, targetRef, zone } = endpoint
  const { ready, serving, terminating } = conditions
  const hints = {
    ...(forZones !== undefined && { forZones: forZones.map((name) => ({ name })) }),
    ...(forNodes !== undefined && { forNodes: forNodes.map((name) => ({ name })) }),
  }
  return {
    addresses,
    conditions: {
      ...(ready !== undefined && { ready }),
      ...(serving !== undefined && { serving }),
      ...(terminating !== undefined && { terminating }),
    },
    ...(hostname !== undefined && { hostname }),
    ...(nodeName !== undefined && { nodeName }),
    ...(targetRef !== undefined && { targetRef: printTarget(targetRef) }),
    ...(zone !== undefined && { zone }),
    ...(hasKeys(hints) && { hints }),
  }
}

function printTarget({ kind, namespace, name, uid }: ObjectRef & { readonly uid?: string }): JsonObject {
  return { kind, ...(namespace !== undefined && { namespace }), name, ...(uid !== undefined && { uid }) }
}

function printPort({ name, protocol, port, appProtocol }: EndpointPort): JsonObject {
  return {
    ...(name !== undefined && { name }),
    protocol,
    ...(port !== undefined && { port }),
    ...(appProtocol !== undefined && { appProtocol }),
  }
}

function hasKeys(record: Labels | Readonly<Record<string, unknown>>): boolean {
  return Object.keys(record).length > 0
}
