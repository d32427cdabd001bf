/** Pods, and the pod specs inside workloads: containers and their ports, placement, addresses, readiness. */
import type { Meta } from '#model/meta'
import type { Container, ContainerPort, DnsOption, Pod, PodDnsConfig, PodPhase } from '#model/pod'
import type { Protocol } from '#model/service'
import { addressAt, addressesAt, addressesIn } from './addresses'
import {
  conditionAt,
  type Fields,
  flagAt,
  has,
  mapAt,
  mapsAt,
  nameAt,
  numberAt,
  plainNameAt,
  portBounds,
  portOrZeroAt,
  report,
  reportImpossible,
  textAt,
  textsAt,
  wordAt,
} from './fields'
import { explainBadPortName, isImpossibleName } from './names'
import type { Writable } from './writable'

/** What a pod template and a pod have alike. */
export type PodSpec = Pick<
  Pod,
  | 'containers'
  | 'initContainers'
  | 'nodeName'
  | 'serviceAccountName'
  | 'hostNetwork'
  | 'hostname'
  | 'subdomain'
  | 'dnsPolicy'
  | 'dnsConfig'
>

const protocols = ['TCP', 'UDP', 'SCTP'] as const satisfies readonly Protocol[]
const phases = ['Pending', 'Running', 'Succeeded', 'Failed', 'Unknown'] as const satisfies readonly PodPhase[]

const none: readonly never[] = []

export function parsePodSpec(spec: Fields): PodSpec {
  const result: Writable<PodSpec> = {
    containers: parseContainers(spec, 'containers'),
    initContainers: parseContainers(spec, 'initContainers'),
    hostNetwork: flagAt(spec, 'hostNetwork', 'it counts as false') ?? false,
    dnsPolicy: nameAt(spec, 'dnsPolicy') ?? 'ClusterFirst',
  }
  fillNames(spec, result)
  return result
}

/** A pod without a status comes out Pending and without an address: later steps assume them. */
export function parsePod(root: Fields, meta: Meta): Writable<Pod> {
  const spec = mapAt(root, 'spec')
  const status = mapAt(root, 'status')
  const podIPs = addressesOf(status, 'podIPs', 'podIP')
  const phase = podIPs.length > 0 ? 'Running' : 'Pending'
  const assumesPhase = podIPs.length > 0 && !has(status, 'phase')
  // Written out rather than spread: this runs once for each of a hundred thousand pods.
  const pod: Writable<Pod> = {
    meta: assumesPhase ? { ...meta, assumed: [...meta.assumed, 'status.phase'] } : meta,
    containers: parseContainers(spec, 'containers'),
    initContainers: parseContainers(spec, 'initContainers'),
    hostNetwork: flagAt(spec, 'hostNetwork', 'it counts as false') ?? false,
    dnsPolicy: nameAt(spec, 'dnsPolicy') ?? 'ClusterFirst',
    phase: wordAt(status, 'phase', phases, `${phase} counts`) ?? phase,
    podIPs,
    hostIPs: addressesOf(status, 'hostIPs', 'hostIP'),
    isReady: parseReady(status, podIPs.length > 0),
  }
  fillNames(spec, pod)
  return pod
}

function fillNames(
  spec: Fields,
  pod: Writable<Pick<PodSpec, 'nodeName' | 'serviceAccountName' | 'hostname' | 'subdomain' | 'dnsConfig'>>,
): void {
  const nodeName = plainNameAt(spec, 'nodeName')
  const hostname = plainNameAt(spec, 'hostname')
  const subdomain = plainNameAt(spec, 'subdomain')
  // `serviceAccount` is the older name of the field, which the API server keeps the same.
  const serviceAccountName = plainNameAt(spec, 'serviceAccountName') ?? plainNameAt(spec, 'serviceAccount')
  if (nodeName !== undefined) pod.nodeName = nodeName
  if (serviceAccountName !== undefined) pod.serviceAccountName = serviceAccountName
  if (hostname !== undefined) pod.hostname = hostname
  if (subdomain !== undefined) pod.subdomain = subdomain
  if (has(spec, 'dnsConfig')) pod.dnsConfig = parseDnsConfig(mapAt(spec, 'dnsConfig'))
}

