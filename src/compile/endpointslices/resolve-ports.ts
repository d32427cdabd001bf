/** The ports of a Service on one pod: numbers as they are, names looked up on the pod's containers. */
import type { EndpointPort } from '#model/endpoint-slice'
import type { Container, Pod } from '#model/pod'
import type { Service, ServicePort } from '#model/service'

/** One number for each Service port, in order; `undefined` where the pod has no such port. */
export type PortNumbers = readonly (number | undefined)[]

/** Numbers that hold for every pod, or undefined when a port goes by name. */
export function fixedPorts(service: Service): PortNumbers | undefined {
  const numbers: number[] = []
  for (const { targetPort } of service.ports) {
    if (typeof targetPort === 'string') return undefined
    numbers.push(targetPort)
  }
  return numbers
}

export function resolvePorts(service: Service, pod: Pod): PortNumbers {
  return service.ports.map((port) => findPort(pod, port))
}

/** The slice ports that the numbers make; ports the pod lacks are left out. */
export function buildPorts(service: Service, numbers: PortNumbers): EndpointPort[] {
  return service.ports.flatMap(({ name, protocol, appProtocol }, at) => {
    const port = numbers[at]
    if (port === undefined) return []
    const built = { name, protocol, port }
    return [appProtocol === undefined ? built : { ...built, appProtocol }]
  })
}

/** Slices share a group when their ports are the same set; an absent name is not the empty name. */
export function portsKey(ports: readonly EndpointPort[]): string {
  return ports
    .map(({ name, protocol, port, appProtocol }) => JSON.stringify([name, protocol, port, appProtocol]))
    .sort()
    .join()
}

/**
 * endpointslice/utils.go FindPort (1.34): name and protocol must both agree; containers come first, then those init
 * containers that keep running (sidecars).
 */
function findPort(pod: Pod, { targetPort, protocol }: ServicePort): number | undefined {
  if (typeof targetPort === 'number') return targetPort
  return (
    namedPort(pod.containers, targetPort, protocol) ??
    namedPort(
      pod.initContainers.filter((container) => container.restartPolicy === 'Always'),
      targetPort,
      protocol,
    )
  )
}

function namedPort(containers: readonly Container[], name: string, protocol: string): number | undefined {
  for (const container of containers) {
    for (const port of container.ports) {
      if (port.name === name && port.protocol === protocol) return port.containerPort
    }
  }
  return undefined
}

/** Why a pod lacks a named port, as the end of a sentence. */
export function explainMissingPort(pod: Pod, { targetPort, protocol }: ServicePort): string {
  const all = [...pod.containers, ...pod.initContainers]
  const namesakes = all.flatMap((container) =>
    container.ports.filter((port) => port.name === targetPort).map((port) => ({ container, port })),
  )
  const [first] = namesakes
  if (first === undefined) return `no container has a port named "${targetPort}"`
  if (first.port.protocol !== protocol) {
    return `its port "${targetPort}" is ${first.port.protocol} and the Service wants ${protocol}`
  }
  return `only the init container ${first.container.name} has a port named "${targetPort}", and it does not keep running`
}
