/** Reading `toPorts` and `icmps` of Cilium's policies. */
import { describeValue } from '#manifests/text/raw-object'
import {
  type CiliumListener,
  type CiliumPort,
  type FqdnSelector,
  type IcmpField,
  type IcmpRule,
  icmpNumber,
  type L7Rules,
  type PortRule,
} from '#model/cilium-policy'
import {
  ciliumItemsAt,
  ciliumMapAt,
  ciliumMapsAt,
  ciliumNumberAt,
  ciliumTextAt,
  ciliumTextsAt,
  ciliumWordAt,
  refuse,
  tellUnknown,
} from './cilium-fields'
import { type Fields, has, pathOf, report } from './fields'
import type { Writable } from './writable'

const most = 40
const portProtocols = ['TCP', 'UDP', 'SCTP', 'VRRP', 'IGMP', 'ANY'] as const
/** Of the CRD: the number is held at the start alone, so that more may follow it, which the agent then refuses. */
const portPattern =
  /^(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[0-9]{1,4})|([a-zA-Z0-9]-?)*[a-zA-Z](-?[a-zA-Z0-9])*$/
const allowKeys = ['ports', 'rules', 'listener', 'serverNames', 'terminatingTLS', 'originatingTLS']

export function toPortsAt(fields: Fields, isDeny: boolean): readonly PortRule[] | undefined {
  return ciliumMapsAt(fields, 'toPorts')?.map((entry) => portRule(entry, isDeny))
}

function portRule(entry: Fields, isDeny: boolean): PortRule {
  tellUnknown(entry, isDeny ? ['ports'] : allowKeys)
  const ports = ciliumMapsAt(entry, 'ports') ?? []
  if (ports.length > most) refuse(entry, 'ports', `${ports.length} ports, where ${most} is the most`)
  const rule: Writable<PortRule> = {
    path: pathOf(entry, ''),
    ports: ports.map(portOf),
    terminatesTls: !isDeny && has(entry, 'terminatingTLS'),
    originatesTls: !isDeny && has(entry, 'originatingTLS'),
  }
  if (isDeny) return rule
  const rules = l7RulesAt(entry)
  const listener = listenerAt(entry)
  const serverNames = ciliumTextsAt(entry, 'serverNames')?.map(({ text }) => text)
  if (rules !== undefined) rule.rules = rules
  if (listener !== undefined) rule.listener = listener
  if (serverNames !== undefined) rule.serverNames = serverNames
  return rule
}

function portOf(entry: Fields): CiliumPort {
  tellUnknown(entry, ['port', 'endPort', 'protocol'])
  const port: Writable<CiliumPort> = { path: pathOf(entry, '') }
  const text = ciliumTextAt(entry, 'port')
  const endPort = ciliumNumberAt(entry, 'endPort', 0, 65535)
  const protocol = ciliumWordAt(entry, 'protocol', portProtocols)
  if (text !== undefined && !portPattern.test(text))
    refuse(entry, 'port', `"${text}" is neither a port nor a name of one`)
  if (text !== undefined) port.port = text
  if (endPort !== undefined) port.endPort = endPort
  if (protocol !== undefined) port.protocol = protocol
  return port
}

function listenerAt(entry: Fields): CiliumListener | undefined {
  const listener = ciliumMapAt(entry, 'listener')
  if (listener === undefined) return undefined
  tellUnknown(listener, ['envoyConfig', 'name', 'priority'])
  const name = ciliumTextAt(listener, 'name') ?? ''
  if (name === '') refuse(listener, 'name', 'a listener without name')
  if (!has(listener, 'envoyConfig')) refuse(listener, 'envoyConfig', 'a listener without envoyConfig')
  const priority = ciliumNumberAt(listener, 'priority', 1, 100)
  return priority === undefined ? { name } : { name, priority }
}

const l7Kinds = ['http', 'kafka', 'dns', 'l7proto'] as const

