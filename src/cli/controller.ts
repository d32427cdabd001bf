/** `portolan controller`: the conditions of traffic policies and their bindings, once, or until it is interrupted. */
import { resolve, sep } from 'node:path'
import { type Command, Option } from 'commander'
import { dump } from 'js-yaml'
import { Failure } from '#base/failure'
import type { ObjectStore } from '#controller/object-store'
import type { CommandContext, ExitCode } from './command'
import type { Io } from './io'
import { addFromOption } from './options'
import { printFindings } from './print-findings'
import { version } from './version'

type ControllerFlags = {
  readonly from?: readonly string[]
  readonly status?: string
  readonly once?: true
  readonly output?: 'text' | 'wide' | 'json' | 'yaml'
  readonly logLevel: 'debug' | 'info' | 'warn' | 'error' | 'silent'
}

export function addController(program: Command, { io, end }: CommandContext): void {
  const command = program
    .command('controller')
    .description(
      'judge traffic policies, bindings and edge services by what their nodes say: is it installed, is it enforced',
    )
  addFromOption(command)
    .option('--status <dir>', 'the folder that agents write their status into; conditions are written beside them')
    .option('--once', 'print the conditions and end; without it, keep them until interrupted')
    .addOption(
      new Option('-o, --output <format>', 'output of --once (default: text)').choices(['text', 'wide', 'json', 'yaml']),
    )
    .addOption(
      new Option('--log-level <level>', 'least important lines of the log')
        .choices(['debug', 'info', 'warn', 'error', 'silent'])
        .default('info'),
    )
    .action(async (flags: ControllerFlags) => {
      end(await runController(io, flags))
    })
}

async function runController(io: Io, flags: ControllerFlags): Promise<ExitCode> {
  const { from = [], status, once, output } = flags
  checkPlaces(flags)
  const { openFileStore } = await import('#controller/file-store')
  const store = openFileStore({
    from,
    stdin: io.stdin,
    say: (sentence) => io.err(`${sentence}\n`),
    ...(status !== undefined && { status }),
  })
  if (once === true) return runOnce(io, store, output ?? 'text')
  // A path that is not there at the start is a slip; one that goes later is waited for.
  const { kindOfPath } = await import('#sources/read-text')
  for (const path of from) if (path !== '-') await kindOfPath(path)
  return runUntilInterrupted(io, store, flags)
}

function checkPlaces({ from = [], status, once, output }: ControllerFlags): void {
  const usage = (sentence: string): Failure => new Failure('usage.bad-argument', sentence)
  if (from.length === 0) throw usage('no objects are named; add --from with a file or folder of policies and bindings')
  if (status === undefined && once !== true) {
    throw usage('there is nowhere to write conditions to; add --status with the folder of the agents, or --once')
  }
  if (output !== undefined && once !== true) throw usage('-o is of --once: conditions that are kept go to --status')
  for (const path of from) {
    if (status === undefined || path === '-') continue
    if (!`${resolve(status)}${sep}`.startsWith(`${resolve(path)}${sep}`)) continue
    throw usage(`--status ${status} lies in ${path}, from which objects are read; give it a folder elsewhere`)
  }
}

async function runOnce(io: Io, store: ObjectStore, output: 'text' | 'wide' | 'json' | 'yaml'): Promise<ExitCode> {
  const { surveyConditions } = await import('#enforce/condition-survey')
  const { patchOf } = await import('#controller/start-controller')
  const { printConditionTables } = await import('./print-conditions')
  const { cluster, findings, isPartial } = await store.read()
  printFindings(io, findings)
  const { objects } = surveyConditions(cluster, Date.now())
  if (isPartial)
    io.err(
      'a part of the objects cannot be read, so that these answers may be wrong; nothing is written; mend what is named above, and ask again\n',
    )
  else for (const one of objects) if (one.isChanged) await store.apply(patchOf(one))
  const code = isPartial ? 3 : 0
  if (output === 'text' || output === 'wide') {
    io.out(printConditionTables(objects, cluster, output === 'wide'))
    if (objects.length === 0)
      io.err('the input has no TrafficPolicy, no TrafficPolicyBinding and no EdgeService; check --from\n')
    return code
  }
  const list = { apiVersion: 'v1', kind: 'List', items: objects.map(patchOf) }
  io.out(output === 'json' ? `${JSON.stringify(list, undefined, 2)}\n` : dump(list, { noRefs: true, lineWidth: 120 }))
  return code
}

async function runUntilInterrupted(
  io: Io,
  store: ObjectStore,
  { logLevel, status }: ControllerFlags,
): Promise<ExitCode> {
  const { startController } = await import('#controller/start-controller')
  const { systemClock } = await import('#agent/agent-clock')
  const { openLog } = await import('#broker/log')
  const log = openLog(io.err, logLevel)
  const interrupted = new Promise<string>((done) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => done(signal))
  })
  const controller = startController({ store, clock: systemClock, log })
  io.out(`portolan controller ${version} keeps conditions in ${status}\n`)
  log.info({ signal: await interrupted }, 'the controller ends; conditions stay as they are')
  await controller.stop()
  return 0
}
