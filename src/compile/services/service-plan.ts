/** The plan that both kube-proxy back-ends render: what each port of each Service needs on one node. */
import type { ObjectRef } from '#base/finding'
import type { Family } from '#base/ip'
import type { Endpoint } from '#model/endpoint-slice'
import type { Labels } from '#model/meta'
import type { Service, ServicePort } from '#model/service'
import type { LocalTraffic } from './local-traffic'
import type { ProxySettings } from './proxy-settings'

/** An endpoint of one Service port, conditions as kube-proxy takes them. */
export type PlannedEndpoint = {
  /** `ip:port`, which names it and sorts it. */
  readonly text: string
  readonly ip: string
  readonly port: number
  readonly isLocal: boolean
  readonly isReady: boolean
  readonly isServing: boolean
  readonly isTerminating: boolean
  readonly endpoint: Endpoint
}

export type TopologyMode = 'PreferSameNode' | 'PreferSameZone'

/** Endpoint lists are sorted by text. */
export type ChosenEndpoints = {
  /** For traffic with policy Cluster. */
  readonly cluster: readonly PlannedEndpoint[]
  /** For traffic with policy Local. */
  readonly local: readonly PlannedEndpoint[]
  /** All that this node may send to. */
  readonly reachable: readonly PlannedEndpoint[]
  /** Some endpoint is usable somewhere in the cluster, though perhaps not from here. */
  readonly hasAny: boolean
  readonly topologyMode?: TopologyMode
}

export type ServicePortPlan = {
  /** `namespace/name` or `namespace/name:port`. */
  readonly name: string
  readonly service: Service
  readonly servicePort: ServicePort
  /** Lower case. */
  readonly protocol: 'tcp' | 'udp' | 'sctp'
  readonly clusterIP: string
  readonly port: number
  /** 0 when there is none. */
  readonly nodePort: number
  readonly externalIPs: readonly string[]
  readonly loadBalancerVIPs: readonly string[]
  readonly loadBalancerSourceRanges: readonly string[]
  /** A source range holds this node's own address. */
  readonly allowsNode: boolean
  /** 0 when there is none, or when it has no effect. */
  readonly healthCheckNodePort: number
  readonly affinitySeconds?: number
  readonly isInternalLocal: boolean
  readonly isExternalLocal: boolean
  readonly isExternallyAccessible: boolean
  readonly usesClusterEndpoints: boolean
  readonly usesLocalEndpoints: boolean
  /** Every endpoint in a slice, usable or not. */
  readonly endpoints: readonly PlannedEndpoint[]
  readonly chosen: ChosenEndpoints
  /** There is an endpoint for traffic to the cluster IP. */
  readonly hasInternal: boolean
  /** There is an endpoint for traffic from outside to the other addresses. */
  readonly hasExternal: boolean
}

export type SkipReason =
  | 'other-proxy'
  | 'headless-label'
  | 'external-name'
  | 'headless'
  | 'no-cluster-ip'
  | 'no-cluster-ip-in-family'

export type SkippedService = { readonly service: ObjectRef; readonly why: SkipReason }

/** What kube-proxy knows of the node it runs on. */
export type ProxyNode = {
  /** Absent when no node was named: no endpoint is local then. */
  readonly name?: string
  /** Of both families, primary first. */
  readonly ips: readonly string[]
  readonly labels: Labels
  readonly podCIDRs: readonly string[]
}

export type ServicePlan = {
  readonly family: Family
  readonly node: ProxyNode
  readonly settings: ProxySettings
  /** Absent when kube-proxy cannot tell local traffic. */
  readonly localTraffic?: LocalTraffic
  /** By namespace and name of the Service, then in its own order. */
  readonly ports: readonly ServicePortPlan[]
  readonly skipped: readonly SkippedService[]
  /** Endpoints of all ports together, usable or not. */
  readonly endpointCount: number
}
