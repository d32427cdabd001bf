/** A Service plan as iptables rules: what kube-proxy writes in one full sync, and what the node holds afterwards. */
import type { Family } from '#base/ip'
import { compareText } from '#base/text'
import type { ServicePlan } from '#compile/services/service-plan'
import { type ChainNaming, isServiceChain } from './chain-names'
import { normalizeRuleset } from './normalize-rule'
import { declareChain, deleteChain, type OpenTable, openTable, renderContext } from './render-context'
import { renderForward, renderLoopbackGuard, renderMasquerade, renderNodePortJump } from './render-fixed'
import { withBuiltins } from './render-jumps'
import { renderServicePort } from './render-service'
import type { RestoreTable } from './restore-table'
import type { Chain, Rule, Ruleset, Table, Variant } from './rule'

export type RenderOptions = {
  readonly chainNames?: ChainNaming
  /** Chains that the nat table holds from earlier syncs: those of Services and endpoints that are gone are deleted. */
  readonly previousChains?: Iterable<string>
}

/** The tables of one sync, in the order that kube-proxy writes them. */
export type IptablesSync = { readonly family: Family; readonly tables: readonly RestoreTable[] }

const filterChains = [
  'KUBE-SERVICES',
  'KUBE-EXTERNAL-SERVICES',
  'KUBE-FORWARD',
  'KUBE-NODEPORTS',
  'KUBE-PROXY-FIREWALL',
]
const natChains = ['KUBE-SERVICES', 'KUBE-NODEPORTS', 'KUBE-POSTROUTING', 'KUBE-MARK-MASQ']

/** Mirrors pkg/proxy/iptables/proxier.go syncProxyRules (1.34); Services come in the plan's order instead of any. */
export function renderIptables(plan: ServicePlan, options: RenderOptions = {}): IptablesSync {
  const { chainNames = 'kube-proxy', previousChains = [] } = options
  const context = renderContext(plan, chainNames)
  const filter = openTable()
  const nat = openTable()
  for (const chain of filterChains) declareChain(filter, chain)
  for (const chain of natChains) declareChain(nat, chain)
  renderMasquerade(nat, context)
  renderLoopbackGuard(filter, context)
  for (const port of plan.ports) renderServicePort(port, { filter, nat }, context)
  deleteStale(nat, previousChains)
  renderNodePortJump(nat, plan, context)
  renderForward(filter, context)
  return { family: plan.family, tables: [tableOf('filter', filter), tableOf('nat', nat)] }
}

/** A chain line flushes the chain, so that it can go even if it was not empty. */
function deleteStale(nat: OpenTable, previous: Iterable<string>): void {
  const active = new Set(nat.chains)
  for (const chain of [...new Set(previous)].sort(compareText)) {
    if (active.has(chain) || !isServiceChain(chain)) continue
    declareChain(nat, chain)
    deleteChain(nat, chain)
  }
}

function tableOf(name: string, { chains, lines }: OpenTable): RestoreTable {
  return { name, chains: chains.map((chain) => ({ name: chain })), lines }
}

/** The tables with jumps from built-in chains and canary chains: what an empty namespace needs for the same state. */
export function fullTables(sync: IptablesSync): readonly RestoreTable[] {
  return withBuiltins(sync.tables)
}

/** What the kernel holds after the sync, as a save shows it. */
export function savedRuleset(sync: IptablesSync, variant: Variant = 'nf_tables'): Ruleset {
  const tables = fullTables(sync).map((table): [string, Table] => [table.name, loadTable(table)])
  return normalizeRuleset({ family: sync.family, variant, tables: new Map(tables) })
}

function loadTable({ name, chains, lines }: RestoreTable): Table {
  const loaded = new Map<string, LoadedChain>()
  for (const chain of chains) loaded.set(chain.name, { ...chain, rules: [] })
  for (const line of lines) {
    if (line.kind === 'delete') loaded.delete(line.chain)
    else for (const rule of line.rules) loaded.get(line.chain)?.rules.push(rule)
  }
  return { name, chains: loaded }
}

type LoadedChain = Chain & { readonly rules: Rule[] }
