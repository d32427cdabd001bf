/** The chains that balance a Service port over its endpoints, and the chain of each endpoint. */
import type { PlannedEndpoint, ServicePortPlan } from '#compile/services/service-plan'
import { endpointChain, type ServiceChains } from './chain-names'
import { printShare } from './probability'
import { appendRules, declareChain, type OpenTable, type RenderContext } from './render-context'
import type { Action, Clause } from './rule'
import { comment, jump, match, ofProtocol, option, rule, source } from './rule-parts'

export type EndpointOptions = { readonly nat: OpenTable; readonly context: RenderContext }

/** The endpoints that a Service port may send to from this node, each with the name of its chain at the same place. */
type Named = { readonly endpoints: readonly PlannedEndpoint[]; readonly chains: readonly string[] }

export function renderEndpoints(port: ServicePortPlan, chains: ServiceChains, options: EndpointOptions): void {
  const { cluster, local, reachable } = port.chosen
  const named: Named = {
    endpoints: reachable,
    chains: reachable.map(({ text }) => endpointChain(port, text, options.context.naming)),
  }
  if (cluster.length > 0) renderBalancing(port, { chain: chains.cluster, ...pick(named, cluster) }, options)
  if (local.length > 0) renderBalancing(port, { chain: chains.local, ...pick(named, local) }, options)
  renderDelivery(port, named, options)
}

/** `part` is some of the reachable endpoints, in the same order. */
function pick(named: Named, part: readonly PlannedEndpoint[]): Named {
  if (part === named.endpoints) return named
  let at = -1
  const chains = part.map((endpoint) => {
    at = named.endpoints.indexOf(endpoint, at + 1)
    return named.chains[at] ?? ''
  })
  return { endpoints: part, chains }
}

/** A cascade: the first rule takes 1 of n, the next 1 of the n-1 left, the last takes all: 1/n each. */
function renderBalancing(
  port: ServicePortPlan,
  { chain, endpoints, chains }: Named & { readonly chain: string },
  { nat, context }: EndpointOptions,
): void {
  declareChain(nat, chain)
  const actions = chains.map((target) => jump(target))
  const comments = endpoints.map(({ text }) => commentsOf(`${port.name} -> ${text}`, context))
  const rules = comments.map((own, at) => {
    const left = endpoints.length - at
    return rule(left === 1 ? own : [...own, oneOf(left, context)], actions[at])
  })
  if (port.affinitySeconds !== undefined) {
    const seconds = String(port.affinitySeconds)
    const again = comments.map((own, at) => rule([...own, seenRecently(chains[at] ?? '', seconds)], actions[at]))
    appendRules(nat, chain, again)
  }
  appendRules(nat, chain, rules)
}

/** Comments of endpoints are most of a big ruleset, so a large cluster goes without them. */
function commentsOf(text: string, { isLargeCluster }: RenderContext): readonly Clause[] {
  return isLargeCluster ? noClauses : [comment(text)]
}

const noClauses: readonly Clause[] = []

function seenRecently(list: string, seconds: string): Clause {
  return match('recent', option('--name', list), option('--rcheck'), option('--seconds', seconds), option('--reap'))
}

function remember(list: string): Clause {
  return match('recent', option('--name', list), option('--set'))
}

function oneOf(n: number, { shares }: RenderContext): Clause {
  const known = shares.get(n)
  if (known !== undefined) return known
  const share = match('statistic', option('--mode', 'random'), option('--probability', printShare(n)))
  shares.set(n, share)
  return share
}

const markMasquerade: Action = jump('KUBE-MARK-MASQ')

/**
 * One chain for each endpoint. A pod that reaches itself through its Service is masqueraded, or its answer would not come
 * back the same way.
 */
function renderDelivery(port: ServicePortPlan, { endpoints, chains }: Named, { nat, context }: EndpointOptions): void {
  const comments = commentsOf(port.name, context)
  const toProtocol = ofProtocol(port.protocol)
  const plain = [...comments, ...toProtocol]
  for (const [at, { ip, text }] of endpoints.entries()) {
    const chain = chains[at] ?? ''
    const clauses = port.affinitySeconds === undefined ? plain : [...comments, remember(chain), ...toProtocol]
    declareChain(nat, chain)
    appendRules(nat, chain, [
      rule([...comments, source(ip)], markMasquerade),
      rule(clauses, jump('DNAT', option('--to-destination', text))),
    ])
  }
}
