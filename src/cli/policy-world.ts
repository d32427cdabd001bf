/** What every policy command reads: the cluster, which semantics its policies have, and the world they make. */
import { type Command, Option } from 'commander'
import { Failure } from '#base/failure'
import type { Finding } from '#base/finding'
import { parseDnsCache } from '#compile/policy/cilium-dns-cache'
import type { CiliumOptions, EnforcementMode } from '#compile/policy/cilium-options'
import { type CiliumVersion, ciliumVersions } from '#model/cilium-version'
import type { Cluster } from '#model/cluster'
import { readText } from '#sources/read-text'
import { type CiliumSemantics, ciliumSemantics } from '#trace/policy/cilium-semantics'
import { kubernetesSemantics } from '#trace/policy/k8s-semantics'
import { type PolicyWorld, preparePolicies } from '#trace/policy/world'
import { noteSemantics } from '#verify/policy/note-semantics'
import type { Io } from './io'
import { type ClusterInput, readClusterInput } from './read-inputs'
import { ciliumAgents, ciliumPolicies, tiers } from './read-inputs-kinds'
import type { ObjectFlags, ObjectsWanted } from './read-inputs-objects'

export type PolicyWorldOptions = {
  readonly semantics: 'k8s' | 'cilium'
  readonly cilium?: CiliumVersion
  readonly enforcement?: EnforcementMode
  readonly dnsCache?: string
}

export function addPolicyWorldOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--semantics <which>', 'how policies are read: as Kubernetes defines them, or as Cilium does')
        .choices(['k8s', 'cilium'])
        .default('k8s'),
    )
    .addOption(new Option('--cilium <version>', 'the version of Cilium (default 1.18)').choices([...ciliumVersions]))
    .addOption(
      new Option('--enforcement <mode>', 'Cilium: enable-policy (default: cilium-config, else default)').choices([
        'default',
        'always',
        'never',
      ]),
    )
    .option(
      '--dns-cache <file>',
      'Cilium: names and their addresses, as cilium-dbg fqdn cache list -o json prints them',
    )
}

export type WorldInput = ClusterInput & { readonly world: PolicyWorld }

/** Policies of the other system decide nothing: they are told of. */
const others = {
  k8s: ciliumPolicies,
  cilium: tiers,
}

export async function readPolicyWorld(
  io: Io,
  options: PolicyWorldOptions & ObjectFlags,
  asked: Pick<ObjectsWanted, 'command' | 'beside'>,
): Promise<WorldInput> {
  checkSemantics(options)
  const without = options.semantics === 'k8s' ? [...ciliumAgents, 'ConfigMap/cilium-config'] : []
  const wanted = { ...asked, spared: others[options.semantics], without }
  const input = await readClusterInput(io, { ...options, slices: 'computed' }, wanted)
  const { cluster, findings } = input
  const semantics = await readSemantics(io, cluster, options)
  const own = 'findings' in semantics ? semantics.findings : []
  const told = [...findings.filter(isAboutPolicies), ...noteSemantics(cluster, options.semantics), ...own]
  return { ...input, world: preparePolicies(cluster, { semantics }), findings: told }
}

/** Policies need no Service, so that what Services lack is of no matter here, nor is whether pods are ready for them. */
function isAboutPolicies({ code }: Finding): boolean {
  return !/^(?:endpointslices|service)\.|^pod\.no-ready-condition$/.test(code)
}

function checkSemantics({ semantics, cilium, enforcement, dnsCache }: PolicyWorldOptions): void {
  if (semantics === 'cilium') return
  const given = { '--cilium': cilium, '--enforcement': enforcement, '--dns-cache': dnsCache }
  const [flag] = Object.entries(given).find(([, value]) => value !== undefined) ?? []
  if (flag === undefined) return
  throw new Failure('usage.bad-argument', `${flag} is about Cilium; add --semantics cilium, or leave it out`)
}

async function readSemantics(
  io: Io,
  cluster: Cluster,
  options: PolicyWorldOptions,
): Promise<typeof kubernetesSemantics | CiliumSemantics> {
  if (options.semantics === 'k8s') return kubernetesSemantics
  const { cilium: version, enforcement, dnsCache } = options
  const asked: CiliumOptions = {
    ...(version !== undefined && { version }),
    ...(enforcement !== undefined && { enforcement }),
    ...(dnsCache !== undefined && { dnsCache: await readDnsCache(io, dnsCache) }),
  }
  return ciliumSemantics(cluster, asked)
}

async function readDnsCache(io: Io, path: string): Promise<NonNullable<CiliumOptions['dnsCache']>> {
  const text = await readText(path, { stdin: io.stdin, say: (sentence) => io.err(`${sentence}\n`) })
  const name = path === '-' ? 'standard input' : path
  const parsed = parseDnsCache(parseJson(text, name))
  const [problem] = parsed.problems
  if (problem !== undefined) throw new Failure('input.unreadable', `${name}: ${problem}`)
  return parsed.cache
}

function parseJson(text: string, name: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new Failure(
      'input.unreadable',
      `${name} is no JSON; it should be the output of cilium-dbg fqdn cache list -o json`,
      error,
    )
  }
}
