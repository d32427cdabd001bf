/** The ports of a Service: numbers, names and targets, and whether the API server could tell them apart. */
import { describeValue } from '#manifests/text/raw-object'
import type { ServicePort } from '#model/service'
import {
  type Fields,
  has,
  mapsAt,
  nameAt,
  numberAt,
  portBounds,
  portOrZeroAt,
  report,
  reportImpossible,
} from './fields'
import { explainBadLabel, explainBadPortName, isImpossibleName } from './names'
import { portNameAt, protocolAt } from './pod'
import type { Writable } from './writable'

export function parseServicePorts(spec: Fields, needsPorts: boolean): readonly Writable<ServicePort>[] {
  const entries = mapsAt(spec, 'ports')
  const ports = entries.flatMap((entry) => parsePort(entry) ?? [])
  if (needsPorts && entries.length === 0) {
    report(spec, 'ports', {
      code: 'service.no-ports',
      message: 'the Service has no ports, so it leads nowhere',
      hint: 'add a port',
    })
  }
  if (ports.length > 1) checkApart(spec, ports)
  return ports
}

function parsePort(entry: Fields): Writable<ServicePort> | undefined {
  const number = numberAt(entry, 'port', portBounds)
  if (number === undefined) {
    if (!has(entry, 'port'))
      report(entry, 'port', { message: 'the field is missing; this port is left out', hint: 'add port: NUMBER' })
    return undefined
  }
  const protocol = protocolAt(entry)
  const targetPort = parseTarget(entry, number)
  const name = parseName(entry)
  if (protocol === undefined || targetPort === undefined || name === undefined) return undefined
  const nodePort = portOrZeroAt(entry, 'nodePort')
  const port: Writable<ServicePort> = { name, protocol, port: number, targetPort, nodePort }
  const appProtocol = nameAt(entry, 'appProtocol')
  if (appProtocol !== undefined) port.appProtocol = appProtocol
  return port
}

function parseName(entry: Fields): string | undefined {
  const name = portNameAt(entry)
  const problem = name === undefined || name === '' ? undefined : explainBadLabel(name, 'port')
  if (problem !== undefined) reportName(entry, 'name', problem)
  return name
}

/** Absent, 0 and empty mean the port itself; undefined when it cannot be read, as any guess would be a wrong answer. */
function parseTarget(entry: Fields, port: number): number | string | undefined {
  const value = entry.values.targetPort
  if (value === undefined || value === null || value === 0 || value === '') return port
  if (typeof value === 'string' && !/^\d+$/.test(value)) {
    if (isImpossibleName(value)) {
      reportImpossible(entry, 'targetPort', 'this port is left out')
      return undefined
    }
    const problem = explainBadPortName(value)
    if (problem !== undefined) reportName(entry, 'targetPort', problem)
    return value
  }
  const number = Number(value)
  if (typeof value !== 'string' || number < 1 || number > 65535) return readNumber(entry)
  report(entry, 'targetPort', {
    code: 'service.target-port-digits',
    message: `the text "${value}" can name no container port; it is read as the number ${number}`,
    hint: 'write it without quotes',
  })
  return number
}

function readNumber(entry: Fields): number | undefined {
  const value = entry.values.targetPort
  if (typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= 65535) return value
  const message = `${describeValue(value)} is neither a port number nor a port name; this port is left out`
  report(entry, 'targetPort', { code: 'manifest.bad-value', message })
  return undefined
}

function reportName(entry: Fields, key: string, problem: string): void {
  report(entry, key, {
    code: 'manifest.bad-name',
    message: `the API server refuses this name: ${problem}`,
    hint: 'rename it',
  })
}

/** Several ports need a name each, and no two may share number and protocol. */
function checkApart(spec: Fields, ports: readonly ServicePort[]): void {
  const names = new Set<string>()
  const numbers = new Set<string>()
  for (const { name, port, protocol } of ports) {
    const number = `${port}/${protocol}`
    const problem =
      name === ''
        ? `port ${number} has no name, which every port of several needs`
        : names.has(name)
          ? `two ports are named "${name}"`
          : numbers.has(number)
            ? `two ports are ${number}`
            : undefined
    names.add(name)
    numbers.add(number)
    if (problem === undefined) continue
    report(spec, 'ports', {
      code: 'service.ports-alike',
      message: `the API server refuses these ports: ${problem}; kube-proxy keeps the last of one name and protocol`,
      hint: 'give each port its own name and number',
    })
  }
}
