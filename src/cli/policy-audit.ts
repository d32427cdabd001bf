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
import { addFromOption, asNamespace, asText, collect } from './options'
import { addPolicyWorldOptions, type PolicyWorldOptions, readPolicyWorld } from './policy-world'
import { printAudit } from './print-audit'
import { printFindings } from './print-findings'

type AuditFlags = FlowSourceFlags &
  PolicyWorldOptions & {
    readonly from?: readonly string[]
    readonly policies?: readonly string[]
    readonly namespace?: string
    readonly output: 'text' | 'json'
  }

export function addPolicyAudit(policy: Command, { io, end }: CommandContext): void {
  const command = policy
    .command('audit')
    .description('try policies on recorded flows: which would be denied, by which policy, with whom')
  addFromOption(addFlowSourceOptions(command))
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

async function runAudit(io: Io, flags: AuditFlags): Promise<ExitCode> {
  const paths = [...(flags.from ?? []), ...(flags.policies ?? [])]
  if (paths.length === 0) {
    throw new Failure(
      'usage.bad-argument',
      'say which policies to try: --policies FILE, or --from FILE with some in it',
    )
  }
  if (flags.namespace !== undefined && flags.flows !== undefined) {
    throw new Failure('usage.bad-argument', '--namespace is asked of a broker; leave it out with --flows')
  }
  const { world, cluster, findings } = await readPolicyWorld(io, paths, flags)
  if (world.policies.length === 0) {
    throw new Failure(
      'usage.not-found',
      `there is no policy in ${paths.join(', ')}; name a file that has one with --policies`,
    )
  }
  const { namespace } = flags
  const source = await openFlowSource(io, flags, { objects: paths, ...(namespace !== undefined && { namespace }) })
  const audit = startAudit(world, joinDirectories(directoryOfCluster(cluster), source.directory))
  const found = await source.read((flows) => auditFlows(audit, flows))
  const report = reportAudit(audit)
  // Which pods there may be today says nothing of the flows.
  printFindings(io, [...findings.filter(({ code }) => code !== 'workload.implied-pods'), ...found])
  io.out(flags.output === 'json' ? `${JSON.stringify(printAuditReport(report), undefined, 2)}\n` : printAudit(report))
  if (report.denied.flows > 0) return 1
  return report.all.flows > 0 && report.unknown.flows === report.all.flows ? 3 : 0
}
