/**
 * CiliumNetworkPolicy, CiliumClusterwideNetworkPolicy and CiliumCIDRGroup as they stand in their objects. An absent list
 * and an empty one mean different things to Cilium, so absent members stay absent. Every part keeps its path.
 */
import type { Meta } from './meta'
import type { LabelSelector } from './selector'

/** Keys carry their source (`k8s:app`) or none, which stands for any source. */
/** Labels of namespaces stand among those of their pods under this. */
export const namespaceLabelPrefix = 'io.cilium.k8s.namespace.labels.'

export type CiliumSelector = { readonly path: string; readonly selector: LabelSelector }

export type CiliumText = { readonly path: string; readonly text: string }

export type CidrRule = {
  readonly path: string
  readonly cidr?: string
  readonly except: readonly CiliumText[]
  readonly groupRef?: string
  readonly groupSelector?: LabelSelector
}

/** One of `k8sService` and `k8sServiceSelector`; an absent namespace is the policy's own. */
export type ServiceRef = {
  readonly path: string
  readonly namespace?: string
  readonly name?: string
  readonly selector?: LabelSelector
}

export type FqdnSelector = { readonly path: string; readonly matchName?: string; readonly matchPattern?: string }

/** `port` is a number or a name, as text; an absent protocol stands for any. */
export type CiliumPort = {
  readonly path: string
  readonly port?: string
  readonly endPort?: number
  readonly protocol?: string
}

export type CiliumListener = { readonly name: string; readonly priority?: number }

/** What is asked of layer 7: only which kind of rules there are, as their contents are the proxy's to judge. */
export type L7Rules = {
  readonly http?: number
  readonly kafka?: number
  readonly dns?: readonly FqdnSelector[]
  readonly l7proto?: string
  readonly l7?: number
}

export type PortRule = {
  readonly path: string
  readonly ports: readonly CiliumPort[]
  readonly rules?: L7Rules
  readonly listener?: CiliumListener
  readonly serverNames?: readonly string[]
  readonly terminatesTls: boolean
  readonly originatesTls: boolean
}

export type IcmpField = { readonly path: string; readonly family: string; readonly type: number | string }

export type IcmpRule = { readonly path: string; readonly fields: readonly IcmpField[] }

export type AuthenticationMode = 'required' | 'disabled' | 'test-always-fail'

/** The members name sources (`fromEndpoints`) in ingress and destinations (`toEndpoints`) in egress. */
export type CiliumElement = {
  readonly path: string
  readonly endpoints?: readonly CiliumSelector[]
  readonly requires?: readonly CiliumSelector[]
  readonly cidrs?: readonly CiliumText[]
  readonly cidrSets?: readonly CidrRule[]
  readonly entities?: readonly CiliumText[]
  readonly nodes?: readonly CiliumSelector[]
  readonly groups?: readonly CiliumText[]
  readonly services?: readonly ServiceRef[]
  readonly fqdns?: readonly FqdnSelector[]
  readonly toPorts?: readonly PortRule[]
  readonly icmps?: readonly IcmpRule[]
  readonly authentication?: AuthenticationMode
}

export const ciliumSections = ['ingress', 'ingressDeny', 'egress', 'egressDeny'] as const
export type CiliumSection = (typeof ciliumSections)[number]

/** In the order of the CRD's list. */
export const ciliumEntities = [
  'all',
  'world',
  'cluster',
  'host',
  'init',
  'ingress',
  'unmanaged',
  'remote-node',
  'health',
  'none',
  'kube-apiserver',
] as const

/** `spec`, or one of `specs`. */
export type CiliumSpec = {
  readonly path: string
  readonly endpointSelector?: CiliumSelector
  readonly nodeSelector?: CiliumSelector
  readonly sections: { readonly [S in CiliumSection]?: readonly CiliumElement[] }
  readonly enableDefaultDeny: { readonly ingress?: boolean; readonly egress?: boolean }
}

export type CiliumPolicy = {
  readonly meta: Meta
  readonly isClusterwide: boolean
  readonly specs: readonly CiliumSpec[]
}

export type CiliumCidrGroup = { readonly meta: Meta; readonly cidrs: readonly CiliumText[] }

/** A CiliumIdentity object: its name is the number. */
export type CiliumIdentityObject = {
  readonly meta: Meta
  readonly number: number
  /** `source:key` to value. */
  readonly labels: Readonly<Record<string, string>>
}

/** A CiliumEndpoint, or its part of a CiliumEndpointSlice. */
export type CiliumEndpointObject = {
  readonly meta: Meta
  /** The number of the endpoint on its node. */
  readonly id?: number
  readonly identity?: number
  readonly labels: readonly string[]
  readonly addresses: readonly string[]
}

/** A CiliumNode: addresses that a Node does not tell, such as the router's. */
export type CiliumNodeObject = {
  readonly meta: Meta
  /** `isAssumed`: no object tells it. */
  readonly addresses: readonly { readonly type: string; readonly address: string; readonly isAssumed?: boolean }[]
  readonly podCIDRs: readonly string[]
  /** Of the health endpoint and of the ingress endpoint. */
  readonly healthIps: readonly string[]
  readonly ingressIps: readonly string[]
  /** Of `spec.encryption.key`; 0 without encryption. */
  readonly encryptionKey: number
}

/** Types of ICMP by name. Mirrors pkg/policy/api/icmp.go, Cilium 1.16 to 1.19, its slip `RouterSelection` included. */
const icmpTypes: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  IPv4: {
    EchoReply: 0,
    DestinationUnreachable: 3,
    Redirect: 5,
    Echo: 8,
    EchoRequest: 8,
    RouterAdvertisement: 9,
    RouterSelection: 10,
    TimeExceeded: 11,
    ParameterProblem: 12,
    Timestamp: 13,
    TimestampReply: 14,
    Photuris: 40,
    ExtendedEchoRequest: 42,
    ExtendedEchoReply: 43,
  },
  IPv6: {
    DestinationUnreachable: 1,
    PacketTooBig: 2,
    TimeExceeded: 3,
    ParameterProblem: 4,
    EchoRequest: 128,
    EchoReply: 129,
    MulticastListenerQuery: 130,
    MulticastListenerReport: 131,
    MulticastListenerDone: 132,
    RouterSolicitation: 133,
    RouterAdvertisement: 134,
    NeighborSolicitation: 135,
    NeighborAdvertisement: 136,
    RedirectMessage: 137,
    RouterRenumbering: 138,
    ICMPNodeInformationQuery: 139,
    ICMPNodeInformationResponse: 140,
    InverseNeighborDiscoverySolicitation: 141,
    InverseNeighborDiscoveryAdvertisement: 142,
    HomeAgentAddressDiscoveryRequest: 144,
    HomeAgentAddressDiscoveryReply: 145,
    MobilePrefixSolicitation: 146,
    MobilePrefixAdvertisement: 147,
    DuplicateAddressRequestCodeSuffix: 157,
    DuplicateAddressConfirmationCodeSuffix: 158,
    ExtendedEchoRequest: 160,
    ExtendedEchoReply: 161,
  },
}

/** Undefined for what is no type of the family. */
export function icmpNumber(family: string, type: number | string): number | undefined {
  const table = icmpTypes[family === 'IPv6' ? 'IPv6' : 'IPv4'] ?? {}
  if (typeof type === 'string' && Object.hasOwn(table, type)) return table[type]
  const number = typeof type === 'string' && /^\d{1,3}$/.test(type) ? Number(type) : type
  return typeof number === 'number' && Number.isInteger(number) && number >= 0 && number <= 255 ? number : undefined
}
