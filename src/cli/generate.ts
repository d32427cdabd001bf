/** `portolan generate`: least-privilege policies from recorded flows, proven on the flows before a word of them is printed. */
import { type Command, Option } from 'commander'
import { Failure } from '#base/failure'
import type { Finding } from '#base/finding'
import { countOf, listOf } from '#base/text'
import { type Directory, emptyDirectory, joinDirectories } from '#flows/directory'
import { directoryOfCluster } from '#flows/directory-of-cluster'
import type { TargetChoice } from '#generate/choose-targets'
import { gatherFlows, startGathering } from '#generate/gather-flows'
import { type Generated, generatePolicies, type PolicyKind } from '#generate/generate-policies'
import type { CommandContext, ExitCode } from './command'
import { addFlowSourceOptions, type FlowSourceFlags, openFlowSource } from './flow-source'
import type { Io } from './io'
import { kindOf } from './kind-words'
import { addObjectOptions, asNamespace } from './options'
import { printFindings } from './print-findings'
import { readClusterInput } from './read-inputs'
import { meansCluster, type ObjectFlags } from './read-inputs-objects'
import { writePolicies } from './write-policies'

type GenerateFlags = FlowSourceFlags &
  ObjectFlags & {
    readonly namespace?: string
    readonly allNamespaces?: true
    readonly outputDir?: string
    readonly force?: true
    readonly allowDns?: true
  }

const kinds: Readonly<Record<PolicyKind, string>> = {
  networkpolicy: 'NetworkPolicies, which any network plugin applies',
  ciliumnetworkpolicy: 'CiliumNetworkPolicies',
}

export function addGenerate(program: Command, context: CommandContext): void {
  const generate = program
    .command('generate')
    .description('policies that allow what was recorded and nothing else, one for each workload')
  for (const [kind, what] of Object.entries(kinds) as [PolicyKind, string][]) addKind(generate, context, { kind, what })
}

function addKind(
  generate: Command,
  { io, end }: CommandContext,
  { kind, what }: { readonly kind: PolicyKind; readonly what: string },
): void {
  const command = generate
    .command(kind)
    .description(`${what}, proven on the flows that they come from`)
    .argument('[NS/WORKLOAD]', 'one workload: NS/NAME, NS/KIND/NAME, or NAME with --namespace')
    .option('-n, --namespace <name>', 'every workload of a namespace', asNamespace)
    .option('-A, --all-namespaces', 'every workload')
  addObjectOptions(addFlowSourceOptions(command))
    .addOption(new Option('--output-dir <folder>', 'a file for each policy, instead of standard output'))
    .option('--force', 'replace files that are there')
    .option('--allow-dns', 'let every workload ask the cluster’s DNS, seen or not')
    .action(async (workload: string | undefined, flags: GenerateFlags) => {
      end(await runGenerate(io, kind, { workload, flags }))
    })
}

type Asked = { readonly workload: string | undefined; readonly flags: GenerateFlags }

async function runGenerate(io: Io, kind: PolicyKind, { workload, flags }: Asked): Promise<ExitCode> {
  const choice = choiceOf(workload, flags)
  const source = await openFlowSource(io, flags, {
    objects: flags.from ?? [],
    isAddedUp: true,
    ...(choice.namespace !== undefined && { namespace: choice.namespace }),
  })
  const objects = await readDirectory(io, flags)
  const gathering = startGathering(joinDirectories(objects.directory, source.directory))
  const found = await source.read((flows) => gatherFlows(gathering, flows))
  const generated = generatePolicies(gathering, { kind, choice, allowsDns: flags.allowDns === true })
  printFindings(io, [...objects.findings, ...found, ...generated.findings])
  if (generated.proof.faults.length > 0) return tellFaults(io, generated)
  refuseNone(choice, generated)
  if (flags.outputDir === undefined) io.out(generated.policies.map(({ text }) => text).join('---\n'))
  else {
    writePolicies(flags.outputDir, generated.policies, flags.force === true)
    for (const { fileName } of generated.policies) io.out(`${flags.outputDir}/${fileName}\n`)
  }
  io.err(`${summaryOf(generated)}\n`)
  return 0
}

