/** A Service plan as the nftables table of kube-proxy: what a node holds after a full sync. */
import type { Parsed } from '#base/finding'
import { familyOf } from '#base/ip'
import type { ServicePlan } from '#compile/services/service-plan'
import { findingAt } from './findings'
import type { Layout } from './layout'
import { type OpenSet, type RenderContext, renderContext } from './render-context'
import { renderFixed, setNames } from './render-fixed'
import { renderServicePort } from './render-service'
import type { NamedSet, Table } from './ruleset'
import { sortElements } from './sort-elements'

export type RenderOptions = {
  readonly layout?: Layout
  /** The ranges of all ServiceCIDR objects, of both families. */
  readonly serviceCidrs?: readonly string[]
}

/** Mirrors pkg/proxy/nftables/proxier.go syncProxyRules; Services come in the plan's order instead of any. */
export function renderNftables(plan: ServicePlan, options: RenderOptions = {}): Parsed<Table> {
  const { layout = '1.34', serviceCidrs = [] } = options
  const context = renderContext(plan, layout)
  renderFixed(
    context,
    serviceCidrs.filter((cidr) => familyOf(cidr) === plan.family),
  )
  for (const port of plan.ports) renderServicePort(port, context)
  noteNodePorts(plan, context)
  const sets = Array.from(context.sets, ([name, set]): [string, NamedSet] => [name, closeSet(set)])
  const table: Table = {
    family: context.ip,
    name: 'kube-proxy',
    comment: 'rules for kube-proxy',
    flags: [],
    objects: [],
    sets: new Map(sets),
    flowtables: new Map(),
    chains: context.chains,
  }
  return { value: table, findings: context.findings }
}

function noteNodePorts({ ports }: ServicePlan, { sets, findings }: RenderContext): void {
  const first = ports.find(({ nodePort }) => nodePort !== 0)
  if (first === undefined || sets.get(setNames.nodePortIps)?.elements.size !== 0) return
  const message = 'no known address of the node takes node ports: they answer nowhere, here and in other Services'
  findings.push(findingAt(first.service.meta, 'nftables.no-node-port-address', message))
}

function closeSet(set: OpenSet): NamedSet {
  const elements = [...set.elements.values()]
  return { ...set, elements: set.key.kind === 'type' ? sortElements(elements, set.key.names) : elements }
}
