/** The ports of a NetworkPolicy: protocol, port and endPort together. */
import { describeValue } from '#manifests/text/raw-object'
import type { NetworkPolicyPort } from '#model/network-policy'
import type { Protocol } from '#model/service'
import { type Fields, has } from './fields'
import { explainBadPortName } from './names'
import { refuse } from './policy-refusal'
import type { Writable } from './writable'

const protocols = ['TCP', 'UDP', 'SCTP'] as const satisfies readonly Protocol[]

type ReadPort = Omit<NetworkPolicyPort, 'path'>

/** Mirrors ValidateNetworkPolicyPort (networking/validation/validation.go, 1.34); told are all faults, not the first alone. */
export function readPolicyPort(entry: Fields): ReadPort | undefined {
  const protocol = readProtocol(entry)
  const port = readPort(entry)
  const endPort = readEndPort(entry, port)
  if (protocol === undefined || port === 'bad' || endPort === 'bad') return undefined
  const read: Writable<ReadPort> = { protocol }
  if (!has(entry, 'protocol')) read.assumesProtocol = true
  if (port !== undefined) read.port = port.value
  if (endPort !== undefined) read.endPort = endPort
  return read
}

function readProtocol(entry: Fields): Protocol | undefined {
  const value = entry.values.protocol ?? 'TCP'
  const protocol = protocols.find((known) => known === value)
  if (protocol !== undefined) return protocol
  const meant = typeof value === 'string' ? protocols.find((known) => known === value.toUpperCase()) : undefined
  refusePort(
    entry,
    'protocol',
    `${describeValue(value)} is no protocol of a port`,
    `write ${meant ?? protocols.join(', ')}`,
  )
  return undefined
}

type Port = { readonly value: number | string } | undefined

function readPort(entry: Fields): Port | 'bad' {
  if (!has(entry, 'port')) return undefined
  const { port } = entry.values
  if (isPortNumber(port)) return { value: port }
  if (typeof port === 'string') {
    const reason = explainBadPortName(port)
    if (reason === undefined) return { value: port }
    const hint = /^\d+$/.test(port)
      ? `write ${port} without quotes`
      : 'write a number, or the name of a port of the pods'
    refusePort(entry, 'port', reason, hint)
    return 'bad'
  }
  refusePort(entry, 'port', `${describeValue(port)} is no port`, 'write a number from 1 to 65535, or a name')
  return 'bad'
}

function readEndPort(entry: Fields, port: Port | 'bad'): number | undefined | 'bad' {
  if (!has(entry, 'endPort')) return undefined
  const { endPort } = entry.values
  const problem = explainBadEnd(endPort, port)
  if (problem === undefined && isPortNumber(endPort)) return endPort
  refusePort(entry, 'endPort', problem ?? '', 'write port as the first number and endPort as the last')
  return 'bad'
}

function explainBadEnd(endPort: unknown, port: Port | 'bad'): string | undefined {
  if (!isPortNumber(endPort)) return `endPort ${describeValue(endPort)} is no number from 1 to 65535`
  if (port === 'bad') return undefined
  if (port === undefined) return `endPort ${endPort} stands without a port`
  if (typeof port.value === 'string')
    return `endPort ${endPort} stands with the named port ${describeValue(port.value)}`
  return endPort < port.value ? `endPort ${endPort} is less than port ${port.value}` : undefined
}

function isPortNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 65535
}

function refusePort(entry: Fields, key: string, problem: string, hint: string): void {
  refuse(entry, key, { problem, hint })
}
