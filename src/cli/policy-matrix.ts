/** `portolan policy matrix`: every pair of workloads, and the outside, with the connections that policies leave them. */
import { type Command, Option } from 'commander'
import { dump } from 'js-yaml'
import { Failure } from '#base/failure'
import { compareText, listOf } from '#base/text'
import { buildMatrix } from '#verify/policy/build-matrix'
import { explainRow } from '#verify/policy/explain-row'
import type { Matrix, MatrixEnd, MatrixRow } from '#verify/policy/matrix'
import {
  plainRows,
  printMatrixCsv,
  printMatrixDot,
  printMatrixMarkdown,
  printMatrixText,
  printRow,
} from '#verify/policy/print-matrix'
import type { CommandContext } from './command'
import type { Io } from './io'
import { addObjectOptions } from './options'
import { addPolicyWorldOptions, type PolicyWorldOptions, readPolicyWorld, type WorldInput } from './policy-world'
import { printFindings } from './print-findings'
import type { ObjectFlags } from './read-inputs-objects'

type MatrixCommandOptions = PolicyWorldOptions &
  ObjectFlags & {
    readonly services?: boolean
    readonly ipv6?: boolean
    readonly exposure?: boolean
    readonly explain?: boolean
    readonly focus?: string
    readonly output: 'text' | 'json' | 'yaml' | 'csv' | 'dot' | 'md'
  }

export function addPolicyMatrix(policy: Command, { io, end }: CommandContext): void {
  const command = policy
    .command('matrix')
    .description('list who may reach whom over which ports: workloads, and addresses outside as ranges')
  addPolicyWorldOptions(addObjectOptions(command))
    .option('--services', 'Services as targets too: the ports whose backends can be reached')
    .option('--ipv6', 'ranges of IPv6 addresses too')
    .option('--exposure', 'pods that do not exist yet too: any pod at all, and those that rules name')
    .option('--explain', 'after each pair the rules that it rests on')
    .option('--focus <ns/name>', 'pairs of one workload or Service alone')
    .addOption(
      new Option('-o, --output <format>', 'output')
        .choices(['text', 'json', 'yaml', 'csv', 'dot', 'md'])
        .default('text'),
    )
    .action(async (options: MatrixCommandOptions) => {
      await runMatrix(io, options)
      end(0)
    })
}

async function runMatrix(io: Io, options: MatrixCommandOptions): Promise<void> {
  if (options.explain === true && options.output !== 'text') {
    throw new Failure('usage.bad-argument', `--explain is text, not ${options.output}; leave one of them out`)
  }
  const input = await readPolicyWorld(io, options, { command: 'policy matrix' })
  const matrix = buildMatrix(input.world, {
    ipv6: options.ipv6 === true,
    exposure: options.exposure === true,
    ...(options.services === true && { slices: input.slices }),
  })
  const rows = options.focus === undefined ? matrix.rows : focusOn(matrix, options.focus)
  printFindings(io, input.findings)
  io.out(options.explain === true ? explainRows(input, rows) : print(rows, options.output))
}

function print(rows: readonly MatrixRow[], output: MatrixCommandOptions['output']): string {
  switch (output) {
    case 'text':
      return printMatrixText(rows)
    case 'json':
      return printJson(rows)
    case 'yaml':
      return dump(plainRows(rows), { lineWidth: 120 })
    case 'csv':
      return printMatrixCsv(rows)
    case 'dot':
      return printMatrixDot(rows)
    case 'md':
      return printMatrixMarkdown(rows)
    default:
      return output satisfies never
  }
}

/** A row a line: long lists stay readable, and quick to write. */
function printJson(rows: readonly MatrixRow[]): string {
  const lines = plainRows(rows).map((row) => `  ${JSON.stringify(row)}`)
  return lines.length === 0 ? '[]\n' : `[\n${lines.join(',\n')}\n]\n`
}

/** `NS/NAME`, or the name with its kind: `NS/NAME[Deployment]`. */
function focusOn({ rows, workloads }: Matrix, wanted: string): readonly MatrixRow[] {
  const isMeant = (name: string): boolean => name === wanted || name.replace(/\[\w+\]$/, '') === wanted
  const isNamed = ({ name, kind }: MatrixEnd): boolean => (kind === 'workload' || kind === 'service') && isMeant(name)
  const found = rows.filter(({ src, dst }) => isNamed(src) || isNamed(dst))
  if (found.length > 0 || workloads.some(isNamed)) return found
  const names = workloads.map(({ name }) => name).sort(compareText)
  const known = names.length === 0 ? 'the input has no workload' : `there are ${listOf(names)}`
  throw new Failure('usage.not-found', `--focus ${wanted}: there is no such workload: ${known}`)
}

function explainRows({ world }: WorldInput, rows: readonly MatrixRow[]): string {
  return rows.map((row) => [printRow(row), ...explainRow(world, row)].map((line) => `${line}\n`).join('')).join('')
}
