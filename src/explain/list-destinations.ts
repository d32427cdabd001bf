/** Every address and port at which a Service should answer on a node. */
import { type Family, familyOf, printEndpoint } from '#base/ip'
import { servicePortName } from '#compile/services/plan-services'
import { isHeadless, type Service, type ServicePort } from '#model/service'
import type { SourceClass } from './choose-sources'

export type DestinationKind = 'cluster IP' | 'external IP' | 'load balancer IP' | 'node port'

export type Destination = {
  readonly kind: DestinationKind
  /** `namespace/name` or `namespace/name:port`, as rules call it. */
  readonly name: string
  readonly servicePort: ServicePort
  readonly family: Family
  readonly address: string
  readonly port: number
  readonly protocol: 'tcp' | 'udp' | 'sctp'
}

/** RFC 5737 and RFC 3849 addresses stand for a node whose own are not known. */
export const standIn: Readonly<Record<Family, string>> = { ipv4: '192.0.2.1', ipv6: '2001:db8::1' }

const protocols = { TCP: 'tcp', UDP: 'udp', SCTP: 'sctp' } as const

export type DestinationOptions = {
  readonly family: Family
  /** An address of the node that takes node ports; absent where none does. */
  readonly nodePortIp?: string
}

/** Cluster IPs come first. */
export function listDestinations(service: Service, { family, nodePortIp }: DestinationOptions): readonly Destination[] {
  if (service.type === 'ExternalName') return []
  const isOfFamily = (ip: string): boolean => familyOf(ip) === family
  const vips = service.loadBalancerIngress.flatMap(({ ip, ipMode }) =>
    ip !== undefined && ipMode === 'VIP' && isOfFamily(ip) ? [ip] : [],
  )
  const clusterIPs = isHeadless(service) ? [] : service.clusterIPs.filter(isOfFamily)
  return service.ports.flatMap((servicePort) => {
    const at = (kind: DestinationKind, address: string, port: number): Destination => ({
      kind,
      name: servicePortName(service, servicePort),
      servicePort,
      family,
      address,
      port,
      protocol: protocols[servicePort.protocol],
    })
    return [
      ...clusterIPs.map((ip) => at('cluster IP', ip, servicePort.port)),
      ...service.externalIPs.filter(isOfFamily).map((ip) => at('external IP', ip, servicePort.port)),
      ...vips.map((ip) => at('load balancer IP', ip, servicePort.port)),
      ...(servicePort.nodePort === 0 || nodePortIp === undefined
        ? []
        : [at('node port', nodePortIp, servicePort.nodePort)]),
    ]
  })
}

export function isExternal({ kind }: Destination): boolean {
  return kind !== 'cluster IP'
}

export function printDestination({ address, port, protocol }: Destination): string {
  return `${printEndpoint(address, port)}/${protocol}`
}

/** Whether clients of that class are those that the kind of address is for. */
export function isRepresentative({
  destination,
  from,
}: {
  readonly destination: Destination
  readonly from: SourceClass
}): boolean {
  return from === (isExternal(destination) ? 'outside' : 'pod')
}
