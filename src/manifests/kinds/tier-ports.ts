/** The ports of a rule of a cluster-wide policy: `ports` of v1alpha1, `protocols` of v1alpha2. */
import type { PortRange } from '#base/port-range'
import { describeValue } from '#manifests/text/raw-object'
import type { Protocol } from '#model/service'
import type { TierPort } from '#model/tier-policy'
import { type Fields, has, itemsAt, mapAt, mapsAt, nameAt, pathOf, report } from './fields'
import { checkKnown, refuse } from './policy-refusal'
import type { TierGrammar } from './tier-grammar'

const protocols = ['TCP', 'UDP', 'SCTP'] as const satisfies readonly Protocol[]
const everyPort: PortRange = { from: 1, to: 65535 }

/** Undefined for a rule of every port. */
export function readTierPorts(rule: Fields, { portFields, mostPorts }: TierGrammar): readonly TierPort[] | undefined {
  const [present] = portFields
  const key = portFields.find((field) => has(rule, field))
  if (key === undefined) return undefined
  const count = itemsAt(rule, key).length
  if (key !== present) {
    const message = `released versions of the CRD have "${present}" and drop "${key}", and then the rule holds for every port; it is read as the first drafts of the version did`
    report(rule, key, { code: 'policy.unknown-field', message, hint: `write ${present}` })
  }
  if (count > mostPorts) {
    const problem = `a rule has ${count} ports, where it takes at most ${mostPorts}`
    refuse(rule, key, { problem, hint: 'take ranges, or several rules' })
  }
  // v1alpha1 lets the list be empty, which limits nothing.
  if (count === 0 && key === 'ports') return undefined
  if (count === 0) refuse(rule, key, { problem: `"${key}" is empty`, hint: 'leave it out for every port' })
  const read = key === 'ports' ? readPort : readProtocol
  return mapsAt(rule, key).flatMap((entry) => read(entry) ?? [])
}

function readPort(entry: Fields): TierPort | undefined {
  const words = ['portNumber', 'portRange', 'namedPort']
  checkKnown(entry, words)
  const field = oneOf(entry, words)
  const path = pathOf(entry, '')
  if (field === 'namedPort') return readNamed(entry, field)
  if (field === undefined) return undefined
  const part = mapAt(entry, field)
  const isRange = field === 'portRange'
  checkKnown(part, isRange ? ['protocol', 'start', 'end'] : ['protocol', 'port'])
  const range = isRange ? rangeAt(part) : singleAt(part, 'port')
  const protocol = protocolAt(part)
  return range === undefined || protocol === undefined ? undefined : { kind: 'range', path, protocol, range }
}

/** The schema takes any text for a protocol, and implementations compare it letter by letter. */
function protocolAt(part: Fields): Protocol | undefined {
  const value = part.values.protocol ?? 'TCP'
  const protocol = protocols.find((known) => known === value)
  if (protocol !== undefined) return protocol
  if (typeof value !== 'string') {
    refuse(part, 'protocol', { problem: `${describeValue(value)} is no protocol`, hint: 'write TCP, UDP or SCTP' })
    return undefined
  }
  const message = `${describeValue(value)} is none of ${protocols.join(', ')}: the API server takes it, but this port matches nothing`
  report(part, 'protocol', { code: 'policy.doubtful', message, hint: 'write it in capital letters' })
  return undefined
}

function readProtocol(entry: Fields): TierPort | undefined {
  const words = ['tcp', 'udp', 'sctp', 'destinationNamedPort']
  checkKnown(entry, words)
  const field = oneOf(entry, words)
  if (field === undefined) return undefined
  if (field === 'destinationNamedPort') return readNamed(entry, field)
  const protocol = protocols.find((known) => known.toLowerCase() === field) ?? 'TCP'
  const part = mapAt(entry, field)
  checkKnown(part, ['destinationPort'])
  if (!has(part, 'destinationPort')) {
    refuse(entry, field, {
      problem: `"${field}" names no destinationPort`,
      hint: `for every port write the range 1 to ${everyPort.to}`,
    })
    return undefined
  }
  const port = mapAt(part, 'destinationPort')
  checkKnown(port, ['number', 'range'])
  const which = oneOf(port, ['number', 'range'])
  if (which === undefined) return undefined
  const range = which === 'range' ? rangeAt(mapAt(port, 'range')) : singleAt(port, 'number')
  return range === undefined ? undefined : { kind: 'range', path: pathOf(entry, ''), protocol, range }
}

function readNamed(entry: Fields, field: string): TierPort | undefined {
  const name = nameAt(entry, field)
  if (name !== undefined) return { kind: 'named', path: pathOf(entry, ''), name }
  refuse(entry, field, { problem: 'a named port has no name', hint: 'write the name of a container port' })
  return undefined
}

function oneOf(entry: Fields, words: readonly string[]): string | undefined {
  const present = words.filter((word) => has(entry, word))
  if (present.length === 1) return present[0]
  const problem =
    present.length === 0 ? `none of ${words.join(', ')} is there` : `${present.join(' and ')} stand together`
  refuse(entry, '', { problem, hint: 'write exactly one of them' })
  return undefined
}

function singleAt(part: Fields, key: string): PortRange | undefined {
  const port = portAt(part, key)
  return port === undefined ? undefined : { from: port, to: port }
}

/** PortRange: the CEL rule asks for start < end. */
function rangeAt(part: Fields): PortRange | undefined {
  const from = portAt(part, 'start')
  const to = portAt(part, 'end')
  if (from === undefined || to === undefined) return undefined
  if (from < to) return { from, to }
  refuse(part, 'end', {
    problem: `the range ${from}–${to} does not end after it starts`,
    hint: 'for one port, write its number',
  })
  return undefined
}

function portAt(part: Fields, key: string): number | undefined {
  const value = part.values[key]
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 65535) return value
  const problem = has(part, key) ? `${describeValue(value)} is no port from 1 to 65535` : `there is no "${key}"`
  refuse(part, key, { problem, hint: 'write a number without quotes' })
  return undefined
}
