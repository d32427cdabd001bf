/** The chains that balance a Service port over its endpoints, and what delivers to each endpoint. */
import type { PlannedEndpoint } from '#compile/services/service-plan'
import { affinitySet } from './chain-names'
import { constant, type Expression, type Value } from './expression'
import { addChain, addElement, addRule, openSet, type PortRendering, type RenderContext } from './render-context'
import { setNames } from './render-fixed'
import { concat, goTo, matches, meta, payload, reference, rule } from './rule-parts'
import type { Match, Rule, Statement } from './statement'

/**
 * One chain for each endpoint, from 1.36 on only for those that remember clients. A pod that reaches itself through its
 * Service is masqueraded, or its answer would not come back the same way.
 */
export function renderEndpointChains(rendering: PortRendering): void {
  const { port, endpointChains, context } = rendering
  const isProtocol = isOfProtocol(rendering)
  const source = payload(context.ip, 'saddr')
  for (const [at, chain] of endpointChains.entries()) {
    const endpoint = port.chosen.reachable[at]
    if (endpoint === undefined) continue
    const address = constant(endpoint.ip)
    const rules: Rule[] = []
    if (context.layoutPlan.hasMarkChain) rules.push(rule(matches(source, address), context.markStatement))
    if (port.affinitySeconds !== undefined) {
      const set = affinitySet(chain)
      openSet(context, set, affinityHead(context, port.affinitySeconds))
      rules.push(rule({ kind: 'set-update', operation: 'update', set, element: { key: source } }))
    }
    rules.push(rule(isProtocol, { kind: 'dnat', isPrefix: false, address, port: constant(endpoint.port), flags: none }))
    addChain(context, chain, rules)
  }
}

const none: readonly [] = []

function isOfProtocol({ port }: PortRendering): Match {
  return matches(meta('l4proto'), constant(port.protocol))
}

/** The size is the kernel's, for sets that rules add to. */
function affinityHead({ family }: RenderContext, seconds: number): Parameters<typeof openSet>[2] {
  return {
    key: [family === 'ipv4' ? 'ipv4_addr' : 'ipv6_addr'],
    size: 65_535,
    flags: ['dynamic', 'timeout'],
    timeoutMilliseconds: seconds * 1000,
  }
}

/** From 1.36 on the connections of endpoints to themselves are a set; only those of this node can come about. */
export function renderHairpins({ port, context }: PortRendering): void {
  if (context.layoutPlan.hasMarkChain) return
  const protocol = constant(port.protocol)
  for (const endpoint of port.chosen.reachable) {
    if (!endpoint.isLocal) continue
    const address = constant(endpoint.ip)
    addElement(context, setNames.hairpin, { key: concat(address, address, protocol, constant(endpoint.port)) })
  }
}

export function renderPolicyChains(rendering: PortRendering): void {
  const { port, chains } = rendering
  renderPolicyChain(rendering, chains.cluster, port.chosen.cluster)
  renderPolicyChain(rendering, chains.local, port.chosen.local)
}

function renderPolicyChain(rendering: PortRendering, chain: string, endpoints: readonly PlannedEndpoint[]): void {
  if (endpoints.length === 0) return
  const { context, endpointChains } = rendering
  if (endpointChains.length > 0) addRule(context, chain, ...balancingRules(rendering, chainsOf(rendering, endpoints)))
  else addRule(context, chain, rule(isOfProtocol(rendering), translateToOne(endpoints, context)))
}

/** `part` is some of the reachable endpoints, in the same order. */
function chainsOf({ port, endpointChains }: PortRendering, part: readonly PlannedEndpoint[]): readonly string[] {
  if (part === port.chosen.reachable) return endpointChains
  let at = -1
  return part.map((endpoint) => {
    at = port.chosen.reachable.indexOf(endpoint, at + 1)
    return endpointChains[at] ?? ''
  })
}

/** A client that an endpoint remembers goes there again, others to any by chance. */
function balancingRules({ port, context }: PortRendering, chains: readonly string[]): readonly Rule[] {
  const source = payload(context.ip, 'saddr')
  const again =
    port.affinitySeconds === undefined
      ? []
      : chains.map((chain) => rule(matches(source, reference(affinitySet(chain))), goTo(chain)))
  const elements = chains.map((chain, at) => ({ key: numberAt(at), data: goTo(chain) }))
  return [...again, rule({ kind: 'vmap', key: oneOf(chains.length), data: { kind: 'set', elements } })]
}

function oneOf(count: number): Expression {
  return { kind: 'numgen', mode: 'random', modulus: count, offset: 0 }
}

/** The numbers of endpoints come again in every Service. */
const numbers: Value[] = []

function numberAt(at: number): Value {
  for (let next = numbers.length; next <= at; next++) numbers.push(constant(next))
  return numbers[at] ?? constant(at)
}

/** kube-proxy 1.36: the address comes out of the map itself. */
function translateToOne(endpoints: readonly PlannedEndpoint[], { ip }: RenderContext): Statement {
  const elements = endpoints.map((endpoint, at) => ({
    key: numberAt(at),
    data: concat(constant(endpoint.ip), constant(endpoint.port)),
  }))
  const address: Expression = { kind: 'map', key: oneOf(endpoints.length), data: { kind: 'set', elements } }
  return { kind: 'dnat', family: ip, isPrefix: false, address, flags: none }
}
