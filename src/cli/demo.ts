/** `portolan demo`: a guided tour over the sample cluster, then a recorded day of it in a broker that stays up. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import type { Command } from 'commander'
import { Failure } from '#base/failure'
import { parseEndpoint, printIp } from '#base/ip'
import { containsIp, parsePrefix } from '#base/prefix'
import { readFrom } from '#sources/read-from'
import { reasonOf } from '#sources/system-error'
import { EdgeRecord } from '#wire/edge-record'
import { listPage } from '#wire/schema-parts'
import { openClient } from './broker-client'
import { type Captured, capture } from './capture'
import type { CommandContext } from './command'
import { type DemoBroker, type DemoBrokerOptions, startDemoBroker } from './demo-broker'
import { day, recordedDay } from './demo-day'
import { edgeTable } from './demo-edges'
import { command, heading, indent, type Names, type Show, showStop, wordsOf } from './demo-stop'
import { clusterCidr, recordedTour, tour } from './demo-tour'
import type { Io } from './io'
import { requireFolder } from './require-folder'
import { sampleFolder } from './sample-folder'

type DemoFlags = { readonly once?: true; readonly listen?: string; readonly data?: string }

const usualListen = '127.0.0.1:8090'

export function addDemo(program: Command, context: CommandContext): void {
  program
    .command('demo')
    .description('a guided tour over a sample cluster, then a recorded day of it in a broker that stays up')
    .option('--once', 'end after the tour; the broker takes a free port')
    .option('--listen <ip:port>', `where the broker listens (default: ${usualListen}, or a free port)`)
    .option('--data <dir>', 'directory of the broker’s database, which is kept (default: one that is removed)')
    .action(async (flags: DemoFlags) => {
      const listen = listenOf(flags)
      if (flags.data !== undefined) requireFolder(dirname(resolve(flags.data)), '--data')
      const interrupted = flags.once === true ? undefined : interruption()
      const folder = makeFolder()
      const remove = (): void => rmSync(folder, { recursive: true, force: true })
      // Who reads the output may have gone: then the program ends where it stands.
      process.once('exit', remove)
      try {
        await runDemo(context, { ...listen, folder, data: flags.data ?? join(folder, 'data'), interrupted })
      } finally {
        process.off('exit', remove)
        remove()
      }
      context.end(0)
    })
}

function makeFolder(): string {
  try {
    return mkdtempSync(join(tmpdir(), 'portolan-demo-'))
  } catch (error) {
    throw new Failure(
      'usage.bad-argument',
      `no folder can be made in ${tmpdir()}: ${reasonOf(error)}; name one that can be written as TMPDIR`,
      error,
    )
  }
}

const loopback = ['127.0.0.0/8', '::1/128'].flatMap((cidr) => parsePrefix(cidr)?.prefix ?? [])

function listenOf({ once, listen }: DemoFlags): Pick<DemoBrokerOptions, 'listen' | 'mayMove'> {
  if (listen === undefined && once === true) return { listen: { address: '127.0.0.1', port: 0 }, mayMove: false }
  const parsed = parseEndpoint(listen ?? usualListen)
  if (parsed?.port === undefined) {
    throw new Failure('usage.bad-argument', `--listen ${listen}: write IP:PORT such as ${usualListen}`)
  }
  const { ip, port } = parsed
  if (!loopback.some((range) => containsIp(range, ip))) {
    throw new Failure(
      'usage.bad-argument',
      `--listen ${listen}: the demo’s broker asks for no token, and listens on this machine alone; write 127.0.0.1:${port}`,
    )
  }
  return { listen: { address: printIp(ip), port }, mayMove: listen === undefined }
}

type Demo = DemoBrokerOptions & {
  readonly folder: string
  /** Absent: the demo ends by itself. */
  readonly interrupted: Promise<void> | undefined
}

