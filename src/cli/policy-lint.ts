/** `portolan policy lint`: what is suspicious about policies, each with its place and what to do. */
import { type Command, Option } from 'commander'
import { dump } from 'js-yaml'
import { type Finding, printFinding, type Severity } from '#base/finding'
import { countOf, listOf } from '#base/text'
import { lintTrafficPolicies } from '#compile/traffic-policy/lint-traffic-policies'
import type { Cluster } from '#model/cluster'
import { lintPolicies } from '#verify/policy/lint-policies'
import type { CommandContext, ExitCode } from './command'
import type { Io } from './io'
import { addObjectOptions } from './options'
import { addPolicyWorldOptions, type PolicyWorldOptions, readPolicyWorld } from './policy-world'
import { printFindings } from './print-findings'
import type { ObjectFlags } from './read-inputs-objects'

type LintOptions = PolicyWorldOptions &
  ObjectFlags & {
    readonly output: 'text' | 'json' | 'yaml'
  }

export function addPolicyLint(policy: Command, { io, end }: CommandContext): void {
  const command = policy
    .command('lint')
    .description('look for mistakes in policies; exit code 1 where an error or a warning is found')
  addPolicyWorldOptions(addObjectOptions(command))
    .addOption(new Option('-o, --output <format>', 'output').choices(['text', 'json', 'yaml']).default('text'))
    .action(async (options: LintOptions) => {
      end(await runLint(io, options))
    })
}

const rank: Readonly<Record<Severity, number>> = { error: 0, warning: 1, info: 2 }

async function runLint(io: Io, options: LintOptions): Promise<ExitCode> {
  const { world, cluster, findings } = await readPolicyWorld(io, options, { command: 'policy lint' })
  const isPolicies = (finding: Finding): boolean => isAboutPolicies(finding)
  // What the reading found of policies is what lint is for, too.
  const found = [...findings.filter(isPolicies), ...lintPolicies(world), ...lintTrafficPolicies(cluster)].sort(
    (a, b) => rank[a.severity] - rank[b.severity],
  )
  printFindings(
    io,
    findings.filter((finding) => !isPolicies(finding)),
  )
  if (options.output === 'json') io.out(`${JSON.stringify(found, undefined, 2)}\n`)
  else if (options.output === 'yaml') io.out(dump(found, { noRefs: true, lineWidth: 120 }))
  else io.out(printText(found, countPolicies(cluster, options.semantics)))
  return found.some(({ severity }) => severity !== 'info') ? 1 : 0
}

const policyKinds = /Policy$|^CiliumCIDRGroup$|^TrafficPolicyBinding$|^Edge|^VPCAttachment$/

function isAboutPolicies({ code, object }: Finding): boolean {
  return code.startsWith('policy.') || (object !== undefined && policyKinds.test(object.kind))
}

/** Those that the semantics know; traffic policies are no matter of theirs. */
function countPolicies(cluster: Cluster, semantics: PolicyWorldOptions['semantics']): number {
  const { networkPolicies, tierPolicies, ciliumPolicies, trafficPolicies } = cluster
  const others = semantics === 'k8s' ? tierPolicies : ciliumPolicies
  return networkPolicies.size + others.size + trafficPolicies.size
}

function printText(found: readonly Finding[], total: number): string {
  const counts = (['error', 'warning', 'info'] as const).flatMap((severity) => {
    const count = found.filter((one) => one.severity === severity).length
    return count === 0 ? [] : [severity === 'info' ? countOf(count, 'note') : countOf(count, severity)]
  })
  const summary = `${countOf(total, 'policy that counts', 'policies that count')}: ${counts.length === 0 ? 'nothing found' : listOf(counts)}\n`
  return `${found.map((finding) => `${printFinding(finding)}\n`).join('')}${summary}`
}
