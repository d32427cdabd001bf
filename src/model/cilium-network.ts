/** Cilium's kinds about where traffic goes: gateways for egress, and redirection to backends on the same node. */
import type { CiliumText } from './cilium-policy'
import type { Meta } from './meta'
import type { LabelSelector } from './selector'
import type { Protocol } from './service'

/** At least one of pods and namespaces is named, or the agent refuses the policy. */
export type EgressSelector = {
  readonly path: string
  readonly pods?: LabelSelector
  readonly namespaces?: LabelSelector
  readonly nodes?: LabelSelector
}

export type EgressGateway = {
  readonly path: string
  readonly nodeSelector: LabelSelector
  readonly interface?: string
  readonly egressIp?: string
}

export type CiliumEgressGatewayPolicy = {
  readonly meta: Meta
  readonly selectors: readonly EgressSelector[]
  readonly destinations: readonly CiliumText[]
  readonly excluded: readonly CiliumText[]
  /** `spec.egressGateway`, and those of `spec.egressGateways`, which 1.18 and later read. */
  readonly gateway?: EgressGateway
  readonly gateways: readonly EgressGateway[]
}

export type RedirectPort = { readonly port: number; readonly protocol: Protocol; readonly name?: string }

/** What is redirected: an address, or the cluster addresses of a Service; without ports every port of it. */
export type RedirectFrontend =
  | { readonly kind: 'address'; readonly ip: string; readonly ports: readonly RedirectPort[] }
  | {
      readonly kind: 'service'
      readonly name: string
      readonly namespace: string
      readonly ports: readonly RedirectPort[]
    }

export type CiliumLocalRedirectPolicy = {
  readonly meta: Meta
  readonly frontend: RedirectFrontend
  /** Pods of the same namespace, on the same node. */
  readonly backends: LabelSelector
  readonly ports: readonly RedirectPort[]
}
