/** The chains that balance a Service port over its endpoints, and what delivers to each endpoint. */
import type { PlannedEndpoint } from '#compile/services/service-plan'
import type { EndpointNames } from './chain-names'
import { constant, type Expression } from './expression'
import { addElement, addRule, openSet, type PortRendering, type RenderContext } from './render-context'
import { setNames } from './render-fixed'
import { concat, goTo, matches, meta, payload, reference, rule } from './rule-parts'
import type { Rule, Statement } from './statement'

type Named = { readonly endpoints: readonly PlannedEndpoint[]; readonly names: readonly EndpointNames[] }

export function renderPolicyChains({ port, chains, names, context }: PortRendering): void {
  const { cluster, local, reachable } = port.chosen
  const all: Named = { endpoints: reachable, names }
  const hasAffinity = port.affinitySeconds !== undefined
  const isProtocol = matches(meta('l4proto'), constant(port.protocol))
  const balance = (chain: string, part: readonly PlannedEndpoint[]): void => {
    if (part.length === 0) return
    if (hasAffinity || context.layoutPlan.hasMarkChain) {
      addRule(context, chain, ...balancingRules(pick(all, part), { hasAffinity, context }))
    } else addRule(context, chain, rule(isProtocol, translateToOne(part, context)))
  }
  balance(chains.cluster, cluster)
  balance(chains.local, local)
}

/** `part` is some of the reachable endpoints, in the same order. */
function pick(named: Named, part: readonly PlannedEndpoint[]): Named {
  if (part === named.endpoints) return named
  let at = -1
  const names = part.flatMap((endpoint) => {
    at = named.endpoints.indexOf(endpoint, at + 1)
    return named.names[at] ?? []
  })
  return { endpoints: part, names }
}

/** A client that an endpoint remembers goes there again, others to any by chance. */
function balancingRules(
  { names }: Named,
  { hasAffinity, context }: { readonly hasAffinity: boolean; readonly context: RenderContext },
): readonly Rule[] {
  const source = payload(context.ip, 'saddr')
  const again = hasAffinity
    ? names.map(({ chain, affinitySet }) => rule(matches(source, reference(affinitySet)), goTo(chain)))
    : []
  const elements = names.map(({ chain }, at) => ({ key: constant(at), data: goTo(chain) }))
  return [...again, rule({ kind: 'vmap', key: oneOf(names.length), data: { kind: 'set', elements } })]
}

function oneOf(count: number): Expression {
  return { kind: 'numgen', mode: 'random', modulus: count, offset: 0 }
}

/** kube-proxy 1.36: no chain for an endpoint, the address comes out of the map itself. */
function translateToOne(endpoints: readonly PlannedEndpoint[], { ip }: RenderContext): Statement {
  const elements = endpoints.map((endpoint, at) => ({
    key: constant(at),
    data: concat(constant(endpoint.ip), constant(endpoint.port)),
  }))
  const address: Expression = { kind: 'map', key: oneOf(endpoints.length), data: { kind: 'set', elements } }
  return { kind: 'dnat', family: ip, isPrefix: false, address, flags: [] }
}

/**
 * A pod that reaches itself through its Service is masqueraded, or its answer would not come back the same way: by a rule
 * of the endpoint's chain, from 1.36 on by a set of such connections.
 */
export function renderDelivery({ port, names, context }: PortRendering): void {
  const { ip, family, layoutPlan, markStatement } = context
  const source = payload(ip, 'saddr')
  const isProtocol = matches(meta('l4proto'), constant(port.protocol))
  const protocol = constant(port.protocol)
  for (const [at, endpoint] of port.chosen.reachable.entries()) {
    const address = constant(endpoint.ip)
    const number = constant(endpoint.port)
    if (!layoutPlan.hasMarkChain && endpoint.isLocal) {
      addElement(context, setNames.hairpin, { key: concat(address, address, protocol, number) })
    }
    const own = names[at]
    if (own === undefined) continue
    if (layoutPlan.hasMarkChain) addRule(context, own.chain, rule(matches(source, address), markStatement))
    if (port.affinitySeconds !== undefined) {
      openSet(context, own.affinitySet, affinityHead(family, port.affinitySeconds))
      const element = { key: source }
      addRule(context, own.chain, rule({ kind: 'set-update', operation: 'update', set: own.affinitySet, element }))
    }
    const deliver: Statement = { kind: 'dnat', isPrefix: false, address, port: number, flags: [] }
    addRule(context, own.chain, rule(isProtocol, deliver))
  }
}

/** The size is the kernel's, for sets that rules add to. */
function affinityHead(family: 'ipv4' | 'ipv6', seconds: number): Parameters<typeof openSet>[2] {
  return {
    key: [family === 'ipv4' ? 'ipv4_addr' : 'ipv6_addr'],
    size: 65_535,
    flags: ['dynamic', 'timeout'],
    timeoutMilliseconds: seconds * 1000,
  }
}
