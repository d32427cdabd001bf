/** `portolan flows`: what a broker recorded, filtered as Hubble filters, once or as it happens. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { Failure } from '#base/failure'
import { microsPerSecond } from '#flows/instant'
import { filterNames, parseFlowQuery, type Query } from '#wire/flow-query'
import type { FlowRecord } from '#wire/flow-record'
import { addBrokerOptions, type BrokerFlags, openClient } from './broker-client'
import type { CommandContext, ExitCode } from './command'
import type { Io } from './io'
import { flowTable } from './print-flows'
import { followFlows, readFlows } from './read-flows'

export type FlowsFlags = BrokerFlags & {
  readonly not?: readonly string[]
  readonly since?: string
  readonly until?: string
  readonly limit: number
  readonly follow?: true
  readonly output: 'text' | 'wide' | 'json'
} & Readonly<Record<string, unknown>>

const filters = filterNames().filter(({ name }) => !name.startsWith('not.'))

export function addFlows(program: Command, { io, end }: CommandContext): void {
  const command = program
    .command('flows')
    .description('flows that a broker recorded; a repeated filter is an alternative, different ones must all hold')
  for (const { name, meaning } of filters) {
    command.option(`${letters[name] ?? ''}--${flagOf(name)} <value>`, `${meaning}; may repeat`, gather)
  }
  command
    .option('--not <filter=value>', 'leave out what a filter fits, such as --not port=53; may repeat', gather)
    .option('--since <time>', 'seen at or after this time, or an age such as 15m')
    .option('--until <time>', 'first seen before this time')
    .option('--limit <number>', 'the newest so many', asLimit, 50)
    .option('-f, --follow', 'go on with flows as they arrive, until interrupted')
  addBrokerOptions(command)
    .addOption(
      new Option('-o, --output <format>', 'json is one flow a line').choices(['text', 'wide', 'json']).default('text'),
    )
    .action(async (flags: FlowsFlags) => {
      end(await runFlows(io, flags))
    })
}

/** As kubectl has them. */
const letters: Readonly<Record<string, string>> = { namespace: '-n, ', label: '-l, ' }

function flagOf(name: string): string {
  return name.replaceAll('.', '-')
}

function gather(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value]
}

function asLimit(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw new InvalidArgumentError(`"${text}" is no number from 1 up.`)
}

async function runFlows(io: Io, flags: FlowsFlags): Promise<ExitCode> {
  const query = queryOf(flags)
  refuseBadQuery(query)
  const client = openClient(flags)
  const print = printerOf(io, flags)
  if (flags.follow === true) {
    await followFlows(client, { query, limit: flags.limit, print: (flow) => print([flow]), note: io.err })
    return 0
  }
  let count = 0
  for await (const page of readFlows(client, query, flags.limit)) {
    print(page)
    count += page.length
  }
  if (count === 0) io.err('no flow fits\n')
  return 0
}

function printerOf(io: Io, { output, follow }: FlowsFlags): (flows: readonly FlowRecord[]) => void {
  if (output === 'json') return (flows) => io.out(flows.map((flow) => `${JSON.stringify(flow)}\n`).join(''))
  const table = flowTable({ isWide: output === 'wide', isLive: follow === true })
  return (flows) => io.out(table(flows))
}

/** `--from-pod a --not port=53` → `from.pod=a&not.to.port=53`. */
function queryOf(flags: FlowsFlags): Query {
  const query: Record<string, string[]> = {}
  const put = (name: string, value: string): void => {
    query[name] = [...(query[name] ?? []), value]
  }
  for (const { name } of filters) {
    const given = flags[name.replace(/\.([a-z])/g, (_dot, letter: string) => letter.toUpperCase())]
    if (Array.isArray(given)) for (const value of given) put(name, String(value))
  }
  for (const text of flags.not ?? []) {
    const { name, value } = readNegation(text)
    put(`not.${name}`, value)
  }
  if (flags.since !== undefined) put('since', flags.since)
  if (flags.until !== undefined) put('until', flags.until)
  return query
}

function readNegation(text: string): { readonly name: string; readonly value: string } {
  const at = text.indexOf('=')
  const found = filters.find(({ name }) => flagOf(name) === text.slice(0, at).replace(/^--/, ''))
  if (at > 0 && found !== undefined) return { name: found.name, value: text.slice(at + 1) }
  const names = filters.map(({ name }) => flagOf(name)).join(', ')
  throw new Failure('usage.bad-argument', `--not ${text}: write FILTER=VALUE with a filter of ${names}`)
}

/** The broker would refuse it too, but knows nothing of flags. */
function refuseBadQuery(query: Query): void {
  const [first] = parseFlowQuery(query, Date.now() * (microsPerSecond / 1000)).errors
  if (first === undefined) return
  const name = first.field.replace(/^query\./, '')
  const flag = name.startsWith('not.') ? `--not ${flagOf(name.slice('not.'.length))}=…` : `--${flagOf(name)}`
  throw new Failure('usage.bad-argument', `${flag} ${first.message}`)
}
