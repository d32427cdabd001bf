/** Every finding about the objects read: its code, how bad it is, and what it means. */
import type { Finding, FindingTable } from '#base/finding'

export const manifestFindings = {
  'manifest.broken-document': {
    severity: 'error',
    meaning: 'One YAML document of a file cannot be read; the others are used.',
  },
  'manifest.unreadable-text': { severity: 'error', meaning: 'Nothing of a text can be used; the message says why.' },
  'manifest.no-objects': {
    severity: 'warning',
    meaning: 'A text is null, or a list without items, so that it holds no objects.',
  },
  'manifest.not-an-object': {
    severity: 'warning',
    meaning: 'Something that is no Kubernetes object stands among the objects; it is left out.',
  },
  'manifest.no-kind': { severity: 'error', meaning: 'An object without a kind is left out.' },
  'manifest.no-name': { severity: 'error', meaning: 'An object without metadata.name is left out.' },
  'manifest.no-api-version': {
    severity: 'warning',
    meaning: 'An object has no apiVersion; it is read as the usual version of its kind.',
  },
  'manifest.nested-list': {
    severity: 'warning',
    meaning: 'A List stands inside a List; its items are read as if they stood alone.',
  },
  'manifest.api-error': {
    severity: 'error',
    meaning: 'The input holds an error that the API server answered in place of objects.',
  },
  'manifest.duplicate-object': {
    severity: 'warning',
    meaning: 'The same object was read twice; the later one is used.',
  },
  'manifest.skipped-kinds': { severity: 'info', meaning: 'Objects of kinds that Portolan does not read were skipped.' },
  'manifest.wrong-type': {
    severity: 'error',
    meaning:
      'A field holds a value of the wrong type, which the API server would refuse; the message says how it was read.',
  },
  'manifest.bad-value': {
    severity: 'error',
    meaning: 'A field holds a value that the API server would refuse; the message says how it was read.',
  },
  'manifest.bad-address': { severity: 'error', meaning: 'A field holds a text that is no IP address; it is left out.' },
  'manifest.bad-cidr': { severity: 'error', meaning: 'A field holds a text that is no IP range; it is left out.' },
  'manifest.host-bits': {
    severity: 'warning',
    meaning: 'An IP range has bits set beyond its length; they are read as zero, as the kernel does.',
  },
  'manifest.bad-name': {
    severity: 'error',
    meaning: 'The API server would refuse the name; the object is used under it.',
  },
  'manifest.impossible-name': {
    severity: 'error',
    meaning:
      'A name holds control characters, blanks, quotes or slashes, which no cluster can hold; the message says what is left out.',
  },
  'manifest.bad-label': {
    severity: 'error',
    meaning: 'The API server would refuse the label; the message says how it was read.',
  },
  'service.target-port-digits': {
    severity: 'warning',
    meaning: 'A targetPort is a text of digits, which is read as that number.',
  },
  'service.no-ports': {
    severity: 'error',
    meaning: 'A Service without ports leads nowhere, and the API server would refuse it.',
  },
  'service.ports-alike': {
    severity: 'error',
    meaning:
      'Two ports of a Service share a name, or a number and protocol, or are unnamed; the API server would refuse it.',
  },
  'service.family-mismatch': {
    severity: 'error',
    meaning: 'The ipFamilies and clusterIPs of a Service tell different families; the addresses count.',
  },
  'service.cluster-ip-taken': { severity: 'error', meaning: 'Two Services hold the same ClusterIP.' },
  'service.node-port-taken': { severity: 'error', meaning: 'Two Service ports hold the same node port and protocol.' },
  'service.assumed-cluster-ip': { severity: 'info', meaning: 'Services without a ClusterIP were given assumed ones.' },
  'service.assumed-node-port': { severity: 'info', meaning: 'Services without node ports were given assumed ones.' },
  'service.range-full': { severity: 'error', meaning: 'No address or port is left to assume for a Service.' },
  'slice.family-mismatch': {
    severity: 'error',
    meaning: 'An address in an EndpointSlice is not of its addressType; it is left out.',
  },
  'slice.no-addresses': {
    severity: 'error',
    meaning: 'An endpoint in an EndpointSlice has no addresses, which the API server would refuse; it is left out.',
  },
  'pod.no-ready-condition': {
    severity: 'warning',
    meaning: 'A pod has an address but its status has no condition Ready, so it counts as not ready.',
  },
  'pod.assumed-status': {
    severity: 'info',
    meaning: 'Pods without a status are assumed to run and to be ready, with assumed addresses.',
  },
  'pod.no-node-fits': {
    severity: 'warning',
    meaning: 'No node may run the pod, so it stays without node and address.',
  },
  'pod.no-address': {
    severity: 'error',
    meaning: 'No address is left to assume for a pod, so it is not ready.',
  },
  'workload.implied-pods': {
    severity: 'info',
    meaning: 'Workloads without pods in the input were given the pods they imply.',
  },
  'workload.no-template': {
    severity: 'error',
    meaning: 'A workload has no template of its pods, which the API server would refuse; no pods are implied.',
  },
  'workload.too-many-pods': {
    severity: 'error',
    meaning: 'A workload asks for more pods than a cluster can hold; none are implied.',
  },
  'workload.name-too-long': {
    severity: 'error',
    meaning: 'The pods of a workload could not be created, as a label made of its name is too long; none are implied.',
  },
  'policy.refused': {
    severity: 'error',
    meaning: 'The API server would refuse a policy, so that no cluster holds it; it is left out.',
  },
  'policy.not-enforced': {
    severity: 'error',
    meaning: 'The API server takes a policy, but what enforces it refuses it, so that it stands there without effect.',
  },
  'policy.unknown-field': {
    severity: 'warning',
    meaning: 'A policy has a field that its kind does not know; the API server drops it.',
  },
  'policy.unknown-peer': {
    severity: 'warning',
    meaning: 'A rule of a cluster-wide policy has a peer of a kind that Portolan does not know: the rule fails closed.',
  },
  'policy.sloppy-range': {
    severity: 'warning',
    meaning:
      'A policy has a range of addresses that the API server takes with a warning; the message says how it is read.',
  },
  'policy.doubtful': {
    severity: 'warning',
    meaning:
      'The API server takes a policy, but what enforces it may read it in ways that differ; the message says how it counts.',
  },
  'policy.namespace-missing': {
    severity: 'warning',
    meaning:
      'Policies select namespaces by labels, and the input lacks namespaces: these are taken to have the label kubernetes.io/metadata.name alone.',
  },
  'traffic-policy.refused': {
    severity: 'error',
    meaning:
      'The API server would refuse a traffic policy or what it is bound to; nothing acts on it, and its interfaces stay as they are or deny.',
  },
  'cluster.assumed-nodes': { severity: 'info', meaning: 'The input has no Node, so nodes are assumed.' },
} as const satisfies FindingTable

export type ManifestFindingCode = keyof typeof manifestFindings

export function manifestFinding(code: ManifestFindingCode, rest: Omit<Finding, 'code' | 'severity'>): Finding {
  return { code, severity: manifestFindings[code].severity, ...rest }
}
