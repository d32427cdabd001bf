/** `portolan iptables`: the rules kube-proxy writes on a node. */
import { type Command, Option } from 'commander'
import type { ChainNaming } from '#compile/iptables/chain-names'
import { printRestore } from '#compile/iptables/print-restore'
import { printSave } from '#compile/iptables/print-save'
import { fullTables, savedRuleset } from '#compile/iptables/render-iptables'
import type { Variant } from '#compile/iptables/rule'
import { printAssumption } from '#compile/node/assumptions'
import { nodeIptables } from '#compile/node/node-iptables'
import type { CommandContext } from './command'
import type { Io } from './io'
import {
  addObjectOptions,
  addProxyOptions,
  addSlicesOption,
  checkProxyOptions,
  type FromOptions,
  type ProxyOptions,
  settingsOf,
} from './options'
import { printFindings } from './print-findings'
import { readClusterInput, readRulesets, requireNode } from './read-inputs'

type IptablesOptions = FromOptions &
  ProxyOptions & {
    readonly format: 'save' | 'restore' | 'restore-full'
    readonly chainNames: ChainNaming
    readonly variant: Variant
    readonly previous?: string
  }

export function addIptables(program: Command, { io, end }: CommandContext): void {
  const command = program.command('iptables').description('print the iptables rules that kube-proxy writes on a node')
  addProxyOptions(addSlicesOption(addObjectOptions(command)))
    .addOption(
      new Option(
        '--format <format>',
        'save: as iptables-save prints; restore: what kube-proxy feeds iptables-restore --noflush; restore-full: with built-in jumps and canaries',
      )
        .choices(['save', 'restore', 'restore-full'])
        .default('save'),
    )
    .addOption(
      new Option(
        '--chain-names <names>',
        'kube-proxy: KUBE-SVC-… with its own hash; own: with 16 hex digits instead, so that a reader sees who wrote them',
      )
        .choices(['kube-proxy', 'own'])
        .default('kube-proxy'),
    )
    .addOption(
      new Option('--variant <variant>', 'whose save format, and table order')
        .choices(['nf_tables', 'legacy'])
        .default('nf_tables'),
    )
    .option('--previous <ruleset>', 'rules the node holds now: chains no longer wanted are deleted')
    .action(async (options: IptablesOptions) => {
      await runIptables(io, options)
      end(0)
    })
}

async function runIptables(io: Io, options: IptablesOptions): Promise<void> {
  checkProxyOptions(options, options.family)
  const input = await readClusterInput(io, options, { command: 'iptables' })
  requireNode(input.cluster, options.node)
  const previous = options.previous === undefined ? undefined : await readRulesets(io, [options.previous])
  const previousChains = previous?.rulesets
    .filter((ruleset) => ruleset.family === options.family)
    .flatMap((ruleset) => [...(ruleset.tables.get('nat')?.chains.keys() ?? [])])
  const { value, findings } = nodeIptables(input.cluster, input.slices, {
    family: options.family,
    settings: settingsOf(options),
    chainNames: options.chainNames,
    ...(options.node === undefined ? {} : { node: options.node }),
    ...(previousChains === undefined ? {} : { previousChains }),
  })
  printFindings(io, [...input.findings, ...findings])
  for (const assumption of value.assumptions)
    io.out(`# Assumed by Portolan, not in the input: ${printAssumption(assumption)}\n`)
  if (options.format === 'restore') io.out(printRestore(value.sync.tables))
  else if (options.format === 'restore-full') io.out(printRestore(fullTables(value.sync)))
  else io.out(printSave(savedRuleset(value.sync, options.variant), { date: saveDate }))
}

/** Computed rules were saved at no time: the same input prints the same text. */
const saveDate = 'Thu Jan  1 00:00:00 1970'
