/** The rules of one Service port outside its endpoints: its addresses, its external chain and its firewall. */
import type { ServicePortPlan } from '#compile/services/service-plan'
import { type ServiceChains, serviceChains } from './chain-names'
import { appendRule, declareChain, nfacct, type OpenTable, type RenderContext } from './render-context'
import { renderEndpoints } from './render-endpoints'
import type { Action } from './rule'
import { comment, jump, match, option, rule, source, toPort } from './rule-parts'

export type Tables = { readonly filter: OpenTable; readonly nat: OpenTable }

type PortRendering = {
  readonly port: ServicePortPlan
  readonly chains: ServiceChains
  /** Where traffic to a load balancer's address goes. */
  readonly loadBalancer: string
  readonly hasFirewall: boolean
  readonly tables: Tables
  readonly context: RenderContext
}

/** Mirrors the body of the loop over Service ports in pkg/proxy/iptables/proxier.go syncProxyRules (1.34). */
export function renderServicePort(port: ServicePortPlan, tables: Tables, context: RenderContext): void {
  const chains = serviceChains(port, context.naming)
  const hasFirewall = port.chosen.hasAny && port.loadBalancerVIPs.length > 0 && port.loadBalancerSourceRanges.length > 0
  const loadBalancer = hasFirewall ? chains.firewall : chains.external
  const rendering: PortRendering = { port, chains, loadBalancer, hasFirewall, tables, context }
  renderClusterIp(rendering)
  renderExternalIps(rendering)
  renderLoadBalancer(rendering)
  renderNodePort(rendering)
  renderHealthCheck(rendering)
  renderInternalMark(rendering)
  renderExternalChain(rendering)
  renderFirewallChain(rendering)
  renderEndpoints(port, chains, { nat: tables.nat, context })
}

const markMasquerade = jump('KUBE-MARK-MASQ')

/** No endpoint anywhere is refused; none on this node, where it must be on this node, is dropped in silence. */
function verdictOf({ name, chosen }: ServicePortPlan): { readonly text: string; readonly action: Action } {
  return chosen.hasAny
    ? { text: `${name} has no local endpoints`, action: jump('DROP') }
    : { text: `${name} has no endpoints`, action: jump('REJECT') }
}

function internalChain({ port, chains }: PortRendering): string {
  return port.isInternalLocal ? chains.local : chains.cluster
}

function renderClusterIp(rendering: PortRendering): void {
  const { port, tables } = rendering
  const to = toPort(port.protocol, port.port, port.clusterIP)
  if (port.hasInternal) {
    const target = jump(internalChain(rendering))
    appendRule(tables.nat, 'KUBE-SERVICES', rule([comment(`${port.name} cluster IP`), ...to], target))
    return
  }
  const { text, action } = verdictOf(port)
  appendRule(tables.filter, 'KUBE-SERVICES', rule([comment(text), ...to], action))
}

function renderExternalIps({ port, chains, tables }: PortRendering): void {
  for (const ip of port.externalIPs) {
    const to = toPort(port.protocol, port.port, ip)
    if (port.chosen.hasAny) {
      appendRule(tables.nat, 'KUBE-SERVICES', rule([comment(`${port.name} external IP`), ...to], jump(chains.external)))
    }
    if (port.hasExternal) continue
    const { text, action } = verdictOf(port)
    appendRule(tables.filter, 'KUBE-EXTERNAL-SERVICES', rule([comment(text), ...to], action))
  }
}

function renderLoadBalancer({ port, chains, loadBalancer, hasFirewall, tables }: PortRendering): void {
  for (const ip of port.loadBalancerVIPs) {
    const to = toPort(port.protocol, port.port, ip)
    if (port.chosen.hasAny) {
      appendRule(
        tables.nat,
        'KUBE-SERVICES',
        rule([comment(`${port.name} loadbalancer IP`), ...to], jump(loadBalancer)),
      )
    }
    if (!hasFirewall) continue
    const text = `${port.name} traffic not accepted by ${chains.firewall}`
    appendRule(tables.filter, 'KUBE-PROXY-FIREWALL', rule([comment(text), ...to], jump('DROP')))
  }
  if (port.hasExternal) return
  const { text, action } = verdictOf(port)
  for (const ip of port.loadBalancerVIPs) {
    const to = toPort(port.protocol, port.port, ip)
    appendRule(tables.filter, 'KUBE-EXTERNAL-SERVICES', rule([comment(text), ...to], action))
  }
}

