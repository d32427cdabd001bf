/** Where a command takes recorded flows from: files, or a broker; and what is known beside them of pods and Services. */
import { type Command, Option } from 'commander'
import { Failure } from '#base/failure'
import type { Finding } from '#base/finding'
import { countOf } from '#base/text'
import { type Directory, emptyDirectory } from '#flows/directory'
import type { ObservedFlow } from '#flows/observed-flow'
import { flowsFileReader } from '#flows/read-flows-file'
import { startProgress } from '#sources/progress'
import { readChunks } from '#sources/read-chunks'
import { parseFlowQuery, type Query } from '#wire/flow-query'
import { type BrokerClient, openClient } from './broker-client'
import { readBrokerDirectory } from './broker-directory'
import type { Io } from './io'
import { asText, collect } from './options'

export type FlowSourceFlags = {
  readonly flows?: readonly string[]
  readonly broker?: string
  readonly tokenFile?: string
  readonly since?: string
  readonly until?: string
}

export function addFlowSourceOptions(command: Command): Command {
  return command
    .hook('preAction', (_, action) => refuseTwoSources(action))
    .addOption(
      new Option(
        '--flows <file>',
        'recorded flows: JSON or JSON lines of the broker’s rows, or of hubble observe; - for standard input; may repeat',
      ).argParser(collect(asText)),
    )
    .addOption(new Option('--broker <url>', 'the broker to ask for them').env('PORTOLAN_BROKER'))
    .option('--token-file <file>', 'a file with the token to show the broker (or PORTOLAN_TOKEN)')
    .option('--since <time>', 'of a broker: flows seen at or after this time, or an age such as 24h')
    .option('--until <time>', 'of a broker: flows first seen before this time')
}

/** PORTOLAN_BROKER may stay set; who writes both means something that is not done. */
function refuseTwoSources(command: Command): void {
  if (command.getOptionValue('flows') === undefined) return
  const written = (name: string): boolean => command.getOptionValueSource(name) === 'cli'
  const asked = written('broker') ? '--broker' : written('tokenFile') ? '--token-file' : undefined
  if (asked === undefined) return
  throw new Failure(
    'usage.bad-argument',
    `--flows is read from files, and ${asked} asks a broker; leave one of them out`,
  )
}

export type FlowSource = {
  /** Of the broker; nothing where flows are read from files. */
  readonly directory: Directory
  /** Chunk by chunk; what was found comes once all are read. */
  readonly read: (take: (flows: readonly ObservedFlow[]) => void) => Promise<readonly Finding[]>
}

/** `namespace` narrows what is asked of a broker; `isAddedUp`: pods of one workload may count as one. */
type Wanted = { readonly namespace?: string; readonly objects: readonly string[]; readonly isAddedUp?: boolean }

export async function openFlowSource(
  io: Io,
  flags: FlowSourceFlags,
  { namespace, objects, isAddedUp }: Wanted,
): Promise<FlowSource> {
  const { flows: files, broker } = flags
  if (files !== undefined) {
    refuseBoth(flags, objects)
    return { directory: emptyDirectory, read: (take) => readFiles(io, files, take) }
  }
  if (broker === undefined) {
    throw new Failure('usage.bad-argument', 'say where flows are: --flows FILE, or --broker URL')
  }
  const client = openClient({ ...flags, broker })
  const query = queryOf(flags, namespace)
  const directory = await readBrokerDirectory(client)
  return {
    directory,
    read: (take) => readBroker(io, client, { path: isAddedUp === true ? 'connections' : 'flows', query, take }),
  }
}

function refuseBoth({ flows = [], since, until }: FlowSourceFlags, objects: readonly string[]): void {
  if (since !== undefined || until !== undefined) {
    throw new Failure('usage.bad-argument', '--since and --until are asked of a broker; leave them out with --flows')
  }
  const times = [...flows, ...objects].filter((path) => path === '-').length
  if (times < 2) return
  throw new Failure('usage.bad-argument', 'standard input (-) is named twice, but can be read once; name it once')
}

async function readFiles(
  io: Io,
  files: readonly string[],
  take: (flows: readonly ObservedFlow[]) => void,
): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  for (const file of files) {
    const reader = flowsFileReader(file)
    let count = 0
    let isBlank = true
    for await (const chunk of readChunks(file, { stdin: io.stdin, say: (sentence) => io.err(`${sentence}\n`) })) {
      const flows = reader.add(chunk)
      count += flows.length
      isBlank &&= chunk.trim() === ''
      take(flows)
    }
    const found = reader.end()
    refuseForeign(file, { count, isBlank, found })
    findings.push(...found)
  }
  return findings
}

type FileFacts = { readonly count: number; readonly isBlank: boolean; readonly found: readonly Finding[] }

/** A file of which nothing can be used is the wrong file; an empty list is an answer. */
function refuseForeign(file: string, { count, isBlank, found }: FileFacts): void {
  const name = file === '-' ? 'standard input' : file
  const remedy = 'give the output of portolan flows -o json, of the broker’s API, or of hubble observe -o json'
  if (isBlank) throw new Failure('input.unreadable', `${name} is empty; ${remedy}`)
  const [first] = found.filter(({ severity }) => severity !== 'info')
  if (count > 0 || first === undefined) return
  throw new Failure(
    'input.unreadable',
    `${name} holds no flow: line ${first.origin?.line}: ${first.message}; ${remedy}`,
  )
}

/** The broker would refuse it too, but only after a wait. */
function queryOf({ since, until }: FlowSourceFlags, namespace: string | undefined): URLSearchParams {
  const query: Query = {
    ...(namespace !== undefined && { namespace }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  }
  const [error] = parseFlowQuery(query, Date.now() * 1000).errors
  if (error !== undefined) {
    throw new Failure('usage.bad-argument', `--${error.field.replace(/^query\./, '')} ${error.message}`)
  }
  return new URLSearchParams(Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]))
}

const lines = 'application/x-ndjson'

type Asking = {
  readonly path: 'flows' | 'connections'
  readonly query: URLSearchParams
  readonly take: (flows: readonly ObservedFlow[]) => void
}

async function readBroker(io: Io, client: BrokerClient, { path, query, take }: Asking): Promise<readonly Finding[]> {
  const progress = startProgress({ say: (sentence) => io.err(`${sentence}\n`), now: () => performance.now() })
  const reader = flowsFileReader(client.url)
  const decoder = new TextDecoder()
  let count = 0
  for await (const chunk of await client.getStream(`/api/v1/${path}?${query}`, lines)) {
    const flows = reader.add(decoder.decode(chunk, { stream: true }))
    count += flows.length
    take(flows)
    progress.tell(() => `${countOf(count, 'flow')} read from ${client.url} so far`)
  }
  const findings = reader.end()
  const cut = findings.find(({ code }) => code === 'flows.cut-short' || code === 'flows.not-json')
  if (cut !== undefined) {
    throw new Failure(
      'broker.unreachable',
      `${client.url} broke its answer off after ${countOf(count, 'flow')}; ask again`,
    )
  }
  return findings
}
