/** Sets, chains and rules that are there whatever Services exist: the ways into the table, masquerading, refusals. */
import { constant } from './expression'
import { rangesExpression } from './merge-ranges'
import { addElement, addRule, markChain, openChain, openSet, type RenderContext } from './render-context'
import {
  changeMark,
  commented,
  concat,
  hasMark,
  isForNode,
  isNew,
  jump,
  masquerade,
  matches,
  meta,
  payload,
  reference,
  rule,
} from './rule-parts'
import type { Rule, Statement } from './statement'

export const setNames = {
  hairpin: 'hairpin-connections',
  clusterIps: 'cluster-ips',
  nodePortIps: 'nodeport-ips',
  noEndpointServices: 'no-endpoint-services',
  noEndpointNodePorts: 'no-endpoint-nodeports',
  firewallIps: 'firewall-ips',
  serviceIps: 'service-ips',
  serviceNodePorts: 'service-nodeports',
} as const

export const rejectChain = 'reject-chain'

/** Mirrors setupNFTables of pkg/proxy/nftables/proxier.go (1.34), in the order in which it creates things. */
export function renderFixed(context: RenderContext, serviceCidrs: readonly string[]): void {
  openSets(context)
  openChains(context)
  for (const { from, to, isForNew } of context.layoutPlan.jumps) {
    addRule(context, from, isForNew ? rule(isNew, jump(to)) : rule(jump(to)))
  }
  renderMasquerading(context)
  renderClusterIpsCheck(context, serviceCidrs)
  renderLookups(context)
}

function openSets(context: RenderContext): void {
  const address = context.family === 'ipv4' ? 'ipv4_addr' : 'ipv6_addr'
  const service = { key: [address, 'inet_proto', 'inet_service'], data: 'verdict' }
  const nodePort = { key: ['inet_proto', 'inet_service'], data: 'verdict' }
  if (!context.layoutPlan.hasMarkChain) {
    const key = [address, address, 'inet_proto', 'inet_service']
    openSet(context, setNames.hairpin, { key, comment: 'service hairpin connections' })
  }
  openSet(context, setNames.clusterIps, { key: [address], comment: 'Active ClusterIPs' })
  openNodePortIps(context, address)
  openSet(context, setNames.noEndpointServices, {
    ...service,
    comment: 'vmap to drop or reject packets to services with no endpoints',
  })
  openSet(context, setNames.noEndpointNodePorts, {
    ...nodePort,
    comment: 'vmap to drop or reject packets to service nodeports with no endpoints',
  })
  openSet(context, setNames.firewallIps, {
    ...service,
    comment: 'destinations that are subject to LoadBalancerSourceRanges',
  })
  openSet(context, setNames.serviceIps, { ...service, comment: 'ClusterIP, ExternalIP and LoadBalancer IP traffic' })
  openSet(context, setNames.serviceNodePorts, { ...nodePort, comment: 'NodePort traffic' })
}

/** As kube-proxy's nftables mode, which serves no node port on loopback (pkg/proxy/nftables/proxier.go). */
function openNodePortIps(context: RenderContext, address: string): void {
  const { nodePorts } = context
  if (nodePorts.kind === 'all') return
  openSet(context, setNames.nodePortIps, { key: [address], comment: 'IPs that accept NodePort traffic' })
  for (const ip of nodePorts.ips) {
    if (!isLoopback(ip)) addElement(context, setNames.nodePortIps, { key: constant(ip) })
  }
}

function isLoopback(ip: string): boolean {
  return ip === '::1' || ip.startsWith('127.')
}

function openChains(context: RenderContext): void {
  const { baseChains, jumps, hasMarkChain } = context.layoutPlan
  for (const { name, ...base } of baseChains) {
    openChain(context, name, { base: { ...base, devices: [], policy: 'accept', flags: [] } })
  }
  for (const { to } of jumps) openChain(context, to)
  if (hasMarkChain) openChain(context, markChain)
  openChain(context, rejectChain, { comment: 'helper for @no-endpoint-services / @no-endpoint-nodeports' })
  addRule(context, rejectChain, rule({ kind: 'reject', ...portUnreachable(context) }))
}

