/** Choosing node ports, and the health check port of a LoadBalancer with externalTrafficPolicy Local. */

import { assume, type Draft } from '#manifests/draft'
import { manifestFinding } from '#manifests/findings'
import { hashText } from '#manifests/hash-text'
import type { ServiceText } from '#manifests/kinds/service'
import { keyOf, refOf } from '#model/meta'
import type { ServicePort } from '#model/service'

/** Holders by `port/protocol`; a health check port is TCP. */
type Holders = Map<string, string>

/** The default range of the API server; people choose by hand from its first ports, so those come last. */
const range = { first: 30000, size: 2768, byHand: 86 }

/** Every node port with the Service that holds it; a second holder is told. */
export function gatherNodePorts(draft: Draft): Holders {
  const holders: Holders = new Map()
  for (const [key, service] of draft.services) {
    for (const { nodePort, protocol } of service.ports) hold(draft, holders, { key, place: `${nodePort}/${protocol}` })
    hold(draft, holders, { key, place: `${service.healthCheckNodePort}/TCP` })
  }
  return holders
}

/** True when a port was assumed. */
export function fillNodePorts(draft: Draft, { service, allocatesNodePorts }: ServiceText, holders: Holders): boolean {
  const before = service.meta
  if (allocatesNodePorts && service.ports.some(({ nodePort }) => nodePort === 0)) {
    const ports: ServicePort[] = [...service.ports]
    for (const [index, port] of ports.entries()) {
      if (port.nodePort !== 0) continue
      const nodePort =
        siblingPort(port, ports) ?? choosePort(`${keyOf(service.meta)}:${port.name}`, port.protocol, holders)
      if (nodePort === undefined) reportFull(draft, service.meta)
      else {
        holders.set(`${nodePort}/${port.protocol}`, keyOf(service.meta))
        ports[index] = { ...port, nodePort }
        assume(service, `spec.ports[${index}].nodePort`)
      }
    }
    service.ports = ports
  }
  const needsHealthCheck = service.type === 'LoadBalancer' && service.externalTrafficPolicy === 'Local'
  if (needsHealthCheck && service.healthCheckNodePort === 0) fillHealthCheck(draft, service, holders)
  return service.meta !== before
}

function fillHealthCheck(draft: Draft, service: ServiceText['service'], holders: Holders): void {
  const port = choosePort(`${keyOf(service.meta)} health check`, 'TCP', holders)
  if (port === undefined) {
    reportFull(draft, service.meta)
    return
  }
  holders.set(`${port}/TCP`, keyOf(service.meta))
  service.healthCheckNodePort = port
  assume(service, 'spec.healthCheckNodePort')
}

/** The API server gives one number to a port that is served over several protocols. */
function siblingPort(port: ServicePort, ports: readonly ServicePort[]): number | undefined {
  const isSibling = (other: ServicePort): boolean =>
    other.port === port.port && other.protocol !== port.protocol && other.nodePort !== 0
  return ports.find(isSibling)?.nodePort
}

function choosePort(key: string, protocol: string, holders: Holders): number | undefined {
  const start = range.byHand + (hashText(key) % (range.size - range.byHand))
  for (let step = 0; step < range.size; step++) {
    const port = range.first + ((start + step) % range.size)
    if (!holders.has(`${port}/${protocol}`)) return port
  }
  return undefined
}

function hold(draft: Draft, holders: Holders, { key, place }: { readonly key: string; readonly place: string }): void {
  if (place.startsWith('0/')) return
  const holder = holders.get(place)
  holders.set(place, holder ?? key)
  const service = draft.services.get(key)
  if (holder === undefined || service === undefined) return
  draft.findings.push(
    manifestFinding('service.node-port-taken', {
      message: `the node port ${place} is held by Service ${holder} too`,
      object: refOf(service.meta),
      path: 'spec.ports',
      origin: service.meta.origin,
      hint: 'give one of them another, or leave nodePort out',
    }),
  )
}

function reportFull(draft: Draft, meta: ServiceText['service']['meta']): void {
  const message = `no node port is left in ${range.first}-${range.first + range.size - 1}`
  draft.findings.push(manifestFinding('service.range-full', { message, object: refOf(meta), origin: meta.origin }))
}