function parseDnsConfig(config: Fields): PodDnsConfig {
  const options = mapsAt(config, 'options').flatMap((entry): DnsOption[] => {
    const name = nameAt(entry, 'name')
    const value = textAt(entry, 'value')
    if (name === undefined) return []
    return [value === undefined ? { name } : { name, value }]
  })
  return { nameservers: addressesAt(config, 'nameservers'), searches: textsAt(config, 'searches'), options }
}

function parseContainers(spec: Fields, key: string): readonly Container[] {
  const entries = mapsAt(spec, key)
  if (entries.length === 0) return none
  const containers: Container[] = []
  for (const entry of entries) {
    const container: Writable<Container> = { name: nameAt(entry, 'name') ?? '', ports: parseContainerPorts(entry) }
    const restartPolicy = nameAt(entry, 'restartPolicy')
    if (restartPolicy !== undefined) container.restartPolicy = restartPolicy
    containers.push(container)
  }
  return containers
}

function parseContainerPorts(container: Fields): readonly ContainerPort[] {
  const entries = mapsAt(container, 'ports')
  if (entries.length === 0) return none
  const ports: ContainerPort[] = []
  for (const entry of entries) {
    const containerPort = numberAt(entry, 'containerPort', portBounds)
    if (containerPort === undefined) {
      if (!has(entry, 'containerPort'))
        report(entry, 'containerPort', { message: 'the field is missing; this port is left out' })
      continue
    }
    const protocol = protocolAt(entry)
    if (protocol === undefined) continue
    const port: Writable<ContainerPort> = { containerPort, protocol }
    const name = plainNameAt(entry, 'name')
    const hostPort = portOrZeroAt(entry, 'hostPort')
    if (name !== undefined) port.name = checkedPortName(entry, name)
    if (hostPort !== 0) port.hostPort = hostPort
    ports.push(port)
  }
  return ports
}

/** TCP when absent; undefined when it cannot be read, and then the port should be left out with it. */
export function protocolAt(entry: Fields): Protocol | undefined {
  const value = entry.values.protocol ?? ''
  return value === 'TCP' || value === '' ? 'TCP' : wordAt(entry, 'protocol', protocols, 'this port is left out')
}

/** Empty when absent; undefined for one that no port can have, and then the port is left out with it. */
export function portNameAt(entry: Fields): string | undefined {
  const name = textAt(entry, 'name') ?? ''
  if (!isImpossibleName(name)) return name
  reportImpossible(entry, 'name', 'this port is left out')
  return undefined
}

function checkedPortName(entry: Fields, name: string): string {
  const problem = explainBadPortName(name)
  if (problem !== undefined) {
    report(entry, 'name', {
      code: 'manifest.bad-name',
      message: `the API server refuses this name: ${problem}`,
      hint: 'rename it',
    })
  }
  return name
}

/** The list of addresses, else the single one that older servers wrote. */
function addressesOf(status: Fields, listKey: string, key: string): readonly string[] {
  const entries = mapsAt(status, listKey)
  if (entries.length > 0) return addressesIn(entries, 'ip')
  const address = addressAt(status, key)
  return address === undefined ? none : [address]
}

function parseReady(status: Fields, hasAddress: boolean): boolean {
  const isReady = conditionAt(status, 'Ready')
  if (isReady !== undefined) return isReady
  const { conditions = [] } = status.values
  if (hasAddress && (conditions === null || Array.isArray(conditions))) {
    report(status, 'conditions', {
      code: 'pod.no-ready-condition',
      message: 'the status has no condition Ready, so the pod counts as not ready, as in a cluster',
      hint: 'add a condition {type: Ready, status: "True"}',
    })
  }
  return false
}
