/** `portolan dns`: what a name is in a cluster, every question on the way, and the same zone served to real clients. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { dump } from 'js-yaml'
import { Failure } from '#base/failure'
import type { Finding } from '#base/finding'
import { canonicalIp, explainBadIp } from '#base/ip'
import { buildDnsServer, type DnsServer } from '#compile/dns/build-dns-server'
import { chooseClusterDomain, usualClusterDomain } from '#compile/dns/cluster-domain'
import { explainBadName, reverseName } from '#compile/dns/domain-name'
import { noteResolver } from '#compile/dns/note-resolver'
import { printResolution } from '#compile/dns/print-resolution'
import { resolutionJson } from '#compile/dns/print-resolution-json'
import { type ClusterResolution, type Outcome, resolveInCluster } from '#compile/dns/resolve-in-cluster'
import type { Libc } from '#compile/dns/resolver-settings'
import { isServiceName, suggestNames } from '#compile/dns/suggest-names'
import type { CommandContext, ExitCode } from './command'
import type { Io } from './io'
import { addObjectOptions, addSlicesOption, type FromOptions } from './options'
import { type Asker, addPodDnsOptions, formAsker, type PodDnsOptions, readNodeResolvConf } from './pod-dns'
import { printFindings } from './print-findings'
import { type ClusterInput, readClusterInput } from './read-inputs'
import { listenAddress, serveCluster } from './serve-cluster'

type DnsOptions = FromOptions &
  PodDnsOptions & {
    readonly type?: string
    readonly libc: Libc
    readonly serve?: string
    readonly output: 'text' | 'wide' | 'json' | 'yaml'
  }

export function addDns(program: Command, { io, end }: CommandContext): void {
  const command = program
    .command('dns')
    .description('resolve a name as a pod would: every question in order, the answers, the cost; or serve the zone')
    .argument('[NAME]', 'the name as a program has it; an address with --type PTR')
  addPodDnsOptions(addSlicesOption(addObjectOptions(command)))
    .option('--type <type>', 'ask for one type alone, such as A, SRV or PTR (default: A and AAAA together)', asType)
    .addOption(new Option('--libc <libc>', 'the C library of the program').choices(['glibc', 'musl']).default('glibc'))
    .option('--serve <ip[:port]>', 'answer DNS questions over UDP and TCP until interrupted')
    .addOption(new Option('-o, --output <format>', 'output').choices(['text', 'wide', 'json', 'yaml']).default('text'))
    .action(async (name: string | undefined, options: DnsOptions) => {
      end(await runDns(io, name, options))
    })
}

const types = ['A', 'AAAA', 'CNAME', 'MX', 'NS', 'PTR', 'SOA', 'SRV', 'TXT', 'HTTPS', 'SVCB']

function asType(text: string): string {
  const type = text.toUpperCase()
  if (types.includes(type)) return type
  throw new InvalidArgumentError(`"${text}" is none of ${types.join(', ')}.`)
}

/** What the input says of the cluster's DNS and of the pod that asks. */
type Scene = {
  readonly input: ClusterInput
  readonly server: DnsServer
  readonly asker: Asker
  readonly clusterDomain: string
  readonly findings: readonly Finding[]
}

async function runDns(io: Io, name: string | undefined, options: DnsOptions): Promise<ExitCode> {
  if (name === undefined && options.serve === undefined) {
    throw new Failure('usage.bad-argument', 'say which name to resolve, or serve the zone with --serve 127.0.0.1:5353')
  }
  const asked = name === undefined ? undefined : nameOf(name, options.type)
  const listen = options.serve === undefined ? undefined : listenAddress(options.serve)
  const scene = await readScene(io, options)
  const code = asked === undefined ? tell(io, scene.findings) : resolve(io, asked, { options, scene })
  if (listen === undefined) return code
  return serveCluster(io, listen, {
    ...scene,
    cluster: scene.input.cluster,
    isPodGiven: options.pod !== undefined,
  })
}

