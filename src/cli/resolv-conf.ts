/** `portolan resolv-conf`: the resolv.conf that the kubelet writes for a pod. */
import { type Command, Option } from 'commander'
import { dump } from 'js-yaml'
import { Failure } from '#base/failure'
import { usualClusterDomain } from '#compile/dns/cluster-domain'
import { printResolvConf } from '#compile/dns/resolv-conf'
import { emptyCluster } from '#model/cluster'
import type { CommandContext } from './command'
import type { Io } from './io'
import { addObjectOptions, type FromOptions } from './options'
import { addPodDnsOptions, asDomain, formAsker, type PodDnsOptions, readNodeResolvConf } from './pod-dns'
import { printFindings } from './print-findings'
import { type ClusterInput, readClusterInput } from './read-inputs'
import { findCluster, meansCluster } from './read-inputs-objects'

type ResolvConfOptions = Partial<FromOptions> &
  PodDnsOptions & { readonly zone?: string; readonly output: 'text' | 'wide' | 'json' | 'yaml' }

export function addResolvConf(program: Command, { io, end }: CommandContext): void {
  const command = program
    .command('resolv-conf')
    .description('print the resolv.conf that the kubelet writes for a pod, by its dnsPolicy and dnsConfig')
  addPodDnsOptions(addObjectOptions(command))
    .option('--zone <domain>', 'another name of --cluster-domain', asDomain)
    .addOption(new Option('-o, --output <format>', 'output').choices(['text', 'wide', 'json', 'yaml']).default('text'))
    .action(async (options: ResolvConfOptions) => {
      await runResolvConf(io, options)
      end(0)
    })
}

/** Objects tell the pod and the Service kube-dns: who names neither pod nor objects, and a nameserver, needs none. */
async function readInput(io: Io, options: ResolvConfOptions): Promise<ClusterInput | undefined> {
  const flags = { ...options, slices: 'input' } as const
  const wanted = { command: 'resolv-conf', without: options.pod === undefined ? ['Pod'] : [] } as const
  if (options.from !== undefined || meansCluster(options)) return readClusterInput(io, flags, wanted)
  const needsNone =
    options.pod === undefined && (options.nameserver !== undefined || options.nodeResolvConf !== undefined)
  if (needsNone) return undefined
  if ((await findCluster(options)) !== undefined) return readClusterInput(io, flags, wanted)
  if (options.pod === undefined) return undefined
  throw new Failure(
    'usage.bad-argument',
    `--pod ${options.pod} needs the pod's object: add --from with a file or folder, or name a cluster with --kubeconfig`,
  )
}

async function runResolvConf(io: Io, options: ResolvConfOptions): Promise<void> {
  const input = await readInput(io, options)
  const asker = formAsker(
    { ...options, ...(input !== undefined && { namespace: options.namespace ?? input.namespace }) },
    {
      cluster: input?.cluster ?? emptyCluster,
      clusterDomain: options.clusterDomain ?? options.zone ?? usualClusterDomain,
      node: await readNodeResolvConf(io, options),
      assumesDns: false,
    },
  )
  const isDnsMissing = asker.findings.some(({ code }) => code === 'dns.missing-cluster-dns')
  if (isDnsMissing && options.nodeResolvConf === undefined) {
    throw new Failure(
      'usage.bad-argument',
      'no nameserver is known: say the kubelets’ clusterDNS with --nameserver, or give the Service kube-dns with --from, or its cluster with --kubeconfig',
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
