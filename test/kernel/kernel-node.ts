/**
 * A node's network stack in a namespace of its own. Each link is a veth pair whose far end sits in a second namespace that
 * stands for what is behind it: a pod, the machines outside.
 *
 * Nothing asks for neighbours: every route of a link leads to a gateway whose address is known for good, so the first
 * packet to any destination is sent at once. The far ends hold no addresses and answer nothing, so a walk is never mixed
 * with replies.
 */
import { parsePrefix, printPrefix } from '#base/prefix'
import { createNamespaces, inside, removeNamespaces } from './namespace'
import { mustRun } from './run-command'

/** `routes` are prefixes, or `default`, which stands for both families' default routes. */
export type LinkSpec = {
  readonly name: string
  readonly addresses: readonly string[]
  readonly routes?: readonly string[]
}

export type NodeSpec = {
  readonly links: readonly LinkSpec[]
  /** Addresses on `lo`, such as a virtual IP that is bound to the node. */
  readonly localAddresses?: readonly string[]
  /** Written after the usual ones, as `net.ipv4.conf.all.route_localnet`. */
  readonly sysctls?: Readonly<Record<string, string>>
}

export type KernelLink = {
  readonly name: string
  readonly mac: string
  readonly peerNamespace: string
  readonly peerMac: string
}

export type KernelNode = {
  readonly namespace: string
  readonly links: readonly KernelLink[]
  readonly close: () => void
}

/** The outside on eth0, pods on cni0: the addresses of the saves in test/saves. */
export const usualNode: NodeSpec = {
  links: [
    { name: 'eth0', addresses: ['192.168.50.11/24', 'fd00:192:168:50::11/64'], routes: ['default'] },
    { name: 'cni0', addresses: ['10.244.1.1/24', 'fd00:10:244:1::1/64'] },
  ],
}

const usualSysctls: Readonly<Record<string, string>> = {
  'net.ipv4.ip_forward': '1',
  'net.ipv6.conf.all.forwarding': '1',
  'net.ipv4.conf.all.rp_filter': '0',
  'net.ipv4.conf.default.rp_filter': '0',
  'net.ipv4.conf.all.send_redirects': '0',
  'net.ipv4.conf.default.send_redirects': '0',
  'net.ipv4.icmp_ratelimit': '0',
  'net.ipv6.icmp.ratelimit': '0',
  'net.ipv6.conf.all.accept_dad': '0',
  'net.ipv6.conf.default.accept_dad': '0',
  'net.ipv6.conf.default.accept_ra': '0',
  'net.ipv6.conf.default.router_solicitations': '0',
}

export function createNode(spec: NodeSpec = usualNode): KernelNode {
  const [namespace = '', ...peers] = createNamespaces(['node', ...spec.links.map((_, index) => `peer${index}`)])
  const close = () => removeNamespaces([namespace, ...peers])
  const links = spec.links.map(({ name }, index): KernelLink => {
    const peerNamespace = peers[index] ?? ''
    return { name, mac: macOf(index, 1), peerNamespace, peerMac: macOf(index, 2) }
  })
  try {
    for (const name of [namespace, ...peers]) writeSysctls(name, usualSysctls)
    mustRun(['ip', '-batch', '-'], links.flatMap((link) => pairLines(namespace, link)).join('\n'))
    for (const link of links) mustRun(['ip', '-n', link.peerNamespace, 'link', 'set', 'peer', 'up'])
    mustRun(['ip', '-n', namespace, '-batch', '-'], nodeLines(spec, links).join('\n'))
    // Interfaces made after the defaults were written follow them; what a caller asks for may name an interface.
    writeSysctls(namespace, spec.sysctls ?? {})
  } catch (error) {
    close()
    throw error
  }
  return { namespace, links, close }
}

/** One process for all of them: starting a command in a namespace costs some milliseconds. */
function writeSysctls(namespace: string, sysctls: Readonly<Record<string, string>>): void {
  const lines = Object.entries(sysctls).map(
    ([name, value]) => `echo ${value} > /proc/sys/${name.replaceAll('.', '/')} || exit 1`,
  )
  if (lines.length > 0) mustRun(inside(namespace, ['sh', '-s']), lines.join('\n'))
}

function pairLines(namespace: string, link: KernelLink): string[] {
  return [
    `link add ${link.name} address ${link.mac} netns ${namespace} type veth ` +
      `peer name peer address ${link.peerMac} netns ${link.peerNamespace}`,
  ]
}

function nodeLines(spec: NodeSpec, links: readonly KernelLink[]): string[] {
  const addressed = spec.links.flatMap((link, index) => {
    const { peerMac } = links[index] ?? { peerMac: '' }
    const gateways = { ipv4: `169.254.${index + 1}.1`, ipv6: `fe80::${index + 1}:1` }
    return [
      `link set ${link.name} up`,
      ...Object.values(gateways).map((ip) => `neigh add ${ip} lladdr ${peerMac} dev ${link.name} nud permanent`),
      ...link.addresses.map((address) => `addr add ${address} dev ${link.name} noprefixroute${nodad(address)}`),
      ...link.addresses.filter(spansSubnet).map((address) => routeLine(subnetOf(address), link.name, gateways)),
      ...(link.routes ?? []).flatMap((route) =>
        (route === 'default' ? ['0.0.0.0/0', '::/0'] : [route]).map((one) => routeLine(one, link.name, gateways)),
      ),
    ]
  })
  const local = (spec.localAddresses ?? []).map((address) => `addr add ${address} dev lo${nodad(address)}`)
  return ['link set lo up', ...local, ...addressed]
}

function routeLine(prefix: string, device: string, gateways: { readonly ipv4: string; readonly ipv6: string }): string {
  const isIpv6 = prefix.includes(':')
  return `route add ${prefix} via ${isIpv6 ? gateways.ipv6 : gateways.ipv4} dev ${device} onlink`
}

function nodad(address: string): string {
  return address.includes(':') ? ' nodad' : ''
}

function spansSubnet(address: string): boolean {
  return !/\/(32|128)$/.test(address) && address.includes('/')
}

/** `ip route` refuses host bits, `ip addr` needs them. */
function subnetOf(address: string): string {
  const prefix = parsePrefix(address)?.prefix
  if (prefix === undefined) throw new Error(`${address} is no address with a prefix length`)
  return printPrefix(prefix)
}

/** Locally administered, and the same in every run. */
function macOf(link: number, end: number): string {
  return `02:70:6f:72:${link.toString(16).padStart(2, '0')}:0${end}`
}
