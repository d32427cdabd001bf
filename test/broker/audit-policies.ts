/** Policies that the tests of audit mode put, and verdicts as one line each. */
import type { VerdictRecord } from '../../src/wire/verdict-record'

export const webFromFrontend = `apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: web
  namespace: shop
spec:
  podSelector:
    matchLabels: {app: web}
  policyTypes: [Ingress]
  ingress:
    - from:
        - podSelector:
            matchLabels: {app: frontend}
      ports:
        - port: 8080
`

export const ciliumWeb = `apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata:
  name: web
  namespace: shop
spec:
  endpointSelector:
    matchLabels: {app: web}
  ingress:
    - fromEndpoints:
        - matchLabels: {app: frontend}
`

export const clusterWide = `apiVersion: policy.networking.k8s.io/v1alpha1
kind: AdminNetworkPolicy
metadata:
  name: no-other
spec:
  priority: 10
  subject:
    pods:
      namespaceSelector: {}
      podSelector:
        matchLabels: {app: web}
  ingress:
    - action: Deny
      from:
        - pods:
            namespaceSelector: {}
            podSelector:
              matchLabels: {app: other}
`

export function verdictsOf(one: VerdictRecord): string {
  const source = `${one.src_namespace ?? '-'}/${one.src_pod ?? '-'}`
  const target = `${one.dst_namespace ?? '-'}/${one.dst_pod ?? '-'}`
  const reason = one.reason === null ? '' : ` ${one.reason}`
  return `${one.verdict} ${one.direction} ${source} > ${target} ${one.dst_port}/${one.protocol}${reason}`
}
