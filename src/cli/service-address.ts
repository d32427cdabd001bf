/** `NAMESPACE/NAME[:PORT]` as the address and port of a Service. */
import { Failure } from '#base/failure'
import { familyOf, printEndpoint } from '#base/ip'
import { listOf } from '#base/text'
import { isHeadless, type Service, type ServicePort } from '#model/service'
import type { ClusterInput } from './read-inputs'
import { qualify, requireService } from './service-name'
import type { TraceOptions } from './trace-usage'

type Known = { readonly options: TraceOptions; readonly input: ClusterInput | undefined }

/** Text that names no Service is given back. */
export function addressOf(to: string, { options, input }: Known): string {
  const [, name, port] = /^((?:[a-z][a-z0-9-]*\/)+[a-z][a-z0-9-]*)(?::([\w-]+))?$/.exec(to) ?? []
  if (name === undefined) return to
  if (input === undefined)
    throw usage(
      `--to ${to} names a Service, whose address objects tell; add them with --from, or name their cluster with --kubeconfig`,
    )
  const key = qualify(name)
  requireService(input.cluster, key)
  const service = input.cluster.services.get(key)
  if (service === undefined) return to
  const address = service.clusterIPs.find((ip) => !isHeadless(service) && familyOf(ip) === options.family)
  if (address === undefined) throw usage(`--to ${to}: the Service ${whyNoAddress(service, options)}; name an IP:PORT`)
  if (options.proto === 'icmp' || options.proto === 'icmpv6') return address
  return printEndpoint(address, portOf(service, { to, port, protocol: options.proto }))
}

function usage(sentence: string): Failure {
  return new Failure('usage.bad-argument', sentence)
}

function whyNoAddress(service: Service, { family }: TraceOptions): string {
  if (service.type === 'ExternalName') return 'is of type ExternalName: it is a name alone'
  if (isHeadless(service)) return 'is headless: it has no cluster IP'
  return `has no ${family === 'ipv4' ? 'IPv4' : 'IPv6'} cluster IP`
}

type Asked = { readonly to: string; readonly port: string | undefined; readonly protocol: string }

function portOf(service: Service, { to, port, protocol }: Asked): number {
  const own = service.ports.filter((one) => one.protocol.toLowerCase() === protocol)
  const fitting = own.filter((one) => port === undefined || one.name === port || String(one.port) === port)
  const [first, second] = fitting
  if (first !== undefined && second === undefined) return first.port
  const all = listOf((fitting.length === 0 ? service.ports : fitting).map(printPort))
  throw usage(
    fitting.length === 0
      ? `--to ${to}: the Service has no such port over ${protocol}; it has ${all}`
      : `--to ${to} is ambiguous: the Service has ${all}; add :PORT`,
  )
}

function printPort({ name, port, protocol }: ServicePort): string {
  return `${name === '' ? '' : `${name} `}${port}/${protocol.toLowerCase()}`
}
