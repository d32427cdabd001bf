/** What `portolan path` is told of nodes that run kube-proxy: its settings, and real rules in place of computed ones. */
import { type Command, Option } from 'commander'
import { Failure } from '#base/failure'
import type { Finding } from '#base/finding'
import type { Layout } from '#compile/nftables/layout'
import type { ProxySettings } from '#compile/services/proxy-settings'
import type { Cluster } from '#model/cluster'
import type { GivenRules } from '#trace/journey/journey-world'
import { filesByNode } from './files-by-node'
import type { Io } from './io'
import { asCidrs, asText, collect } from './options'
import { readRulesets } from './read-inputs'

export type JourneyOptions = {
  readonly clusterCidr?: readonly string[]
  readonly serviceCidr?: readonly string[]
  readonly masqueradeAll?: boolean
  readonly layout?: Layout
  readonly ruleset?: readonly string[]
}

/** What `path` is told of kube-proxy. */
export type KubeProxyAsked = {
  readonly settings: Partial<ProxySettings>
  readonly layout?: Layout
  readonly serviceCidrs?: readonly string[]
  readonly rulesets: ReadonlyMap<string, GivenRules>
  readonly findings: readonly Finding[]
}

export function addJourneyOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        '-r, --ruleset <[node=]file>',
        'kube-proxy: rules of a node in place of the computed ones: iptables-save or nft list ruleset; may repeat',
      ).argParser(collect(asText)),
    )
    .option('--cluster-cidr <cidr[,cidr]>', 'kube-proxy: the range of pod addresses', asCidrs)
    .option('--service-cidr <cidr[,cidr]>', 'kube-proxy, nftables: the ranges of cluster IPs', asCidrs)
    .option('--masquerade-all', 'kube-proxy: masquerade all traffic to ClusterIPs')
    .addOption(
      new Option('--layout <version>', 'kube-proxy, nftables: as it writes rules since this version').choices([
        '1.31',
        '1.34',
        '1.36',
      ]),
    )
}

export async function readKubeProxy(io: Io, cluster: Cluster, options: JourneyOptions): Promise<KubeProxyAsked> {
  const { clusterCidr, serviceCidr, masqueradeAll, layout, ruleset = [] } = options
  const rulesets = new Map<string, GivenRules>()
  const findings: Finding[] = []
  for (const [node, files] of filesByNode(cluster, ruleset, { flag: '--ruleset' })) {
    if (node === '')
      throw new Failure('usage.bad-argument', `--ruleset ${files[0] ?? ''} is of no node; write NODE=FILE`)
    const { findings: told, ...rules } = await readRulesets(io, files)
    rulesets.set(node, rules)
    findings.push(...told)
  }
  return {
    settings: {
      ...(clusterCidr !== undefined && { detectLocal: { kind: 'ClusterCIDR', cidrs: clusterCidr } }),
      ...(masqueradeAll === true && { masqueradeAll }),
    },
    ...(serviceCidr !== undefined && { serviceCidrs: serviceCidr }),
    ...(layout !== undefined && { layout }),
    rulesets,
    findings,
  }
}