/** Source ranges do not hold for node ports. */
function renderNodePort({ port, chains, tables, context }: PortRendering): void {
  if (port.nodePort === 0) return
  const to = toPort(port.protocol, port.nodePort)
  if (port.chosen.hasAny) {
    const name = comment(port.name)
    const target = jump(chains.external)
    if (context.hasLocalhostNodePorts && context.settings.nfacct) {
      const toLoopback = toPort(port.protocol, port.nodePort, '127.0.0.0/8')
      appendRule(tables.nat, 'KUBE-NODEPORTS', rule([name, ...toLoopback, nfacct.localhostAccepted], target))
    }
    appendRule(tables.nat, 'KUBE-NODEPORTS', rule([name, ...to], target))
  }
  if (port.hasExternal) return
  const { text, action } = verdictOf(port)
  const isForNode = match('addrtype', option('--dst-type', 'LOCAL'))
  appendRule(tables.filter, 'KUBE-EXTERNAL-SERVICES', rule([comment(text), isForNode, ...to], action))
}

/** The load balancer asks every node, so the port is open with and without endpoints. */
function renderHealthCheck({ port, tables }: PortRendering): void {
  if (port.healthCheckNodePort === 0) return
  const text = comment(`${port.name} health check node port`)
  appendRule(tables.filter, 'KUBE-NODEPORTS', rule([text, ...toPort('tcp', port.healthCheckNodePort)], jump('ACCEPT')))
}

/** Traffic to the cluster IP from outside the cluster may leave by another node, so it is masqueraded. */
function renderInternalMark(rendering: PortRendering): void {
  const { port, tables, context } = rendering
  if (!port.hasInternal) return
  const clauses = [comment(`${port.name} cluster IP`), ...toPort(port.protocol, port.port, port.clusterIP)]
  if (!context.settings.masqueradeAll) {
    if (context.ifNotLocal === undefined) return
    clauses.push(context.ifNotLocal)
  }
  appendRule(tables.nat, internalChain(rendering), rule(clauses, markMasquerade))
}

/**
 * All traffic to external addresses comes through this chain. With policy Local, pods and processes of this node are
 * served by any endpoint all the same, as if they had gone out and come back through the load balancer.
 */
function renderExternalChain({ port, chains, tables: { nat }, context }: PortRendering): void {
  if (!port.chosen.hasAny || !port.isExternallyAccessible) return
  const { name } = port
  const { external } = chains
  declareChain(nat, external)
  if (port.isExternalLocal) {
    if (context.ifLocal !== undefined) {
      const text = comment(`pod traffic for ${name} external destinations`)
      appendRule(nat, external, rule([text, context.ifLocal], jump(chains.cluster)))
    }
    const fromNode = match('addrtype', option('--src-type', 'LOCAL'))
    const masquerade = comment(`masquerade LOCAL traffic for ${name} external destinations`)
    const route = comment(`route LOCAL traffic for ${name} external destinations`)
    appendRule(nat, external, rule([masquerade, fromNode], markMasquerade))
    appendRule(nat, external, rule([route, fromNode], jump(chains.cluster)))
  } else {
    appendRule(nat, external, rule([comment(`masquerade traffic for ${name} external destinations`)], markMasquerade))
  }
  if (port.hasExternal) appendRule(nat, external, rule([], jump(port.isExternalLocal ? chains.local : chains.cluster)))
}

/** What is not let through keeps its destination, and so meets the DROP of KUBE-PROXY-FIREWALL. */
function renderFirewallChain({ port, chains, hasFirewall, tables: { nat } }: PortRendering): void {
  if (!hasFirewall) return
  const text = comment(`${port.name} loadbalancer IP`)
  const target = jump(chains.external)
  /** A node that holds the VIP itself sends to it from it. */
  const fromNode = port.allowsNode ? port.loadBalancerVIPs : []
  declareChain(nat, chains.firewall)
  for (const from of [...port.loadBalancerSourceRanges, ...fromNode]) {
    appendRule(nat, chains.firewall, rule([text, source(from)], target))
  }
  const rest = `other traffic to ${port.name} will be dropped by KUBE-PROXY-FIREWALL`
  appendRule(nat, chains.firewall, rule([comment(rest)]))
}
