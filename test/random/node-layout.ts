/** The node that random cases are about: its addresses, its links, and who is behind each of them. */
import type { Family } from '#base/ip'

export type Place = {
  /** The node's own addresses but the loopback's, the primary one first. */
  readonly nodeIps: readonly [string, ...string[]]
  /** Bound to `lo`, as an announcer of VIPs does. */
  readonly boundVip: string
  readonly otherNodeIp: string
  readonly clusterCidr: string
  readonly nodeCidr: string
  readonly otherNodeCidr: string
  readonly serviceIp: (host: number) => string
  /** Hosts from 128 on are behind the link of their own. */
  readonly localPodIp: (host: number) => string
  readonly remotePodIp: (host: number) => string
  readonly vip: (host: number) => string
  readonly outsideIp: (host: number) => string
  readonly neighbourIp: (host: number) => string
  readonly loopback: string
  readonly hostBits: number
}

export const outsideLink = 'eth0'
export const bridgeLink = 'cni0'
export const podLink = 'vethpod1'

export const nodeName = 'node-a'
export const otherNodeName = 'node-b'

export const places: Readonly<Record<Family, Place>> = {
  ipv4: {
    nodeIps: ['192.168.50.11', '10.244.1.1', '10.244.1.254', '198.51.100.99'],
    boundVip: '198.51.100.99',
    otherNodeIp: '192.168.50.12',
    clusterCidr: '10.244.0.0/16',
    nodeCidr: '10.244.1.0/24',
    otherNodeCidr: '10.244.2.0/24',
    serviceIp: (host) => `10.96.${host >> 8}.${host & 255}`,
    localPodIp: (host) => `10.244.1.${host}`,
    remotePodIp: (host) => `10.244.2.${host}`,
    vip: (host) => `198.51.100.${host}`,
    outsideIp: (host) => `203.0.113.${host}`,
    neighbourIp: (host) => `192.168.50.${host}`,
    loopback: '127.0.0.1',
    hostBits: 32,
  },
  ipv6: {
    nodeIps: ['fd00:192:168:50::11', 'fd00:10:244:1::1', 'fd00:10:244:1::fe', '2001:db8:100::99'],
    boundVip: '2001:db8:100::99',
    otherNodeIp: 'fd00:192:168:50::12',
    clusterCidr: 'fd00:10:244::/56',
    nodeCidr: 'fd00:10:244:1::/64',
    otherNodeCidr: 'fd00:10:244:2::/64',
    serviceIp: (host) => `fd00:10:96::${host.toString(16)}`,
    localPodIp: (host) => `fd00:10:244:1::${host.toString(16)}`,
    remotePodIp: (host) => `fd00:10:244:2::${host.toString(16)}`,
    vip: (host) => `2001:db8:100::${host.toString(16)}`,
    outsideIp: (host) => `2001:db8:203::${host.toString(16)}`,
    neighbourIp: (host) => `fd00:192:168:50::${host.toString(16)}`,
    loopback: '::1',
    hostBits: 128,
  },
}

/** What `createNode` of the kernel tests makes of it. */
export const layoutSpec = {
  links: [
    { name: outsideLink, addresses: ['192.168.50.11/24', 'fd00:192:168:50::11/64'], routes: ['default'] },
    { name: bridgeLink, addresses: ['10.244.1.1/24', 'fd00:10:244:1::1/64'] },
    // Without an address of its own a link could take no REDIRECT: the kernel drops the packet.
    {
      name: podLink,
      addresses: ['10.244.1.254/32', 'fd00:10:244:1::fe/128'],
      routes: ['10.244.1.128/25', 'fd00:10:244:1::80/121'],
    },
  ],
  localAddresses: ['198.51.100.99/32', '2001:db8:100::99/128'],
  sysctls: { 'net.ipv4.conf.all.route_localnet': '1' },
}

/** The link behind which a source is; the outside also stands for other nodes and their pods. */
export function linkOf(family: Family, source: string): string {
  const { nodeCidr } = places[family]
  const isLocalPod = source.startsWith(nodeCidr.replace(/0\/24$|\/64$/, ''))
  if (!isLocalPod) return outsideLink
  const host = family === 'ipv4' ? Number(source.split('.')[3]) : Number.parseInt(source.split('::')[1] ?? '', 16)
  return host >= 128 ? podLink : bridgeLink
}

/** What Portolan is told with --node-ip; the loopback is the node's own without being named. */
export const nodeAddresses: Readonly<Record<Family, readonly string[]>> = {
  ipv4: places.ipv4.nodeIps,
  ipv6: places.ipv6.nodeIps,
}
