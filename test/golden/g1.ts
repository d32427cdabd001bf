/** Scenario G1: seven Services on two nodes that between them use every kind of rule. The goldens are its rules. */
import type { Cluster } from '#model/cluster'
import type { Pod } from '#model/pod'
import type { Service } from '#model/service'
import {
  clusterOf,
  endpointOf,
  nodeOf,
  podOf,
  portOf,
  type ServiceFields,
  serviceOf,
  sliceOf,
  slicePortOf,
} from './objects'

/** What `planServices` needs to know beside the cluster: the node is node-a. */
export const g1NodeName = 'node-a'
export const g1ClusterCidr = '10.244.0.0/16'

function selecting(path: string, app: string, fields: ServiceFields): Service {
  return serviceOf(path, { selector: { [app]: 'yes' }, ...fields })
}

const services: readonly Service[] = [
  serviceOf('default/kubernetes', {
    clusterIPs: ['10.96.0.1'],
    ports: [portOf(443, { name: 'https', targetPort: 6443 })],
  }),
  selecting('kube-system/kube-dns', 'dns', {
    clusterIPs: ['10.96.0.10'],
    ports: [portOf(53, { name: 'dns', protocol: 'UDP' }), portOf(53, { name: 'dns-tcp' })],
  }),
  selecting('shop/api', 'api', {
    type: 'LoadBalancer',
    externalTrafficPolicy: 'Local',
    clusterIPs: ['10.96.20.1'],
    ports: [portOf(80, { name: 'http', targetPort: 9000, nodePort: 31080 })],
    loadBalancerIngress: [{ ip: '198.51.100.20', ipMode: 'VIP' }],
    externalIPs: ['203.0.113.77'],
    healthCheckNodePort: 32111,
  }),
  selecting('shop/cache', 'cache', {
    clusterIPs: ['10.96.20.4'],
    internalTrafficPolicy: 'Local',
    ports: [portOf(6379, { name: 'redis' })],
  }),
  selecting('shop/pay', 'pay', {
    type: 'LoadBalancer',
    clusterIPs: ['10.96.20.2'],
    ports: [portOf(443, { name: 'https', targetPort: 8443, nodePort: 31443 })],
    loadBalancerIngress: [{ ip: '198.51.100.21', ipMode: 'VIP' }],
    loadBalancerSourceRanges: ['203.0.113.0/25', '192.168.50.0/24'],
    affinitySeconds: 600,
  }),
  selecting('shop/void', 'void', {
    type: 'NodePort',
    clusterIPs: ['10.96.20.3'],
    ports: [portOf(80, { nodePort: 31090 })],
  }),
  selecting('shop/web', 'web', { clusterIPs: ['10.96.10.1'], ports: [portOf(80, { targetPort: 8080 })] }),
]

function pod(path: string, ip: string, apps: readonly string[]): Pod {
  const labels = Object.fromEntries(apps.map((app) => [app, 'yes']))
  return podOf(path, { podIPs: [ip], nodeName: ip.startsWith('10.244.1.') ? 'node-a' : 'node-b', meta: { labels } })
}

const pods: readonly Pod[] = [
  pod('kube-system/dns-0', '10.244.1.2', ['dns']),
  pod('kube-system/dns-1', '10.244.2.2', ['dns']),
  pod('shop/front-0', '10.244.1.9', ['api', 'web']),
  pod('shop/front-1', '10.244.2.3', ['api', 'web']),
  pod('shop/web-0', '10.244.1.10', ['web']),
  pod('shop/cache-0', '10.244.2.8', ['cache']),
  pod('shop/pay-0', '10.244.1.11', ['pay']),
  pod('shop/pay-1', '10.244.2.11', ['pay']),
]

const nodes = [
  nodeOf('node-a', { addresses: [{ type: 'InternalIP', address: '192.168.50.11' }], podCIDRs: ['10.244.1.0/24'] }),
  nodeOf('node-b', { addresses: [{ type: 'InternalIP', address: '192.168.50.12' }], podCIDRs: ['10.244.2.0/24'] }),
]

/** The API server looks after the endpoints of its own Service. */
const apiServer = sliceOf('default/kubernetes', 'kubernetes', {
  ports: [slicePortOf(6443, { name: 'https' })],
  endpoints: [endpointOf('192.168.50.11', { nodeName: 'node-a' })],
})

export const g1: Cluster = clusterOf({ services, pods, nodes, slices: [apiServer] })
