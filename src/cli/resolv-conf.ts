/** `portolan resolv-conf`: the resolv.conf that the kubelet writes for a pod. */
import { type Command, Option } from 'commander'
import { dump } from 'js-yaml'
import { Failure } from '#base/failure'
import { usualClusterDomain } from '#compile/dns/cluster-domain'
import { printResolvConf } from '#compile/dns/resolv-conf'
import { emptyCluster } from '#model/cluster'
import type { CommandContext } from './command'
import type { Io } from './io'
import { addFromOption, type FromOptions } from './options'
import { addPodDnsOptions, asDomain, formAsker, type PodDnsOptions, readNodeResolvConf } from './pod-dns'
import { printFindings } from './print-findings'
import { readClusterInput } from './read-inputs'

type ResolvConfOptions = Partial<FromOptions> &
  PodDnsOptions & { readonly zone?: string; readonly output: 'text' | 'wide' | 'json' | 'yaml' }

export function addResolvConf(program: Command, { io, end }: CommandContext): void {
  const command = program
    .command('resolv-conf')
    .description('print the resolv.conf that the kubelet writes for a pod, by its dnsPolicy and dnsConfig')
  addPodDnsOptions(addFromOption(command))
    .option('--zone <domain>', 'another name of --cluster-domain', asDomain)
    .addOption(new Option('-o, --output <format>', 'output').choices(['text', 'wide', 'json', 'yaml']).default('text'))
    .action(async (options: ResolvConfOptions) => {
      await runResolvConf(io, options)
      end(0)
    })
}

async function runResolvConf(io: Io, options: ResolvConfOptions): Promise<void> {
  if (options.pod !== undefined && options.from === undefined) {
    throw new Failure(
      'usage.bad-argument',
      `--pod ${options.pod} needs the pod's object: add --from with a file or folder`,
    )
  }
  const { from } = options
  const input = from === undefined ? undefined : await readClusterInput(io, { from, slices: 'input' })
  const asker = formAsker(options, {
    cluster: input?.cluster ?? emptyCluster,
    clusterDomain: options.clusterDomain ?? options.zone ?? usualClusterDomain,
    node: await readNodeResolvConf(io, options),
    assumesDns: false,
  })
  const isDnsMissing = asker.findings.some(({ code }) => code === 'dns.missing-cluster-dns')
  if (isDnsMissing && options.nodeResolvConf === undefined) {
    throw new Failure(
      'usage.bad-argument',
      'no nameserver is known: say the kubelets’ clusterDNS with --nameserver, or give the Service kube-dns with --from',
    )
  }
  const { conf, source } = asker.formed
  if (source === 'node' && options.nodeResolvConf === undefined) {
    throw new Failure(
      'usage.bad-argument',
      `${asker.who} gets its node’s own resolv.conf (${asker.policy}): name that file with --node-resolv-conf`,
    )
  }
  // What the input lacks of endpoints is of no matter here.
  const read = (input?.findings ?? []).filter(({ code }) => !code.startsWith('endpointslices.'))
  printFindings(io, [...read, ...asker.findings])
  if (options.output === 'json') io.out(`${JSON.stringify(conf, undefined, 2)}\n`)
  else if (options.output === 'yaml') io.out(dump(conf))
  else io.out(printResolvConf(conf))
}
