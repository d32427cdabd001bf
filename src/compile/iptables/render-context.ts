/** What every renderer of a sync needs: the settings turned into clauses, and where the lines go. */

import type { Family } from '#base/ip'
import type { LocalTraffic } from '#compile/services/local-traffic'
import { hasIpv4Loopback } from '#compile/services/node-port-addresses'
import { type ProxySettings, printMasqueradeMark } from '#compile/services/proxy-settings'
import type { ServicePlan } from '#compile/services/service-plan'
import type { ChainNaming } from './chain-names'
import type { Clause, Rule } from './rule'
import { match, negated, option, source } from './rule-parts'

/** One table of a sync while it is written: chains and lines in the order they come. */
export type OpenTable = { readonly chains: string[]; readonly lines: OpenLine[] }

type OpenLine =
  | { readonly kind: 'append'; readonly chain: string; readonly rules: Rule[] }
  | { readonly kind: 'delete'; readonly chain: string }

export function openTable(): OpenTable {
  return { chains: [], lines: [] }
}

export function declareChain({ chains }: OpenTable, chain: string): void {
  chains.push(chain)
}

export function appendRule({ lines }: OpenTable, chain: string, rule: Rule): void {
  const last = lines[lines.length - 1]
  if (last?.kind === 'append' && last.chain === chain) last.rules.push(rule)
  else lines.push({ kind: 'append', chain, rules: [rule] })
}

/** The list is handed over. */
export function appendRules({ lines }: OpenTable, chain: string, rules: Rule[]): void {
  const last = lines[lines.length - 1]
  if (last?.kind === 'append' && last.chain === chain) for (const rule of rules) last.rules.push(rule)
  else lines.push({ kind: 'append', chain, rules })
}

export function deleteChain({ lines }: OpenTable, chain: string): void {
  lines.push({ kind: 'delete', chain })
}

export type RenderContext = {
  readonly family: Family
  readonly settings: ProxySettings
  readonly naming: ChainNaming
  /** The mark as text, `0x00004000`. */
  readonly mark: string
  /** Tests for traffic of local pods; absent when kube-proxy cannot tell it. */
  readonly ifLocal?: Clause
  readonly ifNotLocal?: Clause
  readonly hasLocalhostNodePorts: boolean
  /** So many endpoints that their rules go without comments. */
  readonly isLargeCluster: boolean
  /** `-m statistic …` for the first of n, each made once. */
  readonly shares: Map<number, Clause>
}

export function renderContext(plan: ServicePlan, naming: ChainNaming): RenderContext {
  const { family, settings, node, localTraffic, endpointCount } = plan
  const context = {
    family,
    settings,
    naming,
    mark: printMasqueradeMark(settings),
    hasLocalhostNodePorts: family === 'ipv4' && settings.localhostNodePorts && hasIpv4Loopback(settings, node),
    isLargeCluster: endpointCount > settings.largeClusterEndpoints,
    shares: new Map<number, Clause>(),
  }
  if (localTraffic === undefined) return context
  const ifLocal = localClause(localTraffic)
  return { ...context, ifLocal, ifNotLocal: negated(ifLocal) }
}

function localClause(test: LocalTraffic): Extract<Clause, { readonly value: string }> {
  switch (test.kind) {
    case 'source':
      return source(test.cidr)
    case 'interface':
      return { kind: 'in-interface', not: false, value: test.isPrefix ? `${test.name}+` : test.name }
    default:
      return test satisfies never
  }
}

/** The counters that kube-proxy makes in the kernel when it can (pkg/proxy/metrics, 1.34). */
export const nfacct = {
  localhostAccepted: match('nfacct', option('--nfacct-name', 'localhost_nps_accepted_pkts')),
  invalidDropped: match('nfacct', option('--nfacct-name', 'ct_state_invalid_dropped_pkts')),
} as const
