/** What every renderer of kube-proxy's table needs: the plan turned into statements, and the table while it is filled. */
import type { Finding } from '#base/finding'
import type { Family } from '#base/ip'
import type { LocalTraffic } from '#compile/services/local-traffic'
import { type NodePortAddresses, nodePortAddresses } from '#compile/services/node-port-addresses'
import type { ServicePlan, ServicePortPlan } from '#compile/services/service-plan'
import type { ServiceChains } from './chain-names'
import { constant, type Element, type Expression } from './expression'
import { type Layout, type LayoutPlan, layoutPlans } from './layout'
import { prefixOrAddress } from './merge-ranges'
import { changeMark, jump, matches, meta, payload } from './rule-parts'
import type { Chain, DataType, NamedSet } from './ruleset'
import type { Match, Rule, Statement } from './statement'

export type OpenChain = Omit<Chain, 'rules'> & { readonly rules: Rule[] }
/** Elements by the text of their key. */
export type OpenSet = Omit<NamedSet, 'elements'> & { readonly elements: Map<string, Element> }

export type RenderContext = {
  readonly family: Family
  /** The protocol's name in rules. */
  readonly ip: 'ip' | 'ip6'
  readonly layout: Layout
  readonly layoutPlan: LayoutPlan
  readonly mark: number
  /** Sends a packet on to be masqueraded. */
  readonly markStatement: Statement
  readonly masqueradeAll: boolean
  /** Tests for traffic of local pods; absent when kube-proxy cannot tell it. */
  readonly ifLocal?: Match
  readonly ifNotLocal?: Match
  readonly nodePorts: NodePortAddresses
  readonly sets: Map<string, OpenSet>
  readonly chains: Map<string, OpenChain>
  readonly findings: Finding[]
}

export type PortRendering = {
  readonly port: ServicePortPlan
  readonly chains: ServiceChains
  /** At the place of each reachable endpoint; empty where endpoints have no chains. */
  readonly endpointChains: readonly string[]
  readonly hasExternalChain: boolean
  readonly hasFirewall: boolean
  readonly context: RenderContext
}

export const markChain = 'mark-for-masquerade'

export function renderContext(plan: ServicePlan, layout: Layout): RenderContext {
  const { family, settings, node, localTraffic } = plan
  const mark = 2 ** settings.masqueradeBit
  const layoutPlan = layoutPlans[layout]
  const ip = family === 'ipv4' ? 'ip' : 'ip6'
  const context: RenderContext = {
    family,
    ip,
    layout,
    layoutPlan,
    mark,
    markStatement: layoutPlan.hasMarkChain ? jump(markChain) : changeMark('|', mark),
    masqueradeAll: settings.masqueradeAll,
    nodePorts: nodePortAddresses(settings, { family, ips: node.ips }, 'primary'),
    sets: new Map(),
    chains: new Map(),
    findings: [],
  }
  if (localTraffic === undefined) return context
  return { ...context, ifLocal: isLocal(localTraffic, ip, '=='), ifNotLocal: isLocal(localTraffic, ip, '!=') }
}

function isLocal(test: LocalTraffic, ip: 'ip' | 'ip6', operator: '==' | '!='): Match {
  switch (test.kind) {
    case 'source':
      return matches(payload(ip, 'saddr'), prefixOrAddress(test.cidr), operator)
    case 'interface':
      return matches(meta('iifname'), constant(test.isPrefix ? `${test.name}*` : test.name), operator)
    default:
      return test satisfies never
  }
}

export function openChain(context: RenderContext, name: string, more: Omit<Chain, 'name' | 'rules'> = {}): void {
  if (!context.chains.has(name)) context.chains.set(name, { name, ...more, rules: [] })
}

/** A chain that is whole from the start. The list is handed over. */
export function addChain({ chains }: RenderContext, name: string, rules: Rule[]): void {
  chains.set(name, { name, rules })
}

export function addRule({ chains }: RenderContext, chain: string, ...rules: readonly Rule[]): void {
  chains.get(chain)?.rules.push(...rules)
}

export type SetHead = { readonly key: readonly string[]; readonly data?: string; readonly comment?: string } & Partial<
  Pick<NamedSet, 'flags' | 'size' | 'timeoutMilliseconds'>
>

export function openSet({ sets }: RenderContext, name: string, { key, data, ...head }: SetHead): void {
  const typed = data === undefined ? {} : { data: typeOf([data]) }
  const rest = { flags: [], isDataInterval: false, isAutoMerged: false, statements: [] }
  sets.set(name, { name, key: typeOf(key), ...typed, ...rest, ...head, elements: new Map() })
}

function typeOf(names: readonly string[]): DataType {
  return { kind: 'type', names }
}

/** Returns what the set held under the same key until now. */
export function addElement({ sets }: RenderContext, name: string, element: Element): Element | undefined {
  const elements = sets.get(name)?.elements
  const key = keyText(element.key)
  const earlier = elements?.get(key)
  elements?.set(key, element)
  return earlier
}

function keyText(key: Expression): string {
  if (key.kind === 'value') return String(key.value)
  let text = ''
  if (key.kind === 'concat') for (const part of key.parts) text += `${keyText(part)} `
  return text
}
