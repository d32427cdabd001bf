/** Loads rules and sets into a node and reads them back, as its owner's tools do. */
import type { Family } from '#base/ip'
import type { KernelNode } from './kernel-node'
import { inside } from './namespace'
import { type CommandOutcome, mustRun, runCommand } from './run-command'

/** Which of the kernel's two rule engines: the two keep their rules apart. */
type Variant = 'nft' | 'legacy'

export type RulesPlace = { readonly variant: Variant; readonly family: Family }

export const ipv4Rules: RulesPlace = { variant: 'nft', family: 'ipv4' }
export const ipv6Rules: RulesPlace = { variant: 'nft', family: 'ipv6' }

/** Loads restore or save text, with its counters if it has any; it replaces the tables it names. */
export function loadRules(node: KernelNode, place: RulesPlace, text: string): CommandOutcome {
  const counters = /^\[\d+:\d+\] -A /m.test(text) ? ['--counters'] : []
  return runCommand(inside(node.namespace, [...toolOf(place, 'restore'), ...counters, ...patience(place)]), text)
}

/** As kube-proxy loads them: chains that are not named stay. */
export function addRules(node: KernelNode, place: RulesPlace, text: string): CommandOutcome {
  return runCommand(inside(node.namespace, [...toolOf(place, 'restore'), '--noflush', ...patience(place)]), text)
}

export function saveRules(node: KernelNode, place: RulesPlace, options: readonly '--counters'[] = []): string {
  return mustRun(inside(node.namespace, [...toolOf(place, 'save'), ...options]))
}

/** Loads what `nft list` prints or a script. */
export function loadNftables(node: KernelNode, script: string): CommandOutcome {
  return runCommand(inside(node.namespace, ['nft', '-f', '-']), script)
}

/** Loads what `ipset save` prints. Rules that match a set need it before them. */
export function loadSets(node: KernelNode, text: string): CommandOutcome {
  return runCommand(inside(node.namespace, ['ipset', 'restore']), text)
}

export function saveSets(node: KernelNode): string {
  return mustRun(inside(node.namespace, ['ipset', 'save']))
}

/** Makes the counters that rules with `-m nfacct` name: without them the kernel refuses the rules. */
export function addAccounting(node: KernelNode, names: readonly string[]): void {
  for (const name of names) mustRun(inside(node.namespace, ['nfacct', 'add', name]))
}

/** A save without what differs from one moment to the next: dates, and the counters of chains and rules. */
export function withoutMoments(save: string): string {
  return save
    .split('\n')
    .filter((line) => !line.startsWith('# '))
    .map((line) => line.replace(/^(:\S+ \S+) \[\d+:\d+\]/, '$1').replace(/^\[\d+:\d+\] /, ''))
    .join('\n')
}

/**
 * The tables of a save, in one order, without what differs from one moment to the next: the legacy engine lists its tables
 * in the order in which they were made, last first, and the order turns with every load.
 */
export function tablesOfSave(save: string): string[] {
  return withoutMoments(save)
    .split(/^(?=\*)/m)
    .sort()
}

/** By the program both names lead to: what `iptables-save` itself is differs from one machine to the next. */
function toolOf({ variant, family }: RulesPlace, verb: 'restore' | 'save'): string[] {
  return [`xtables-${variant}-multi`, `${family === 'ipv4' ? 'iptables' : 'ip6tables'}-${verb}`]
}

/** The legacy tools share one lock file over all namespaces; the others have none. */
function patience({ variant }: RulesPlace): string[] {
  return variant === 'legacy' ? ['--wait', '30'] : []
}