function tell(io: Io, findings: readonly Finding[]): ExitCode {
  printFindings(io, findings)
  return 0
}

/** An address stands for its reverse name when PTR is asked, and for nothing else. */
function nameOf(name: string, type: string | undefined): string {
  const refuse = (sentence: string): Failure => new Failure('usage.bad-argument', sentence)
  const address = canonicalIp(name)
  if (address !== undefined && type === 'PTR') return reverseName(address)
  if (address !== undefined)
    throw refuse(`${name} is an address, which needs no question; its name is asked with --type PTR`)
  const looksLikeAddress = /^[\d.]+$|^[\da-f]*:[\da-f.]*:[\da-f.:]*(?:[%/].*)?$/i.test(name)
  if (looksLikeAddress) throw refuse(explainBadIp(name))
  const host = /^(?:[a-z][a-z0-9+.-]*:\/\/)?([^/:]+)(?::\d*)?(?:\/.*)?$/i.exec(name)?.[1]
  if (/[:/]/.test(name)) throw refuse(`"${name}" is more than a name${host === undefined ? '' : `; write ${host}`}`)
  const problem = explainBadName(name)
  if (problem !== undefined) throw refuse(`${problem}; write a name such as web.shop`)
  return name
}

async function readScene(io: Io, options: DnsOptions): Promise<Scene> {
  const input = await readClusterInput(io, options, { command: 'dns' })
  const node = await readNodeResolvConf(io, options)
  const { value: server, findings } = buildDnsServer({
    cluster: input.cluster,
    slices: input.slices,
    clusterDomain: options.clusterDomain ?? usualClusterDomain,
    nodeSearch: node.conf.searches,
  })
  const domain = chooseClusterDomain(options.clusterDomain, server.clusterZones)
  const asker = formAsker(
    { ...options, namespace: options.namespace ?? input.namespace },
    {
      cluster: input.cluster,
      clusterDomain: domain.value,
      node,
      assumesDns: true,
    },
  )
  return {
    input,
    server,
    asker,
    clusterDomain: domain.value,
    findings: [...input.findings, ...findings, ...domain.findings, ...asker.findings],
  }
}

type Setting = { readonly options: DnsOptions; readonly scene: Scene }

function resolve(io: Io, name: string, { options, scene }: Setting): ExitCode {
  const { asker, server, clusterDomain } = scene
  const resolution = resolveInCluster(server, {
    name,
    libc: options.libc,
    conf: asker.formed.conf,
    source: asker.formed.source,
    client: asker.client,
    hosts: asker.hosts,
    clusterDns: asker.clusterDns,
    clusterDomain,
    isService: (other) => isServiceName(other, scene.input.cluster),
    ...(options.type !== undefined && { type: options.type }),
  })
  const { hints, findings } = suggestNames(resolution, scene.input.cluster)
  printFindings(io, [...scene.findings, ...noteResolver(resolution), ...findings])
  // Nobody wants a mistaken name to cost less.
  print(io, findings.length > 0 ? { ...resolution, advice: [] } : resolution, { options, asker, hints })
  return codes[resolution.outcome]
}

const codes = {
  resolved: 0,
  forwarded: 0,
  'not-found': 1,
  failed: 1,
  unknown: 3,
} as const satisfies Readonly<Record<Outcome, ExitCode>>

type Printing = { readonly options: DnsOptions; readonly asker: Asker; readonly hints: readonly string[] }

function print(io: Io, resolution: ClusterResolution, { options, asker, hints }: Printing): void {
  if (options.output === 'json') io.out(`${JSON.stringify(resolutionJson(resolution, hints), undefined, 2)}\n`)
  else if (options.output === 'yaml') io.out(dump(resolutionJson(resolution, hints), { lineWidth: 120 }))
  else io.out(printResolution(resolution, { who: asker.who, policy: asker.policy, hints }))
}
