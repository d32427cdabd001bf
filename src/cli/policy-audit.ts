/** `portolan policy audit`: recorded flows against policies, proposed or there, and which of them these would deny. */
import { type Command, Option } from 'commander'
import { Failure } from '#base/failure'
import { joinDirectories } from '#flows/directory'
import { directoryOfCluster } from '#flows/directory-of-cluster'
import { auditFlows, reportAudit, startAudit } from '#verify/policy/audit'
import { printAuditReport } from '#wire/audit-record'
import type { CommandContext, ExitCode } from './command'
import { addFlowSourceOptions, type FlowSourceFlags, openFlowSource } from './flow-source'
import type { Io } from './io'
import { addObjectOptions, asNamespace, asText, collect } from './options'
import { addPolicyWorldOptions, type PolicyWorldOptions, readPolicyWorld, type WorldInput } from './policy-world'
import { printAudit } from './print-audit'
import { printFindings } from './print-findings'
import { findCluster, meansCluster, type ObjectFlags, refuseBoth } from './read-inputs-objects'

type AuditFlags = FlowSourceFlags &
  PolicyWorldOptions &
  ObjectFlags & {
    readonly policies?: readonly string[]
    readonly namespace?: string
    readonly output: 'text' | 'json'
  }

export function addPolicyAudit(policy: Command, { io, end }: CommandContext): void {
  const command = policy
    .command('audit')
    .description('try policies on recorded flows: which would be denied, by which policy, with whom')
  addObjectOptions(addFlowSourceOptions(command))
    .addOption(
      new Option('--policies <path>', 'policies to try, beside those that --from has; may repeat').argParser(
        collect(asText),
      ),
    )
    .option('-n, --namespace <name>', 'of a broker: flows with an end in this namespace', asNamespace)
  addPolicyWorldOptions(command)
    .addOption(new Option('-o, --output <format>', 'output').choices(['text', 'json']).default('text'))
    .action(async (flags: AuditFlags) => {
      end(await runAudit(io, flags))
    })
}

/** Policies of files alone need no cluster; a cluster is asked where it is named, or where nothing else is. */
async function readWorld(io: Io, flags: AuditFlags): Promise<WorldInput> {
  refuseBoth(flags)
  const { from = [], policies = [] } = flags
  const paths = [...from, ...policies]
  const isFiles = paths.length > 0 && !meansCluster(flags)
  if (!isFiles && (await findCluster(flags)) === undefined) {
    throw new Failure(
      'usage.bad-argument',
      'say which policies to try: --policies FILE, --from FILE with some in it, or their cluster with --kubeconfig',
    )
  }
  const input = isFiles
    ? await readPolicyWorld(io, { ...flags, from: paths }, { command: 'policy audit' })
    : await readPolicyWorld(io, flags, { command: 'policy audit', beside: policies })
  if (input.world.policies.length > 0) return input
  const place = isFiles ? paths.join(', ') : ['the cluster', ...policies].join(', ')
  throw new Failure('usage.not-found', `there is no policy in ${place}; name a file that has one with --policies`)
}

async function runAudit(io: Io, flags: AuditFlags): Promise<ExitCode> {
  if (flags.namespace !== undefined && flags.flows !== undefined) {
    throw new Failure('usage.bad-argument', '--namespace is asked of a broker; leave it out with --flows')
  }
  const { world, cluster, findings } = await readWorld(io, flags)
  const { namespace, from = [], policies = [] } = flags
  const source = await openFlowSource(io, flags, {
    objects: [...from, ...policies],
    ...(namespace !== undefined && { namespace }),
  })
  const audit = startAudit(world, joinDirectories(directoryOfCluster(cluster), source.directory))
  const found = await source.read((flows) => auditFlows(audit, flows))
  const report = reportAudit(audit)
  // Which pods there may be today says nothing of the flows.
  printFindings(io, [...findings.filter(({ code }) => code !== 'workload.implied-pods'), ...found])
  io.out(flags.output === 'json' ? `${JSON.stringify(printAuditReport(report), undefined, 2)}\n` : printAudit(report))
  if (report.denied.flows > 0) return 1
  return report.all.flows > 0 && report.unknown.flows === report.all.flows ? 3 : 0
}
