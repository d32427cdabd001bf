/** The chains that balance a Service port over its endpoints, and the chain of each endpoint. */
import type { PlannedEndpoint, ServicePortPlan } from '#compile/services/service-plan'
import { endpointChain, type ServiceChains } from './chain-names'
import { printShare } from './probability'
import { appendRule, declareChain, type OpenTable, type RenderContext } from './render-context'
import type { Action, Clause } from './rule'
import { comment, jump, match, ofProtocol, option, rule, source } from './rule-parts'

export type EndpointOptions = { readonly nat: OpenTable; readonly context: RenderContext }

type EndpointNames = ReadonlyMap<PlannedEndpoint, string>

export function renderEndpoints(port: ServicePortPlan, chains: ServiceChains, options: EndpointOptions): void {
  const { cluster, local, reachable } = port.chosen
  const names = new Map(
    reachable.map((endpoint) => [endpoint, endpointChain(port, endpoint.text, options.context.naming)]),
  )
  if (cluster.length > 0) renderBalancing(port, { chain: chains.cluster, endpoints: cluster, names }, options)
  if (local.length > 0) renderBalancing(port, { chain: chains.local, endpoints: local, names }, options)
  for (const [endpoint, chain] of names) renderEndpoint(port, { chain, endpoint }, options)
}

type Balancing = {
  readonly chain: string
  readonly endpoints: readonly PlannedEndpoint[]
  readonly names: EndpointNames
}

/** A cascade: the first rule takes 1 of n, the next 1 of the n-1 left, the last takes all: 1/n each. */
function renderBalancing(
  port: ServicePortPlan,
  { chain, endpoints, names }: Balancing,
  { nat, context }: EndpointOptions,
): void {
  declareChain(nat, chain)
  const rows = endpoints.map((endpoint) => {
    const target = names.get(endpoint) ?? ''
    return { target, clauses: commentsOf(`${port.name} -> ${endpoint.text}`, context), action: jump(target) }
  })
  if (port.affinitySeconds !== undefined) {
    for (const { target, clauses, action } of rows) {
      appendRule(nat, chain, rule([...clauses, seenRecently(target, port.affinitySeconds)], action))
    }
  }
  for (const [at, { clauses, action }] of rows.entries()) {
    const isLast = at === rows.length - 1
    appendRule(nat, chain, rule(isLast ? clauses : [...clauses, oneOf(rows.length - at, context)], action))
  }
}

/** Comments of endpoints are most of a big ruleset, so a large cluster goes without them. */
function commentsOf(text: string, { isLargeCluster }: RenderContext): readonly Clause[] {
  return isLargeCluster ? [] : [comment(text)]
}

function seenRecently(list: string, seconds: number): Clause {
  return match(
    'recent',
    option('--name', list),
    option('--rcheck'),
    option('--seconds', String(seconds)),
    option('--reap'),
  )
}

function oneOf(n: number, { shares }: RenderContext): Clause {
  const known = shares.get(n)
  if (known !== undefined) return known
  const share = match('statistic', option('--mode', 'random'), option('--probability', printShare(n)))
  shares.set(n, share)
  return share
}

const markMasquerade: Action = jump('KUBE-MARK-MASQ')

/** A pod that reaches itself through its Service is masqueraded, or its answer would not come back the same way. */
function renderEndpoint(
  port: ServicePortPlan,
  { chain, endpoint }: { readonly chain: string; readonly endpoint: PlannedEndpoint },
  { nat, context }: EndpointOptions,
): void {
  const comments = commentsOf(port.name, context)
  const remember = port.affinitySeconds === undefined ? [] : [match('recent', option('--name', chain), option('--set'))]
  declareChain(nat, chain)
  appendRule(nat, chain, rule([...comments, source(endpoint.ip)], markMasquerade))
  const target = jump('DNAT', option('--to-destination', endpoint.text))
  appendRule(nat, chain, rule([...comments, ...remember, ...ofProtocol(port.protocol)], target))
}
