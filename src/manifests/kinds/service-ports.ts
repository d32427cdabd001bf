/** The ports of a Service: numbers, names and targets, and whether the API server could tell them apart. */
import type { ServicePort } from '#model/service'
import { type Fields, has, mapsAt, nameAt, numberAt, portBounds, report, textAt, wordAt } from './fields'
import { explainBadLabel, explainBadPortName } from './names'
import { protocols } from './pod'
import type { Writable } from './writable'

export function parseServicePorts(spec: Fields, needsPorts: boolean): readonly Writable<ServicePort>[] {
  const entries = mapsAt(spec, 'ports')
  const ports = entries.flatMap((entry) => parsePort(entry) ?? [])
  if (needsPorts && entries.length === 0) {
    report(spec, 'ports', {
      code: 'service.no-ports',
      found: 'is empty, so the Service leads nowhere',
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
      report(entry, 'port', { found: 'is missing; this port is left out', hint: 'add port: NUMBER' })
    return undefined
  }
  const port: Writable<ServicePort> = {
    name: parseName(entry),
    protocol: wordAt(entry, 'protocol', protocols) ?? 'TCP',
    port: number,
    targetPort: parseTarget(entry) ?? number,
    nodePort: entry.values.nodePort === 0 ? 0 : (numberAt(entry, 'nodePort', portBounds) ?? 0),
  }
  const appProtocol = nameAt(entry, 'appProtocol')
  if (appProtocol !== undefined) port.appProtocol = appProtocol
  return port
}

function parseName(entry: Fields): string {
  const name = textAt(entry, 'name') ?? ''
  const problem = name === '' ? undefined : explainBadLabel(name, 'port')
  if (problem !== undefined) reportName(entry, 'name', problem)
  return name
}

/** Absent, 0 and empty mean the port itself. */
function parseTarget(entry: Fields): number | string | undefined {
  const value = entry.values.targetPort
  if (value === 0 || value === '') return undefined
  if (typeof value !== 'string') return numberAt(entry, 'targetPort', portBounds)
  if (!/^\d+$/.test(value)) {
    const problem = explainBadPortName(value)
    if (problem !== undefined) reportName(entry, 'targetPort', problem)
    return value
  }
  const number = Number(value)
  if (number < 1 || number > 65535) {
    const found = `is "${value.slice(0, 60)}", which is no port; the port itself is used`
    report(entry, 'targetPort', { code: 'manifest.bad-value', found })
    return undefined
  }
  report(entry, 'targetPort', {
    code: 'service.target-port-digits',
    found: `is the text "${value}", which no container port can be named; it is read as the number ${number}`,
    hint: 'write it without quotes',
  })
  return number
}

function reportName(entry: Fields, key: string, problem: string): void {
  report(entry, key, {
    code: 'manifest.bad-name',
    found: `is refused by the API server: ${problem}`,
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
      found: `would be refused by the API server: ${problem}; they are used as they are`,
      hint: 'give each port its own name and number',
    })
  }
}
