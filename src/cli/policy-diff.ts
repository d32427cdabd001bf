/** `portolan policy diff`: the connections that two inputs allow differently. */
import { type Command, Option } from 'commander'
import { dump } from 'js-yaml'
import { Failure } from '#base/failure'
import { type Finding, printFinding } from '#base/finding'
import type { ClusterOptions } from '#sources/cluster-config'
import { buildMatrix } from '#verify/policy/build-matrix'
import { diffMatrices, type MatrixChange } from '#verify/policy/diff-matrices'
import type { Matrix } from '#verify/policy/matrix'
import { noteEmptySide } from '#verify/policy/note-empty-side'
import { printDiffCsv, printDiffMarkdown, printDiffText } from '#verify/policy/print-matrix'
import type { CommandContext, ExitCode } from './command'
import type { Io } from './io'
import { addPolicyWorldOptions, type PolicyWorldOptions, readPolicyWorld } from './policy-world'
import { printFindings } from './print-findings'
import { meansCluster, type ObjectFlags } from './read-inputs-objects'

type DiffOptions = PolicyWorldOptions &
  ClusterOptions & {
    readonly services?: boolean
    readonly ipv6?: boolean
    readonly output: 'text' | 'json' | 'yaml' | 'csv' | 'md'
  }

export function addPolicyDiff(policy: Command, { io, end }: CommandContext): void {
  const command = policy
    .command('diff')
    .description('compare the matrices of two inputs: connections added (+), removed (-) and changed (~)')
    .argument('<F1>', 'the objects before: a file, a folder, - for standard input, or cluster[:CONTEXT] for a live one')
    .argument('<F2>', 'the objects after')
  addPolicyWorldOptions(command)
    .option('--kubeconfig <file>', 'of cluster: the kubeconfig (default: as kubectl finds it)')
    .option('--context <name>', 'of cluster: the context (default: the current one)')
    .option('--services', 'Services as targets too')
    .option('--ipv6', 'ranges of IPv6 addresses too')
    .addOption(
      new Option('-o, --output <format>', 'output').choices(['text', 'json', 'yaml', 'csv', 'md']).default('text'),
    )
    .action(async (before: string, after: string, options: DiffOptions) => {
      end(await runDiff(io, [before, after], options))
    })
}

async function runDiff(io: Io, [before, after]: readonly [string, string], options: DiffOptions): Promise<ExitCode> {
  if (before === '-' && after === '-') {
    throw new Failure('usage.bad-argument', 'standard input (-) is named twice, but can be read once; name it once')
  }
  if (meansCluster(options) && ![before, after].some((one) => /^cluster(?::|$)/.test(one))) {
    throw new Failure(
      'usage.bad-argument',
      '--kubeconfig and --context are of a live cluster; name it as F1 or F2: cluster',
    )
  }
  const findings: Finding[] = []
  const read = async (path: string): Promise<Matrix> => {
    const input = await readPolicyWorld(io, sideOf(path, options), { command: 'policy diff' })
    findings.push(...input.findings)
    return buildMatrix(input.world, {
      ipv6: options.ipv6 === true,
      ...(options.services === true && { slices: input.slices }),
    })
  }
  const sides = { before: await read(before), after: await read(after) }
  findings.push(...noteEmptySide({ file: before, matrix: sides.before }, { file: after, matrix: sides.after }))
  const changes = diffMatrices(sides.before, sides.after)
  printFindings(io, withoutTwins(findings))
  io.out(print(changes, options.output))
  return changes.length === 0 ? 0 : 1
}

/** What both inputs lack is told once. */
function withoutTwins(findings: readonly Finding[]): readonly Finding[] {
  return [...new Map(findings.map((finding) => [printFinding(finding), finding])).values()]
}

/** A file of that name is written `./cluster`. */
function sideOf(path: string, { kubeconfig, context, ...options }: DiffOptions): PolicyWorldOptions & ObjectFlags {
  const [, own] = /^cluster(?::(.+))?$/.exec(path) ?? []
  if (path !== 'cluster' && own === undefined) return { ...options, from: [path] }
  const chosen = own ?? context
  return {
    ...options,
    ...(kubeconfig !== undefined && { kubeconfig }),
    ...(chosen !== undefined && { context: chosen }),
  }
}

function print(changes: readonly MatrixChange[], output: DiffOptions['output']): string {
  switch (output) {
    case 'text':
      return changes.length === 0 ? 'no connection differs\n' : printDiffText(changes)
    case 'json':
      return `${JSON.stringify(changes, undefined, 2)}\n`
    case 'yaml':
      return dump(changes, { lineWidth: 120 })
    case 'csv':
      return printDiffCsv(changes)
    case 'md':
      return printDiffMarkdown(changes)
    default:
      return output satisfies never
  }
}
