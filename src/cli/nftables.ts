/** `portolan nftables`: the table kube-proxy writes on a node in nftables mode. */
import { type Command, Option } from 'commander'
import type { Layout } from '#compile/nftables/layout'
import { printJson } from '#compile/nftables/print-json'
import { printList } from '#compile/nftables/print-list'
import { printScript } from '#compile/nftables/print-script'
import { type Ruleset, rulesetOf } from '#compile/nftables/ruleset'
import { printAssumption } from '#compile/node/assumptions'
import { nodeNftables } from '#compile/node/node-nftables'
import type { CommandContext } from './command'
import type { Io } from './io'
import {
  addObjectOptions,
  addSharedProxyOptions,
  addSlicesOption,
  asCidrs,
  checkProxyOptions,
  type FromOptions,
  type ProxyOptions,
  settingsOf,
} from './options'
import { printFindings } from './print-findings'
import { readClusterInput, requireNode } from './read-inputs'

type NftablesOptions = FromOptions &
  ProxyOptions & {
    readonly layout: Layout
    readonly format: 'list' | 'json' | 'script'
    readonly serviceCidr?: readonly string[]
  }

export function addNftables(program: Command, { io, end }: CommandContext): void {
  const command = program.command('nftables').description('print the nftables table that kube-proxy writes on a node')
  addSharedProxyOptions(addSlicesOption(addObjectOptions(command)))
    .option('--service-cidr <cidr[,cidr]>', 'the ranges of the ServiceCIDR objects', asCidrs)
    .addOption(
      new Option('--layout <version>', 'as kube-proxy writes it since this version')
        .choices(['1.31', '1.34', '1.36'])
        .default('1.34'),
    )
    .addOption(
      new Option(
        '--format <format>',
        'list: as nft list table prints; json: as nft -j does; script: for nft -f, in place of the table that is there',
      )
        .choices(['list', 'json', 'script'])
        .default('list'),
    )
    .action(async (options: NftablesOptions) => {
      await runNftables(io, options)
      end(0)
    })
}

async function runNftables(io: Io, options: NftablesOptions): Promise<void> {
  checkProxyOptions(options, options.family)
  const input = await readClusterInput(io, options, { command: 'nftables' })
  requireNode(input.cluster, options.node)
  const { value, findings } = nodeNftables(input.cluster, input.slices, {
    family: options.family,
    settings: settingsOf(options),
    layout: options.layout,
    ...(options.node === undefined ? {} : { node: options.node }),
    ...(options.serviceCidr === undefined ? {} : { serviceCidrs: options.serviceCidr }),
  })
  printFindings(io, [...input.findings, ...findings])
  const tell = options.format === 'json' ? io.err : io.out
  for (const assumption of value.assumptions)
    tell(`# Assumed by Portolan, not in the input: ${printAssumption(assumption)}\n`)
  io.out(printRuleset(rulesetOf([value.table]), options.format))
}

function printRuleset(ruleset: Ruleset, format: NftablesOptions['format']): string {
  switch (format) {
    case 'list':
      return printList(ruleset)
    case 'json':
      return printJson(ruleset)
    case 'script':
      return printScript(ruleset)
    default:
      return format satisfies never
  }
}
