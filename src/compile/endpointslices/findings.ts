/** The finding codes of this room, with what each means. */
import type { Finding, FindingTable } from '#base/finding'
import { type Meta, refOf } from '#model/meta'

export const findingCodes = {
  'endpointslices.no-pods': {
    severity: 'warning',
    meaning: 'A selector picks no pod that has an address, so the Service has no endpoints.',
  },
  'endpointslices.no-pods-read': {
    severity: 'warning',
    meaning: 'The input holds Services with a selector but not a single pod, so their computed slices are empty.',
  },
  'endpointslices.no-slices-read': {
    severity: 'warning',
    meaning: 'The slices of the input are asked for and it holds none, so its Services have no endpoints.',
  },
  'endpointslices.node-missing': {
    severity: 'warning',
    meaning: 'A pod names a Node that does not exist; the controller leaves the pod out and tries again later.',
  },
  'endpointslices.node-unknown': {
    severity: 'info',
    meaning: 'A pod has an address but no node, or no Node was read at all; its endpoint has no zone.',
  },
  'endpointslices.named-port-missing': {
    severity: 'warning',
    meaning: 'A named targetPort is on no container of the pod with that protocol; the pod lacks that port.',
  },
  'endpointslices.no-address-in-family': {
    severity: 'warning',
    meaning: 'A Service has an IP family in which none of its pods has an address.',
  },
  'endpointslices.reserved-label': {
    severity: 'info',
    meaning: 'A Service carries a label that the controller sets itself; the value on the Service is ignored.',
  },
  'endpointslices.topology-hints-disabled': {
    severity: 'warning',
    meaning: 'Topology mode Auto is asked for but no hints can be given; traffic goes to all zones.',
  },
  'endpointslices.unknown-traffic-distribution': {
    severity: 'warning',
    meaning: 'A trafficDistribution value that Kubernetes does not know; it has no effect.',
  },
  'endpointslices.orphan': {
    severity: 'info',
    meaning: 'A slice of the EndpointSlice controller belongs to no Service of the input; it is left out.',
  },
  'endpointslices.mirror-bad-address': {
    severity: 'warning',
    meaning: 'An address of a hand-made Endpoints object is not an IP address; it is not mirrored.',
  },
  'endpointslices.mirror-too-many': {
    severity: 'warning',
    meaning: 'A subset of an Endpoints object has more than 1000 addresses; the rest is not mirrored.',
  },
} as const satisfies FindingTable

export type FindingCode = keyof typeof findingCodes

/** A finding about one object. */
export function findingAt(
  meta: Meta,
  code: FindingCode,
  told: { readonly message: string; readonly path?: string; readonly hint?: string },
): Finding {
  return { code, severity: findingCodes[code].severity, object: refOf(meta), origin: meta.origin, ...told }
}
