/** Addresses of Services that the maps have no frontend for: another port, or kube-proxy's where it is not replaced. */
import { printIp } from '#base/ip'
import { keyOf } from '#model/meta'
import type { Service } from '#model/service'
import { podBehindHostPort } from '../host-port'
import { isIcmp } from './flow-packet'
import { type Draft, type Ending, unknown } from './walk-draft'

/** What becomes of a packet that the datapath let go on to a Service's address as to any other. */
export function withoutFrontend(draft: Draft, ending: Ending): Ending {
  const { verdict, stop } = ending
  if (verdict.kind !== 'allowed' || (stop.kind !== 'host' && stop.kind !== 'outside')) return ending
  const behind = stop.kind === 'host' ? hostPortOf(draft, stop.node) : undefined
  if (behind !== undefined && stop.kind === 'host') {
    const at = { node: stop.node, hook: 'netfilter', program: 'portmap' }
    const sentence = `port ${draft.packet.port} of ${stop.node} is a hostPort of ${behind}, which without kube-proxy-replacement rules of portmap translate, and no map holds them`
    return unknown(draft, at, 'cilium.host-port', sentence)
  }
  const found = serviceOf(draft, stop.kind)
  if (found === undefined) return ending
  const { service, hasPort } = found
  const ip = printIp(draft.packet.destination)
  const { port, protocol } = draft.packet
  const name = keyOf(service.meta)
  if (hasPort && !draft.net.settings.replacesKubeProxy) {
    const at = { ...(stop.kind === 'host' && { node: stop.node }), hook: 'netfilter', program: 'kube-proxy' }
    const sentence = `${ip}:${port} is Service ${name}’s, and without kube-proxy-replacement the rules of kube-proxy decide from here: --datapath iptables or nftables walks them`
    return unknown(draft, at, 'cilium.kube-proxy', sentence)
  }
  if (stop.kind === 'host' || hasPort) return ending
  const lacks = isIcmp(protocol) ? 'which answers no ping' : `which has no port ${port}/${protocol}`
  const sentence = `${ip} is an address of Service ${name}, ${lacks}: nobody is known to answer there`
  const { namespace } = service.meta
  const object = { kind: 'Service', namespace, name: service.meta.name }
  const [first, ...rest] = verdict.because
  return {
    ...ending,
    verdict: { ...verdict, because: [first, ...rest, { code: 'cilium.no-frontend', sentence, object }] },
  }
}

function hostPortOf({ net, packet }: Draft, node: string): string | undefined {
  if (net.settings.replacesKubeProxy) return undefined
  const pod = podBehindHostPort(net.cluster, { node, port: packet.port, protocol: packet.protocol })
  return pod === undefined ? undefined : keyOf(pod.meta)
}

type Found = { readonly service: Service; readonly hasPort: boolean }

function serviceOf({ net, packet }: Draft, where: 'host' | 'outside'): Found | undefined {
  const ip = printIp(packet.destination)
  const isPort = (one: Service['ports'][number], number: number): boolean =>
    number !== 0 && number === packet.port && one.protocol === packet.protocol
  let other: Found | undefined
  for (const service of net.cluster.services.values()) {
    if (where === 'host') {
      if (service.ports.some((one) => isPort(one, one.nodePort))) return { service, hasPort: true }
      continue
    }
    const own = [...service.clusterIPs, ...service.externalIPs, ...service.loadBalancerIngress.map((one) => one.ip)]
    if (!own.includes(ip)) continue
    if (service.ports.some((one) => isPort(one, one.port))) return { service, hasPort: true }
    other = { service, hasPort: false }
  }
  return other
}