function portUnreachable({
  ip,
}: RenderContext): Pick<Extract<Statement, { readonly kind: 'reject' }>, 'type' | 'code'> {
  return { type: ip === 'ip' ? 'icmp' : 'icmpv6', code: constant('port-unreachable') }
}

function renderMasquerading(context: RenderContext): void {
  const { mark, layoutPlan, ip } = context
  const chain = 'masquerading'
  const isMarked = hasMark(mark, '!=')
  if (layoutPlan.hasMarkChain) {
    addRule(context, markChain, rule(changeMark('|', mark)))
    addRule(context, chain, rule(hasMark(mark, '=='), { kind: 'return' }))
    addRule(context, chain, rule(changeMark('^', mark)), rule(masquerade))
    return
  }
  const isTranslated = matches({ kind: 'ct', key: 'status' }, constant('dnat'), 'in')
  const connection = concat(payload(ip, 'saddr'), payload(ip, 'daddr'), meta('l4proto'), payload('th', 'dport'))
  addRule(context, chain, rule(isMarked, changeMark('^', mark), masquerade))
  addRule(context, chain, rule(isTranslated, matches(connection, reference(setNames.hairpin)), masquerade))
}

/** Whatever is still for a cluster IP after DNAT is for a port that no Service has. */
function renderClusterIpsCheck(context: RenderContext, serviceCidrs: readonly string[]): void {
  const { ip, family } = context
  const destination = payload(ip, 'daddr')
  const refuse: Statement = { kind: 'reject', ...portUnreachable(context) }
  addRule(
    context,
    'cluster-ips-check',
    commented(
      'Reject traffic to invalid ports of ClusterIPs',
      matches(destination, reference(setNames.clusterIps)),
      refuse,
    ),
  )
  if (serviceCidrs.length === 0) return
  const unallocated = matches(destination, rangesExpression(serviceCidrs, family))
  addRule(
    context,
    'cluster-ips-check',
    commented('Drop traffic to unallocated ClusterIPs', unallocated, { kind: 'drop' }),
  )
}

function renderLookups(context: RenderContext): void {
  const byAddress = (set: string): Rule => rule({ kind: 'vmap', key: serviceKey(context), data: reference(set) })
  addRule(context, 'service-endpoints-check', byAddress(setNames.noEndpointServices))
  addRule(context, 'firewall-check', byAddress(setNames.firewallIps))
  addRule(context, 'nodeport-endpoints-check', nodePortLookup(context, setNames.noEndpointNodePorts, []))
  const toMark = clusterIpMark(context)
  if (toMark !== undefined) addRule(context, 'services', toMark)
  addRule(context, 'services', byAddress(setNames.serviceIps))
  addRule(context, 'services', nodePortLookup(context, setNames.serviceNodePorts, [isForNode]))
}

function serviceKey({ ip }: RenderContext): ReturnType<typeof concat> {
  return concat(payload(ip, 'daddr'), meta('l4proto'), payload('th', 'dport'))
}

/** Where all addresses take node ports, `whenAll` and a test that leaves loopback out stand in for the set of addresses. */
function nodePortLookup(context: RenderContext, set: string, whenAll: readonly Statement[]): Rule {
  const { ip, nodePorts } = context
  const destination = payload(ip, 'daddr')
  const lookup: Statement = { kind: 'vmap', key: concat(meta('l4proto'), payload('th', 'dport')), data: reference(set) }
  if (nodePorts.kind === 'some') return rule(matches(destination, reference(setNames.nodePortIps)), lookup)
  const loopback = rangesExpression([ip === 'ip' ? '127.0.0.0/8' : '::1'], context.family)
  return rule(...whenAll, matches(destination, loopback, '!='), lookup)
}

/** From 1.36 on one rule for all cluster IPs (seen on nodes; the text with masqueradeAll is inferred). */
function clusterIpMark({ ip, layoutPlan, masqueradeAll, ifNotLocal, markStatement }: RenderContext): Rule | undefined {
  if (layoutPlan.hasMarkChain) return undefined
  const isClusterIp = matches(payload(ip, 'daddr'), reference(setNames.clusterIps))
  if (masqueradeAll) return rule(isClusterIp, markStatement)
  if (ifNotLocal === undefined) return undefined
  return commented('masquerade clusterIP traffic from outside cluster', isClusterIp, ifNotLocal, markStatement)
}
