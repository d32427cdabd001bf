/** The API objects of sketched policies, their pods, namespaces and node, and the cluster they make. */
import { buildCluster } from '#manifests/build-cluster'
import type { RawRecord } from '#manifests/text/raw-object'
import type { Cluster } from '#model/cluster'
import { nodeIp, nodeName, type PolicySketch } from './random-policies'

export function clusterOfPolicies(sketch: PolicySketch): Cluster {
  const objects = policyObjects(sketch).map((value, index) => ({
    kind: String(value.kind),
    apiVersion: String(value.apiVersion),
    value,
    origin: { file: `policies ${sketch.seed}`, index: String(index) },
  }))
  return buildCluster(objects).value
}

export function policyObjects({ namespaces, pods, policies }: PolicySketch): readonly RawRecord[] {
  return [
    {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: nodeName },
      status: { addresses: [{ type: 'InternalIP', address: nodeIp }], conditions: [{ type: 'Ready', status: 'True' }] },
    },
    ...namespaces.map(({ name, labels }) => ({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name, labels: { ...labels, 'kubernetes.io/metadata.name': name } },
    })),
    ...pods.map(({ namespace, name, labels, ip, ports }) => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { namespace, name, labels },
      spec: { nodeName, containers: [{ name: 'main', ports }] },
      status: {
        phase: 'Running',
        podIP: ip,
        podIPs: [{ ip }],
        hostIP: nodeIp,
        conditions: [{ type: 'Ready', status: 'True' }],
      },
    })),
    ...policies.map(({ namespace, name, spec }) => ({
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { namespace, name },
      spec,
    })),
  ]
}
