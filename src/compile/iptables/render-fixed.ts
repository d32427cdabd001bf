/** The rules that are there whatever Services exist: masquerading, forwarding, the way to node ports. */
import { nodePortAddresses } from '#compile/services/node-port-addresses'
import type { ServicePlan } from '#compile/services/service-plan'
import { appendRule, declareChain, nfacct, type OpenTable, type RenderContext } from './render-context'
import { comment, destination, jump, match, negated, not, option, rule, source } from './rule-parts'

/** First of the nat rules (pkg/proxy/iptables/proxier.go, 1.34): the mark goes before the packet is masqueraded. */
export function renderMasquerade(nat: OpenTable, { mark, settings }: RenderContext): void {
  const isMarked = option('--mark', `${mark}/${mark}`)
  const fully = settings.randomFully ? [option('--random-fully')] : []
  appendRule(nat, 'KUBE-POSTROUTING', rule([match('mark', not(isMarked))], jump('RETURN')))
  appendRule(nat, 'KUBE-POSTROUTING', rule([], jump('MARK', option('--xor-mark', mark))))
  appendRule(
    nat,
    'KUBE-POSTROUTING',
    rule([comment('kubernetes service traffic requiring SNAT')], jump('MASQUERADE', ...fully)),
  )
  appendRule(nat, 'KUBE-MARK-MASQ', rule([], jump('MARK', option('--or-mark', mark))))
}

/** Node ports on 127.0.0.1 need route_localnet, which opens the loopback range to neighbours; this closes it again. */
export function renderLoopbackGuard(filter: OpenTable, { hasLocalhostNodePorts }: RenderContext): void {
  if (!hasLocalhostNodePorts) return
  const loopback = '127.0.0.0/8'
  declareChain(filter, 'KUBE-FIREWALL')
  appendRule(
    filter,
    'KUBE-FIREWALL',
    rule(
      [
        comment('block incoming localnet connections'),
        destination(loopback),
        negated(source(loopback)),
        match('conntrack', not(option('--ctstate', 'RELATED,ESTABLISHED,DNAT'))),
      ],
      jump('DROP'),
    ),
  )
}

const nodePortComment = 'kubernetes service nodeports; NOTE: this must be the last rule in this chain'

/** Last of the nat rules: whatever is for the node itself may be for a node port. */
export function renderNodePortJump(nat: OpenTable, plan: ServicePlan, context: RenderContext): void {
  const { family, hasLocalhostNodePorts, settings } = context
  const addresses = nodePortAddresses(settings, { family, ips: plan.node.ips }, 'all')
  const target = jump('KUBE-NODEPORTS')
  if (addresses.kind === 'all') {
    const clauses = [comment(nodePortComment), match('addrtype', option('--dst-type', 'LOCAL'))]
    if (family === 'ipv6') clauses.push(negated(destination('::1/128')))
    else if (!hasLocalhostNodePorts) clauses.push(negated(destination('127.0.0.0/8')))
    appendRule(nat, 'KUBE-SERVICES', rule(clauses, target))
    return
  }
  for (const ip of addresses.ips) {
    if (isLoopback(ip) && !hasLocalhostNodePorts) continue
    appendRule(nat, 'KUBE-SERVICES', rule([comment(nodePortComment), destination(ip)], target))
  }
}

function isLoopback(ip: string): boolean {
  return ip === '::1' || ip.startsWith('127.')
}

/** Last of the filter rules: what was marked for masquerading may be forwarded, and so may all that follows it. */
export function renderForward(filter: OpenTable, { mark, settings }: RenderContext): void {
  if (!settings.conntrackTcpBeLiberal) {
    const isInvalid = match('conntrack', option('--ctstate', 'INVALID'))
    const clauses = settings.nfacct ? [isInvalid, nfacct.invalidDropped] : [isInvalid]
    appendRule(filter, 'KUBE-FORWARD', rule(clauses, jump('DROP')))
  }
  const isMarked = match('mark', option('--mark', `${mark}/${mark}`))
  const isKnown = match('conntrack', option('--ctstate', 'RELATED,ESTABLISHED'))
  appendRule(filter, 'KUBE-FORWARD', rule([comment('kubernetes forwarding rules'), isMarked], jump('ACCEPT')))
  appendRule(filter, 'KUBE-FORWARD', rule([comment('kubernetes forwarding conntrack rule'), isKnown], jump('ACCEPT')))
}
