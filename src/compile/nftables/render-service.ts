/** One Service port: its elements in the shared sets and maps, and its chains. */
import type { ServicePortPlan } from '#compile/services/service-plan'
import { endpointChain, portText, type ServiceChains, serviceChains } from './chain-names'
import { constant, type Element, type Expression, type Verdict } from './expression'
import { findingAt } from './findings'
import { rangesExpression } from './merge-ranges'
import { addElement, addRule, openChain, type PortRendering, type RenderContext } from './render-context'
import { renderEndpointChains, renderHairpins, renderPolicyChains } from './render-endpoints'
import { rejectChain, setNames } from './render-fixed'
import { commented, concat, goTo, isFromNode, matches, payload, rule } from './rule-parts'
import type { Rule } from './statement'

/** Mirrors the body of the loop over Service ports in pkg/proxy/nftables/proxier.go syncProxyRules (1.34). */
export function renderServicePort(port: ServicePortPlan, context: RenderContext): void {
  const hasEndpointChains = context.layoutPlan.hasMarkChain || port.affinitySeconds !== undefined
  const text = portText(port)
  const rendering: PortRendering = {
    port,
    chains: serviceChains(text),
    endpointChains: hasEndpointChains ? port.chosen.reachable.map((endpoint) => endpointChain(text, endpoint)) : [],
    hasExternalChain: port.chosen.hasAny && port.isExternallyAccessible,
    hasFirewall: port.loadBalancerVIPs.length > 0 && port.loadBalancerSourceRanges.length > 0,
    context,
  }
  renderEndpointChains(rendering)
  openPortChains(rendering)
  renderAddresses(rendering)
  renderNodePort(rendering)
  renderInternalMark(rendering)
  renderExternalChain(rendering)
  renderFirewallChain(rendering)
  renderPolicyChains(rendering)
  renderHairpins(rendering)
}

/** A node lists chains in the order in which they were made: those of endpoints first, then these. */
function openPortChains({ port, chains, hasExternalChain, hasFirewall, context }: PortRendering): void {
  if (port.chosen.cluster.length > 0) openChain(context, chains.cluster)
  if (port.chosen.local.length > 0) openChain(context, chains.local)
  if (hasExternalChain) openChain(context, chains.external)
  if (hasFirewall) openChain(context, chains.firewall)
}

/** No endpoint anywhere is refused; none on this node, where it must be on this node, is dropped in silence. */
function refusal({ chosen }: ServicePortPlan): Verdict {
  return chosen.hasAny ? { kind: 'drop' } : goTo(rejectChain)
}

function renderAddresses(rendering: PortRendering): void {
  const { port, chains, hasFirewall, context } = rendering
  addElement(context, setNames.clusterIps, { key: constant(port.clusterIP) })
  const internal = port.isInternalLocal ? chains.local : chains.cluster
  const key = addressKey(port, port.clusterIP)
  if (port.hasInternal) add(rendering, setNames.serviceIps, { key, data: goTo(internal) })
  else add(rendering, setNames.noEndpointServices, { key, comment: port.name, data: refusal(port) })
  for (const ip of [...port.externalIPs, ...port.loadBalancerVIPs]) renderExternalAddress(rendering, ip)
  if (!hasFirewall) return
  for (const ip of port.loadBalancerVIPs) {
    add(rendering, setNames.firewallIps, { key: addressKey(port, ip), data: goTo(chains.firewall) })
  }
}

/** With policy Local and endpoints elsewhere only, both maps have the address: pods of this node still get through. */
function renderExternalAddress(rendering: PortRendering, ip: string): void {
  const { port, chains } = rendering
  const key = addressKey(port, ip)
  if (port.chosen.hasAny) add(rendering, setNames.serviceIps, { key, data: goTo(chains.external) })
  if (!port.hasExternal) add(rendering, setNames.noEndpointServices, { key, comment: port.name, data: refusal(port) })
}

function renderNodePort(rendering: PortRendering): void {
  const { port, chains } = rendering
  if (port.nodePort === 0) return
  const key = concat(constant(port.protocol), constant(port.nodePort))
  if (port.chosen.hasAny) add(rendering, setNames.serviceNodePorts, { key, data: goTo(chains.external) })
  if (!port.hasExternal) add(rendering, setNames.noEndpointNodePorts, { key, comment: port.name, data: refusal(port) })
}

function addressKey({ protocol, port }: ServicePortPlan, ip: string): Expression {
  return concat(constant(ip), constant(protocol), constant(port))
}

function add({ port, context }: PortRendering, set: string, element: Element): void {
  const earlier = addElement(context, set, element)
  if (earlier === undefined || targetOf(earlier) === targetOf(element)) return
  const message = `port ${port.port}/${port.protocol} shares an entry of map ${set} with another Service port`
  context.findings.push(findingAt(port.service.meta, 'nftables.address-shared', message))
}

function targetOf({ data, comment }: Element): string {
  return `${comment} ${data !== undefined && 'target' in data ? data.target : data?.kind}`
}

/** Packets from outside for the cluster IP come back through this node only if it is their source. */
function renderInternalMark({ port, chains, context }: PortRendering): void {
  const { layoutPlan, masqueradeAll, ifNotLocal, markStatement, ip } = context
  if (!layoutPlan.hasMarkChain || !port.hasInternal || (!masqueradeAll && ifNotLocal === undefined)) return
  const statements = [matches(payload(ip, 'daddr'), constant(port.clusterIP))]
  if (layoutPlan.namesPort) statements.push(matches(payload(port.protocol, 'dport'), constant(port.port)))
  if (!masqueradeAll && ifNotLocal !== undefined) statements.push(ifNotLocal)
  addRule(context, port.isInternalLocal ? chains.local : chains.cluster, rule(...statements, markStatement))
}

function renderExternalChain({ port, chains, hasExternalChain, context }: PortRendering): void {
  if (!hasExternalChain) return
  addRule(context, chains.external, ...externalRules(port, chains, context))
}

function externalRules(port: ServicePortPlan, chains: ServiceChains, context: RenderContext): readonly Rule[] {
  const { ifLocal, markStatement } = context
  const last = port.hasExternal ? [rule(goTo(port.isExternalLocal ? chains.local : chains.cluster))] : []
  if (!port.isExternalLocal) return [rule(markStatement), ...last]
  const toAll = goTo(chains.cluster)
  const ofPods = ifLocal === undefined ? [] : [commented('short-circuit pod traffic', ifLocal, toAll)]
  return [
    ...ofPods,
    commented('masquerade local traffic', isFromNode, markStatement),
    commented('short-circuit local traffic', isFromNode, toAll),
    ...last,
  ]
}

/** A node's own packet to a VIP that is bound there has the VIP as its source. */
function renderFirewallChain({ port, chains, hasFirewall, context }: PortRendering): void {
  if (!hasFirewall) return
  const sources = [...port.loadBalancerSourceRanges, ...(port.allowsNode ? port.loadBalancerVIPs : [])]
  const isOther = matches(payload(context.ip, 'saddr'), rangesExpression(sources, context.family), '!=')
  addRule(context, chains.firewall, rule(isOther, { kind: 'drop' }))
}
