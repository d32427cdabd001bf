/** Ports of an element as matches, with the proxy and the authentication that follow. Mirrors pkg/policy/l4.go, Cilium 1.16 to 1.19. */
import {
  type AuthenticationMode,
  type CiliumElement,
  type CiliumPort,
  icmpNumber,
  type PortRule,
} from '#model/cilium-policy'
import { type AuthRequirement, type ProxyRedirect, parserPriorities } from './cilium-policy-entry'
import { isPortless, isPortName, portNumber } from './cilium-port-checks'
import type { CiliumRuleDetail } from './cilium-rule'
import { everyPort, type PolicyProtocol, type PortMatch, type RuleConsequence } from './policy-rule'

/** Part of an element whose ports all have the same consequences. */
export type PortGroup = {
  readonly path: string
  readonly ports: 'any' | readonly PortMatch[]
  readonly consequences: readonly RuleConsequence[]
  readonly detail: CiliumRuleDetail
}

/** Ports that go to a proxy stand apart from the others of their element. */
export function portGroups(element: CiliumElement): readonly PortGroup[] {
  const { path, toPorts = [], icmps = [], authentication } = element
  const auth = authentication === undefined ? undefined : authRequirement(authentication)
  const base = { consequences: authConsequence(element), detail: auth === undefined ? {} : { auth } }
  if (toPorts.length === 0 && icmps.length === 0) return [{ path, ports: 'any', ...base }]
  const proxied = toPorts.flatMap((rule) => {
    const redirect = redirectOf(rule)
    return redirect === undefined ? [] : [proxyGroup(rule, redirect, base)]
  })
  const plain = toPorts
    .filter((rule) => redirectOf(rule) === undefined)
    .flatMap(({ ports }) => ports.flatMap(portMatches))
  const types = icmps.flatMap(({ fields }) => fields.flatMap(icmpMatch))
  const hasPlain = plain.length + types.length > 0 || proxied.length === 0
  return [...(hasPlain ? [{ path, ports: [...plain, ...types], ...base }] : []), ...proxied]
}

function proxyGroup(
  rule: PortRule,
  redirect: ProxyRedirect,
  base: Pick<PortGroup, 'consequences' | 'detail'>,
): PortGroup {
  const name =
    redirect.listener === undefined ? `the proxy for ${redirect.parser}` : `the listener ${redirect.listener}`
  const sentence = `redirected to ${name}, which judges each request`
  return {
    path: rule.path,
    ports: rule.ports.flatMap(portMatches),
    consequences: [...base.consequences, { kind: 'redirect', path: rule.path, sentence }],
    detail: { ...base.detail, redirect },
  }
}

function authRequirement(mode: AuthenticationMode): AuthRequirement {
  const types: Readonly<Record<AuthenticationMode, number>> = { disabled: 0, required: 1, 'test-always-fail': 2 }
  return { type: types[mode], isExplicit: true }
}

function authConsequence({ path, authentication }: CiliumElement): readonly RuleConsequence[] {
  if (authentication === undefined || authentication === 'disabled') return []
  return [
    { kind: 'authenticate', path: `${path}.authentication`, sentence: 'both ends must have authenticated each other' },
  ]
}

/** Empty lists of rules ask nothing of a proxy. */
export function redirectOf({
  rules,
  listener,
  serverNames,
  terminatesTls,
  originatesTls,
}: PortRule): ProxyRedirect | undefined {
  if (listener !== undefined) {
    return { parser: 'crd', listener: listener.name, priority: listener.priority ?? parserPriorities.crd ?? 126 }
  }
  const parser = parserOf(rules)
  if (parser !== undefined) return { parser, priority: parserPriorities[parser] ?? 111 }
  if ((serverNames ?? []).length === 0 && !terminatesTls && !originatesTls) return undefined
  return { parser: 'tls', priority: parserPriorities.tls ?? 116 }
}

function parserOf(rules: PortRule['rules']): string | undefined {
  if (rules === undefined) return undefined
  if ((rules.http ?? 0) > 0) return 'http'
  if ((rules.kafka ?? 0) > 0) return 'kafka'
  if ((rules.dns ?? []).length > 0) return 'dns'
  return (rules.l7proto ?? '') === '' ? undefined : 'l7proto'
}

const protocols = ['TCP', 'UDP', 'SCTP', 'VRRP', 'IGMP'] as const satisfies readonly PolicyProtocol[]

/** Port 0 is the whole protocol, no protocol is each one with ports, and an end that is not above the port is none. */
export function portMatches({ path, port = '0', endPort = 0, protocol = 'ANY' }: CiliumPort): readonly PortMatch[] {
  const known = protocols.find((one) => one === protocol)
  const of = known === undefined ? {} : { protocol: known }
  if (known !== undefined && isPortless(known)) return [{ kind: 'range', path, ...of, range: everyPort }]
  if (isPortName(port)) return [{ kind: 'named', path, ...of, name: port.toLowerCase() }]
  const from = portNumber(port)
  if (from === undefined) return []
  if (from === 0 && endPort === 0) return [{ kind: 'range', path, ...of, range: everyPort }]
  return [{ kind: 'range', path, ...of, range: { from, to: Math.max(from, endPort) } }]
}

function icmpMatch({
  path,
  family,
  type,
}: {
  path: string
  family: string
  type: number | string
}): readonly PortMatch[] {
  const number = icmpNumber(family, type)
  if (number === undefined) return []
  return [{ kind: 'range', path, protocol: family === 'IPv6' ? 'ICMPv6' : 'ICMP', range: { from: number, to: number } }]
}
