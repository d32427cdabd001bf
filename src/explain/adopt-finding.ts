/** Findings of other rooms, told in a layer with what shows them and what to do. */
import type { Finding } from '#base/finding'
import type { ExplainFinding } from './explanation'

/** What to do about a finding whose room does not say it. */
const remedies: Readonly<Record<string, string>> = {
  'services.other-proxy': 'take the label away, or see that the proxy it names runs',
  'services.headless-label': 'take the label away: the controller sets it on slices, nobody else should',
  'services.headless-exposed': 'give it a cluster IP (in a new Service: the field cannot be changed)',
  'services.no-cluster-ip': 'see why the API server allots none',
  'services.address-without-family': 'add the family to spec.ipFamilies, or take the address away',
  'services.no-health-check-port': 'let the API server allot one: leave the field out when you create the Service',
  'services.node-port-addresses-unmatched': 'compare nodePortAddresses of kube-proxy with the addresses of the node',
  'services.hints-ignored': 'run an endpoint in the zone of that node, or live with traffic across zones',
  'services.hidden-slice': 'take the label off the slice',
  'services.port-name-mismatch': 'give port names of Service and slice the same spelling and protocol',
  'services.slice-port-without-number': 'write name and number of the port into the slice',
  'services.endpoint-of-other-family': 'move the address to a slice of its own addressType',
  'endpointslices.no-pods': 'correct the selector or the labels of the pods',
  'endpointslices.no-pods-read': 'add the output of kubectl get pods -A',
  'endpointslices.no-address-in-family': 'take the family out of spec.ipFamilies, or give the pods such addresses',
  'endpointslices.node-missing': 'see why the Node object is gone while its pods are not',
  'endpointslices.topology-hints-disabled': 'mend what the message names, or live with traffic across zones',
  'endpointslices.reserved-label': 'take the label off the Service',
  'endpointslices.unknown-traffic-distribution': 'use PreferSameZone or PreferSameNode, or leave the field out',
  'endpointslices.node-unknown': 'add the output of kubectl get nodes',
  'endpointslices.mirror-bad-address': 'correct the address in the Endpoints object',
  'endpointslices.mirror-too-many': 'write EndpointSlices in place of the Endpoints object',
  'endpointslices.orphan': 'add the Service to the input, or delete the slice',
  'ruleset.no-kube-proxy': 'take the dump on the node itself, as root, with iptables-save',
  'pod.no-ready-condition': 'take the pods with kubectl get pods -o yaml, with their status',
}

/** The message says what shows it. `node` is whose rules it is about. */
export function adoptFinding(
  finding: Finding,
  node?: { readonly label: string; readonly name: string | undefined },
): ExplainFinding {
  const { code, message } = finding
  const hint = finding.hint ?? remedies[code] ?? 'see what docs/findings.md says of it, and correct the input'
  return {
    ...finding,
    ...(node !== undefined && { message: `${node.label}: ${message}` }),
    ...(node?.name !== undefined && { object: { kind: 'Node', name: node.name } }),
    hint,
    evidence: [],
  }
}
