/** What the agent refuses in `toPorts`: ports, rules of layer 7 and listeners. Mirrors pkg/policy/api/rule_validation.go. */
import type { CiliumPort, L7Rules, PortRule } from '#model/cilium-policy'
import { isAtLeast } from '#model/cilium-version'
import { type AgentFault, firstFault, type Place } from './cilium-fault'

const most = 40

export function portsFault(rule: PortRule, place: Place): AgentFault | undefined {
  const { path, ports, rules, listener, serverNames = [] } = rule
  const hasRules = rules !== undefined && !isEmpty(rules)
  const hasDns = (rules?.dns?.length ?? 0) > 0
  const isIngress = place.section.startsWith('ingress')
  if (hasRules && !place.settings.hasL7Proxy) return { path, why: 'rules of layer 7 work only with enable-l7-proxy' }
  if (hasRules && place.isHost && !isHostDns(rule, place))
    return { path, why: 'host policies take no rules of layer 7' }
  if (isIngress && hasDns) return { path, why: 'dns rules are for egress alone' }
  if (serverNames.length > 0 && hasRules && !rule.terminatesTls) {
    return { path, why: 'serverNames beside rules of layer 7 need terminatingTLS' }
  }
  if (serverNames.includes('')) return { path, why: 'a server name is empty' }
  if (ports.length > most) return { path, why: `${ports.length} ports, where ${most} is the most` }
  const fault = firstFault(
    ports,
    (port) => portFault(port, hasDns) ?? protocolFault(port, { hasRules, hasDns, serverNames }),
  )
  if (fault !== undefined) return fault
  if (listener !== undefined && isIngress) return { path, why: 'a listener is for egress alone' }
  if (listener !== undefined && hasRules) return { path, why: 'a listener cannot stand beside rules of layer 7' }
  return hasRules && rules !== undefined ? rulesFault(rule, rules) : undefined
}

/** From 1.19 on the host's own DNS requests may be looked into. */
function isHostDns({ rules }: PortRule, { section, settings }: Place): boolean {
  return (
    section === 'egress' && isAtLeast(settings.version, '1.19') && rules?.dns !== undefined && rules.http === undefined
  )
}

function isEmpty({ http, kafka, dns, l7 }: L7Rules): boolean {
  return http === undefined && kafka === undefined && dns === undefined && l7 === undefined
}

/** A name is an IANA service name, so that `0x10` is one; what is none is read as Go reads a number. */
export function isPortName(text: string): boolean {
  return text.length <= 15 && /^([a-zA-Z0-9]-?)*[a-zA-Z](-?[a-zA-Z0-9])*$/.test(text)
}

export function portNumber(text: string): number | undefined {
  const digits = /^0[0-7]+$/.test(text) ? Number.parseInt(text, 8) : /^\d+$/.test(text) ? Number(text) : undefined
  return digits === undefined || digits > 65535 ? undefined : digits
}

function portFault({ path, port, endPort, protocol }: CiliumPort, hasDns: boolean): AgentFault | undefined {
  if (port === undefined || port === '') {
    return isPortless(protocol) ? undefined : { path, why: 'a port is wanted', hint: 'write port: "0" for every port' }
  }
  if (isPortName(port)) return undefined
  const number = portNumber(port)
  if (number === undefined) return { path, why: `"${port}" is neither a port nor a name of one` }
  if (number !== 0 && isPortless(protocol)) return { path, why: `${protocol} has no ports` }
  if (hasDns && (endPort ?? 0) > number) return { path, why: 'dns rules take no range of ports' }
  return undefined
}

export function isPortless(protocol: string | undefined): boolean {
  return protocol === 'VRRP' || protocol === 'IGMP'
}

type L7Facts = { readonly hasRules: boolean; readonly hasDns: boolean; readonly serverNames: readonly string[] }

function protocolFault(
  { path, protocol }: CiliumPort,
  { hasRules, hasDns, serverNames }: L7Facts,
): AgentFault | undefined {
  const name = protocol ?? 'ANY'
  if (hasRules && !hasDns && name !== 'TCP') {
    return {
      path,
      why: `rules of layer 7 other than dns are for TCP alone, and not for ${name}`,
      hint: 'write protocol: TCP',
    }
  }
  if (serverNames.length > 0 && name !== 'TCP') {
    return { path, why: `serverNames are for TCP alone, and not for ${name}`, hint: 'write protocol: TCP' }
  }
  if (hasDns && name === 'SCTP') return { path, why: 'dns rules are for TCP and UDP' }
  return undefined
}

function rulesFault({ path, ports }: PortRule, rules: L7Rules): AgentFault | undefined {
  const at = `${path}.rules`
  const zero = ports.some(({ port }) => port !== undefined && !isPortName(port) && portNumber(port) === 0)
  if (zero) return { path: at, why: 'rules of layer 7 need a port other than 0' }
  if (rules.dns !== undefined && ports.length === 0) return { path: at, why: 'dns rules need a port' }
  if (rules.l7 !== undefined && (rules.l7proto ?? '') === '') return { path: at, why: 'l7 needs l7proto' }
  const kinds = [rules.http, rules.kafka, rules.dns, rules.l7proto].filter((kind) => kind !== undefined)
  return kinds.length > 1 ? { path: at, why: 'rules of several protocols stand in one list' } : undefined
}
