/** The API objects of a sketched cluster, and all that follows from them: the plan and the rules of one node. */
import { selectSlices } from '#compile/endpointslices/select-slices'
import { type NodeIptables, nodeIptables } from '#compile/node/node-iptables'
import { buildCluster } from '#manifests/build-cluster'
import type { RawObject, RawRecord } from '#manifests/text/raw-object'
import type { Cluster } from '#model/cluster'
import { nodeName, otherNodeName, places } from './node-layout'
import type { ClusterSketch, PodSketch, PortSketch, ServiceSketch } from './random-cluster'

export function clusterOfSketch(sketch: ClusterSketch): Cluster {
  return buildCluster(objectsOf(sketch)).value
}

export function rulesOfSketch(sketch: ClusterSketch): NodeIptables {
  const cluster = clusterOfSketch(sketch)
  const slices = selectSlices(cluster, 'computed').value
  return nodeIptables(cluster, slices, { family: sketch.family, node: nodeName, settings: sketch.settings }).value
}

function objectsOf(sketch: ClusterSketch): readonly RawObject[] {
  const { family, services } = sketch
  const place = places[family]
  const nodes = [
    nodeObject(nodeName, place.nodeIps, place.nodeCidr),
    nodeObject(otherNodeName, [place.otherNodeIp], place.otherNodeCidr),
  ]
  const all = [...nodes, ...services.flatMap((service) => objectsOfService(sketch, service))]
  return all.map((value, index) => ({
    kind: String(value.kind),
    apiVersion: 'v1',
    value,
    origin: { file: `cluster ${sketch.seed}`, index: String(index) },
  }))
}

function nodeObject(name: string, ips: readonly string[], podCIDR: string): RawRecord {
  const addresses = ips.map((address) => ({ type: 'InternalIP', address }))
  const labels = { 'topology.kubernetes.io/zone': name }
  const conditions = [{ type: 'Ready', status: 'True' }]
  return { kind: 'Node', metadata: { name, labels }, spec: { podCIDRs: [podCIDR] }, status: { addresses, conditions } }
}

/** A namespace of its own for each cluster: chain and list names are never those of an earlier case. */
function objectsOfService(sketch: ClusterSketch, service: ServiceSketch): RawRecord[] {
  const namespace = `case-${sketch.seed}`
  const labels = { app: service.name }
  const ingress = service.vips.map((ip) => ({ ip }))
  const value: RawRecord = {
    kind: 'Service',
    metadata: { name: service.name, namespace },
    spec: {
      type: service.type,
      selector: labels,
      clusterIP: service.clusterIP,
      ports: service.ports.map((port, index) => portObject(service, port, index)),
      externalIPs: service.externalIPs,
      loadBalancerSourceRanges: service.sourceRanges,
      internalTrafficPolicy: service.isInternalLocal ? 'Local' : 'Cluster',
      ...(service.isExternalLocal && { externalTrafficPolicy: 'Local' }),
      ...(service.healthCheckNodePort > 0 && { healthCheckNodePort: service.healthCheckNodePort }),
      ...(service.affinitySeconds !== undefined && {
        sessionAffinity: 'ClientIP',
        sessionAffinityConfig: { clientIP: { timeoutSeconds: service.affinitySeconds } },
      }),
      publishNotReadyAddresses: service.publishesNotReady,
    },
    status: { loadBalancer: { ingress } },
  }
  const pods = service.pods.map((pod) => podObject(sketch, service, pod))
  return [value, ...pods]
}

function portObject(
  service: ServiceSketch,
  { protocol, port, nodePort, target }: PortSketch,
  index: number,
): RawRecord {
  return {
    ...(service.ports.length > 1 && { name: `port-${index}` }),
    protocol,
    port,
    ...(nodePort > 0 && { nodePort }),
    ...(target === 'number' && { targetPort: 7000 + index }),
    ...(target === 'name' && { targetPort: `named-${index}` }),
  }
}

function podObject({ seed, family }: ClusterSketch, service: ServiceSketch, pod: PodSketch): RawRecord {
  const place = places[family]
  const isLocal = pod.node === nodeName
  const hostIp = isLocal ? place.nodeIps[0] : place.otherNodeIp
  const podIp = isLocal ? place.localPodIp(pod.host) : place.remotePodIp(pod.host)
  const ip = pod.usesHostNetwork ? hostIp : podIp
  const isTerminating = pod.state.startsWith('terminating')
  const isReady = pod.state === 'ready' || pod.state === 'terminating'
  const ports = service.ports.map(({ protocol }, index) => ({
    name: `named-${index}`,
    protocol,
    containerPort: pod.basePort + index,
  }))
  return {
    kind: 'Pod',
    metadata: {
      name: `${service.name}-${pod.host}`,
      namespace: `case-${seed}`,
      labels: { app: service.name },
      ...(isTerminating && { deletionTimestamp: '2026-01-01T00:00:00Z' }),
    },
    spec: {
      nodeName: pod.node,
      hostNetwork: pod.usesHostNetwork,
      containers: [{ name: 'main', ports }],
    },
    status: {
      phase: 'Running',
      hostIP: hostIp,
      podIP: ip,
      podIPs: [{ ip }],
      conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }],
    },
  }
}
