/** Egress gateways, local redirects and slices of endpoints as they are read. */
import { expect, test } from 'vitest'
import { parseCluster } from '../parse-cluster'

function read(text: string) {
  return parseCluster(text, 'cilium.yaml')
}

const gateway = `apiVersion: cilium.io/v2
kind: CiliumEgressGatewayPolicy
metadata: {name: egress}
spec:
  selectors: [{podSelector: {matchLabels: {app: client}}}]
  destinationCIDRs: ["0.0.0.0/0"]
  excludedCIDRs: ["10.0.0.0/8"]
  egressGateway: {nodeSelector: {matchLabels: {egress: "true"}}, egressIP: 203.0.113.10}
`

test('an egress gateway policy is read with the places of its parts', () => {
  const { value } = read(gateway)
  const policy = value.egressGatewayPolicies.get('egress')
  expect(policy?.gateway).toMatchObject({ path: 'spec.egressGateway', egressIp: '203.0.113.10' })
  expect(policy?.selectors[0]).toMatchObject({ path: 'spec.selectors[0]', pods: { matchLabels: { app: 'client' } } })
  expect(policy?.excluded).toEqual([{ path: 'spec.excludedCIDRs[0]', text: '10.0.0.0/8' }])
})

test('one without ranges, or with a range that is none, is left out', () => {
  for (const text of [
    gateway.replace(/ {2}destinationCIDRs.*\n/, ''),
    gateway.replace('"0.0.0.0/0"', '"everywhere"'),
  ]) {
    const { value, findings } = read(text)
    expect(value.egressGatewayPolicies.size).toBe(0)
    expect(findings.map(({ code }) => code)).toContain('policy.refused')
  }
})

test('a local redirect names an address or a Service, and not both', () => {
  const redirect = (frontend: string) => `apiVersion: cilium.io/v2
kind: CiliumLocalRedirectPolicy
metadata: {name: dns, namespace: kube-system}
spec:
  redirectFrontend: ${frontend}
  redirectBackend: {localEndpointSelector: {matchLabels: {k8s-app: node-local-dns}}, toPorts: [{port: "53", protocol: UDP}]}
`
  const service = '{serviceMatcher: {serviceName: kube-dns, namespace: kube-system}}'
  const { value } = read(redirect(service))
  expect(value.localRedirectPolicies.get('kube-system/dns')).toMatchObject({
    frontend: { kind: 'service', name: 'kube-dns', namespace: 'kube-system', ports: [] },
    ports: [{ port: 53, protocol: 'UDP' }],
  })
  expect(read(redirect('{}')).value.localRedirectPolicies.size).toBe(0)
})

test('a CiliumEndpoint counts before its part of a slice, whichever comes first', () => {
  const slice = `apiVersion: cilium.io/v2alpha1
kind: CiliumEndpointSlice
metadata: {name: ces-1}
namespace: shop
endpoints:
- {name: web-0, id: 2000, networking: {addressing: [{ipv4: 10.0.0.1}]}}
- {name: web-1, id: 2000, networking: {addressing: [{ipv4: 10.0.0.2}]}}
`
  const own = `apiVersion: cilium.io/v2
kind: CiliumEndpoint
metadata: {name: web-0, namespace: shop}
status: {id: 77, identity: {id: 3000}, networking: {addressing: [{ipv4: 10.0.0.1}]}}
`
  for (const text of [`${slice}---\n${own}`, `${own}---\n${slice}`]) {
    const { value, findings } = read(text)
    expect(value.ciliumEndpoints.get('shop/web-0')).toMatchObject({ id: 77, identity: 3000 })
    expect(value.ciliumEndpoints.get('shop/web-1')).toMatchObject({ identity: 2000, addresses: ['10.0.0.2'] })
    expect(findings.filter(({ code }) => code === 'manifest.duplicate-object')).toEqual([])
  }
})
