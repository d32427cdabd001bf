/** Short words for building rules: clauses and actions as the renderers write them. */
import type { Action, Clause, Option, Rule } from './rule'

export function rule(clauses: readonly Clause[], action?: Action): Rule {
  return action === undefined ? { clauses } : { clauses, action }
}

export function match(name: string, ...options: readonly Option[]): Clause {
  return { kind: 'match', name, options }
}

export function option(flag: string, ...values: readonly string[]): Option {
  return { flag, not: false, values }
}

export function not(opposite: Option): Option {
  return { ...opposite, not: true }
}

export function comment(text: string): Clause {
  return match('comment', option('--comment', text))
}

type Header = Extract<Clause, { readonly value: string }>

export function source(value: string): Header {
  return { kind: 'source', not: false, value }
}

export function destination(value: string): Header {
  return { kind: 'destination', not: false, value }
}

export function negated(clause: Header): Header {
  return { ...clause, not: true }
}

const noOptions: readonly Option[] = []

export function jump(target: string, ...options: readonly Option[]): Action {
  return { kind: 'jump', target, options: options.length === 0 ? noOptions : options }
}

type PortProtocol = 'tcp' | 'udp' | 'sctp'

const protocolClauses: Readonly<Record<PortProtocol, Clause>> = {
  tcp: { kind: 'protocol', not: false, value: 'tcp' },
  udp: { kind: 'protocol', not: false, value: 'udp' },
  sctp: { kind: 'protocol', not: false, value: 'sctp' },
}

const protocolMatches: Readonly<Record<PortProtocol, Clause>> = {
  tcp: match('tcp'),
  udp: match('udp'),
  sctp: match('sctp'),
}

/** `-m tcp -p tcp` as kube-proxy writes it: the match before the protocol that it needs. */
export function ofProtocol(protocol: PortProtocol): readonly [Clause, Clause] {
  return [protocolMatches[protocol], protocolClauses[protocol]]
}

/** `-m tcp -p tcp [-d ADDRESS] --dport PORT`; the printer puts the port behind the headers that follow its match. */
export function toPort(protocol: PortProtocol, port: number, address?: string): readonly Clause[] {
  const ports = match(protocol, option('--dport', String(port)))
  const own = protocolClauses[protocol]
  return address === undefined ? [ports, own] : [ports, own, destination(address)]
}