function choiceOf(workload: string | undefined, { namespace, allNamespaces }: GenerateFlags): TargetChoice {
  const usage = (sentence: string): Failure => new Failure('usage.bad-argument', sentence)
  if (allNamespaces === true && (workload !== undefined || namespace !== undefined)) {
    throw usage('--all-namespaces is every workload; leave it out, or NS/WORKLOAD and --namespace')
  }
  if (workload === undefined) {
    if (namespace === undefined && allNamespaces !== true) throw usage('say of what: NS/WORKLOAD, -n NS or -A')
    return namespace === undefined ? {} : { namespace }
  }
  const parts = workload.split('/')
  if (parts.length > 3 || parts.includes('')) throw usage(`"${workload}" is not NS/NAME, NS/KIND/NAME or NAME`)
  const [name = '', kind, own] = orderOf(parts, namespace)
  if (own !== undefined && namespace !== undefined && own !== namespace) {
    throw usage(`${workload} is in namespace ${own} and --namespace says ${namespace}; leave one of them out`)
  }
  if (kind === 'Service') throw usage(`${workload} is a Service, and policies are of pods; name the workload behind it`)
  const place = own ?? namespace
  if (place === undefined) throw usage(`say in which namespace ${workload} is: NS/${workload}, or --namespace NS`)
  return { namespace: place, name, ...(kind !== undefined && { kind }) }
}

/** Name, kind and namespace. With a namespace of its own, `deploy/web` is a kind and a name, as for kubectl. */
function orderOf(parts: readonly string[], namespace: string | undefined): readonly (string | undefined)[] {
  const [first = '', second, third] = parts
  // A kind that is not known here may be one of an operator, such as Rollout.
  if (third !== undefined) return [third, kindOf(second ?? '') ?? second, first]
  if (second === undefined) return [first]
  const kind = namespace === undefined || namespace === first ? undefined : kindOf(first)
  return kind === undefined ? [second, undefined, first] : [second, kind]
}

/** Flows say who was at their ends, so that objects are asked for where they are named alone. */
async function readDirectory(
  io: Io,
  flags: GenerateFlags,
): Promise<{ readonly directory: Directory; readonly findings: readonly Finding[] }> {
  if (flags.from === undefined && !meansCluster(flags)) return { directory: emptyDirectory, findings: [] }
  const { cluster, findings } = await readClusterInput(io, { ...flags, slices: 'input' }, { command: 'generate' })
  return { directory: directoryOfCluster(cluster), findings: findings.filter(({ severity }) => severity === 'error') }
}

function refuseNone({ namespace, kind, name }: TargetChoice, { policies, known, findings }: Generated): void {
  if (policies.length > 0) return
  const asked = [namespace, kind, name].filter((part) => part !== undefined).join('/')
  const told = findings.filter(({ code }) => code === 'generate.no-labels' || code === 'generate.bad-name')
  if (told.length > 0) {
    const next = told.find(({ hint }) => hint !== undefined)?.hint ?? 'give the pods a label that stays'
    throw new Failure('usage.not-found', `no policy can be made, for what is told above; ${next}`)
  }
  const near = known.filter((one) => namespace === undefined || one.startsWith(`${namespace}/`))
  const names = near.length > 0 ? near : known
  const heard =
    names.length === 0
      ? 'the flows name no workload; give others, or a longer time'
      : `there are ${listOf(names)}; name one of them`
  const whom =
    name === undefined
      ? `at no workload${asked === '' ? '' : ` of namespace ${asked}`} was a flow recorded`
      : `nobody has heard of ${asked}`
  throw new Failure('usage.not-found', `${whom}: ${heard}`)
}

/** Nothing is written: a policy that would deny what it was made of is worse than none. */
function tellFaults(io: Io, { proof }: Generated): ExitCode {
  io.err(
    'portolan: this is a bug of Portolan: the policies do not hold on the flows that they come from, and none is written\n',
  )
  for (const fault of proof.faults) io.err(`  ${fault}\n`)
  io.err('Please report it with these lines, and the rows of the flows that they name.\n')
  return 4
}

function summaryOf({ policies, proof }: Generated): string {
  const { connections, allowed, unknown } = proof
  const open =
    unknown === 0 ? '' : `, of ${unknown} that cannot be told (labels, ports or endpoints that are not known)`
  return `${countOf(policies.length, 'policy', 'policies')}, proven: of ${countOf(connections, 'connection')} that ${connections === 1 ? 'was' : 'were'} seen ${allowed} allowed, none denied${open}`
}