/** The schema wants exactly one of the kinds. */
function l7RulesAt(entry: Fields): L7Rules | undefined {
  const fields = ciliumMapAt(entry, 'rules')
  if (fields === undefined) return undefined
  tellUnknown(fields, [...l7Kinds, 'l7'])
  const present = l7Kinds.filter((kind) => has(fields, kind))
  if (present.length > 1)
    refuse(entry, 'rules', `${present.join(' and ')} stand in one list of rules`, 'write two toPorts')
  if (present.length === 0) refuse(entry, 'rules', `it has none of ${l7Kinds.join(', ')}`)
  const rules: Writable<L7Rules> = {}
  const http = ciliumItemsAt(fields, 'http')?.length
  const kafka = ciliumItemsAt(fields, 'kafka')?.length
  const dns = ciliumMapsAt(fields, 'dns')?.map(fqdnOf)
  const l7proto = ciliumTextAt(fields, 'l7proto')
  const l7 = ciliumItemsAt(fields, 'l7')?.length
  if (http !== undefined) rules.http = http
  if (kafka !== undefined) rules.kafka = kafka
  if (dns !== undefined) rules.dns = dns
  if (l7proto !== undefined) rules.l7proto = l7proto
  if (l7 !== undefined) rules.l7 = l7
  return rules
}

const namePattern = /^([-a-zA-Z0-9_]+[.]?)+$/
const patternPattern = /^([-a-zA-Z0-9_*]+[.]?)+$/

export function fqdnOf(entry: Fields): FqdnSelector {
  tellUnknown(entry, ['matchName', 'matchPattern'])
  const matchName = ciliumTextAt(entry, 'matchName')
  const matchPattern = ciliumTextAt(entry, 'matchPattern')
  if ((matchName === undefined) === (matchPattern === undefined)) {
    refuse(entry, '', 'exactly one of matchName and matchPattern is wanted')
  }
  if (matchName !== undefined && (matchName.length > 255 || !namePattern.test(matchName))) {
    refuse(entry, 'matchName', `"${matchName}" is no name of the DNS`)
  }
  if (matchPattern !== undefined && (matchPattern.length > 255 || !patternPattern.test(matchPattern))) {
    refuse(entry, 'matchPattern', `"${matchPattern}" is no pattern of names`)
  }
  return {
    path: pathOf(entry, ''),
    ...(matchName !== undefined && { matchName }),
    ...(matchPattern !== undefined && { matchPattern }),
  }
}

export function icmpsAt(fields: Fields): readonly IcmpRule[] | undefined {
  return ciliumMapsAt(fields, 'icmps')?.map((entry) => {
    tellUnknown(entry, ['fields'])
    const entries = ciliumMapsAt(entry, 'fields') ?? []
    if (entries.length > most) refuse(entry, 'fields', `${entries.length} types, where ${most} is the most`)
    return { path: pathOf(entry, ''), fields: entries.flatMap(icmpField) }
  })
}

function icmpField(entry: Fields): readonly IcmpField[] {
  tellUnknown(entry, ['family', 'type'])
  const family = ciliumWordAt(entry, 'family', ['IPv4', 'IPv6'] as const) ?? 'IPv4'
  const { type } = entry.values
  if (typeof type !== 'number' && typeof type !== 'string') {
    refuse(entry, 'type', has(entry, 'type') ? `${describeValue(type)} is no type of ICMP` : 'a field without type')
    return []
  }
  if (icmpNumber(family, type) === undefined) {
    tellBadType(entry, type)
    return []
  }
  return [{ path: pathOf(entry, ''), family, type }]
}

/** The schema holds names of both families in one list: the agent cannot read one of the other family. */
function tellBadType(entry: Fields, type: number | string): void {
  const isName = typeof type === 'string' && (icmpNumber('IPv4', type) ?? icmpNumber('IPv6', type)) !== undefined
  if (!isName) {
    refuse(entry, 'type', `${describeValue(type)} is no type of ICMP`, 'write a number from 0 to 255, or its name')
    return
  }
  report(entry, 'type', {
    code: 'policy.not-enforced',
    message: `the API server takes this object, but the agent cannot read it: ${describeValue(type)} is a type of the other family; the field is left out`,
    hint: 'set family to IPv6',
  })
}