async function runDemo({ io, runOn }: CommandContext, demo: Demo): Promise<void> {
  const sample = sampleFolder('shop')
  const names: Names = {
    SAMPLE: sample,
    RULES: join(demo.folder, 'node-b.save'),
    TIGHTER: join(sampleFolder('recorded-day'), 'tighter.yaml'),
  }
  const run = (command: string, given: Names): Promise<Captured> =>
    capture(io, (captured) => runOn(captured, wordsOf(command, given)))
  // Where it cannot listen or write, that is told at once and not after the tour.
  const broker = await startDemoBroker(io, demo)
  try {
    await showCluster(io, { run, names })
    await showDay(io, broker, { run, names: { ...names, URL: broker.url } })
    const tighter = names.TIGHTER ?? ''
    io.out(closing(io, { url: broker.url, tighter, staysUp: demo.interrupted !== undefined }))
    await demo.interrupted
  } finally {
    await broker.stop()
  }
}

async function showCluster(io: Io, show: Show): Promise<void> {
  const { run, names } = show
  const made = await run(`iptables --from SAMPLE --node node-b --cluster-cidr ${clusterCidr}`, names)
  writeFileSync(names.RULES ?? '', made.out)
  io.out(
    `${heading(io, 'PORTOLAN, A GUIDED TOUR')}\n\nThe cluster in ${names.SAMPLE} has two nodes, a shop, and a few things that go wrong.\n`,
  )
  for (const [index, stop] of tour.entries()) await showStop(io, show, { stop, number: index + 1 })
}

async function showDay(io: Io, broker: DemoBroker, show: Show): Promise<void> {
  const { value: cluster } = await readFrom([show.names.SAMPLE ?? ''])
  const played = await broker.play(recordedDay(cluster))
  io.out(`\n\n${heading(io, 'A RECORDED DAY')}

A broker now listens on ${broker.url}, with a database of its own. It was told
what agents told of this cluster on ${day}, in the same order: ${played.pods} reports of pods,
${played.services} of Services, and ${played.flows} sightings of connections. Who had an address was
decided when a connection arrived, for the moment at which it was seen.
`)
  const first = tour.length + 1
  io.out(
    `\n${heading(io, `${first}. Who talked to whom?`)}\n${edgeTale}\n\n${command(io, `curl ${broker.url}/api/v1/edges`)}\n\n`,
  )
  io.out(indent(edgeTable(await readEdges(broker.url))))
  for (const [index, stop] of recordedTour.entries()) await showStop(io, show, { stop, number: first + 1 + index })
}

const edgeTale = `The workloads of that day, by what they connected to; what went through a Service stands at the
backend that took it. Hourly backups are one CronJob. Pods with the addresses of their nodes say so.
Unattributed is an address that somebody else has today, and of which nobody knows who had it then.`

async function readEdges(url: string): Promise<readonly EdgeRecord[]> {
  const page = listPage(EdgeRecord, 'edges')
  const { items } = await openClient({ broker: url }).getJson('/api/v1/edges?since=-24h&limit=1000', page)
  return items
}

type Closing = { readonly url: string; readonly tighter: string; readonly staysUp: boolean }

function closing(io: Io, { url, tighter, staysUp }: Closing): string {
  const broker = staysUp
    ? `
The broker stays up, its clock at the end of that day, until Ctrl-C ends it:

  ${url}/docs                 every route, to try out
  portolan flows --broker ${url} --to-workload db --not verdict=ALLOW
  portolan flows --broker ${url} --follow
  portolan who 10.244.1.31 --broker ${url} -o wide
  portolan generate ciliumnetworkpolicy -n shop --broker ${url}
  curl -X PUT -H 'Content-Type: application/yaml' --data-binary @${tighter} \\
    ${url}/api/v1/audit/policies      (kept in audit mode; see ${url}/api/v1/audit/summary)
`
    : ''
  return `\n${heading(io, 'Now yours')}
${broker}
  kubectl get services,pods,endpointslices,nodes -A -o json > cluster.json
  portolan endpoints --from cluster.json
  portolan iptables  --from cluster.json --node NODE --cluster-cidr CIDR
  portolan trace     --ruleset node.save --all       (node.save is iptables-save of a node)
  portolan broker    --data flows                    (agents report to it: docs/broker.md)
`
}

function interruption(): Promise<void> {
  return new Promise((done) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => done())
  })
}
