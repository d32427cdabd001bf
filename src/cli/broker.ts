/** `portolan broker`: receives pods, Services and flows, says who each flow's peer was, and serves the answers until interrupted. */
import { dirname, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { Failure } from '#base/failure'
import { parseEndpoint, printIp } from '#base/ip'
import { systemClock } from '#broker/clock'
import { hidePasswords, type Logger, type LogLevel, openLog } from '#broker/log'
import { type GivenFlags, numberSettings, readSettings, type SettingName, type Settings } from '#broker/settings'
import { refuseOpenDoor, startBroker } from '#broker/start-broker'
import { buildTokenBook, type GivenToken, type Scope, tokenFlags, tokensOfEnvironment } from '#broker/tokens'
import { openStore, type StoreOptions } from '#store/open-store'
import type { Store } from '#store/store'
import type { CommandContext, ExitCode } from './command'
import type { Io } from './io'
import { readToken } from './read-token'
import { requireFolder } from './require-folder'
import { version } from './version'

type BrokerFlags = {
  readonly listen: string
  readonly data?: string
  readonly database?: string
  readonly insecure?: true
  readonly allowOrigin?: readonly string[]
  readonly logLevel: LogLevel
} & Readonly<Record<string, unknown>>

const settingNames = Object.keys(numberSettings) as readonly SettingName[]
const scopes = Object.keys(tokenFlags) as readonly Scope[]
const defaultData = 'portolan-data'

export function addBroker(program: Command, { io, end }: CommandContext): void {
  const command = program
    .command('broker')
    .description('receive pods, Services and flows, name each flow’s peer for good, and serve the answers')
    .option('--listen <ip:port>', 'where to listen; beyond this machine a token is needed', '127.0.0.1:8090')
    .option('--data <dir>', `directory of the embedded database (default: ${defaultData})`)
    .option('--database <url>', 'postgres://… instead; other users see it in ps, DATABASE_URL they do not')
    .option('--insecure', 'listen beyond this machine although no token is set')
    .option('--allow-origin <origin>', 'a web page of this origin may read answers, * is any; may repeat', gather)
  for (const scope of scopes) {
    command
      .option(`--token-${scope} <token>`, `a token that may ${doings[scope]}; other users see it in ps`)
      .option(`--token-${scope}-file <file>`, `the same, read from a file (or BROKER_TOKEN_${scope.toUpperCase()})`)
  }
  for (const name of settingNames) {
    const { flag, meaning, environment, fallback } = numberSettings[name]
    command.option(`--${flag} <number>`, `${meaning} (default: ${fallback}, or ${environment})`, asNumber)
  }
  command
    .addOption(
      new Option('--log-level <level>', 'least important lines of the log')
        .choices(['debug', 'info', 'warn', 'error', 'silent'])
        .default('info'),
    )
    .action(async (flags: BrokerFlags) => {
      end(await runBroker(io, flags))
    })
}

const doings: Readonly<Record<Scope, string>> = {
  read: 'read',
  ingest: 'report and read',
  admin: 'do everything',
}

function gather(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value]
}

function asNumber(text: string): string {
  if (/^\d{1,15}$/.test(text)) return text
  throw new InvalidArgumentError(`"${text}" is no whole number.`)
}

async function runBroker(io: Io, flags: BrokerFlags): Promise<ExitCode> {
  const listen = parseListen(flags.listen)
  const log = openLog(io.err, flags.logLevel)
  const { settings, warnings } = readSettings(process.env, flagsOf(flags))
  const tokens = buildTokenBook([...tokensOfEnvironment(process.env), ...tokensOfFlags(flags)])
  for (const warning of [...warnings, ...tokens.warnings]) log.warn(warning)
  refuseOpenDoor({ listen, tokens, isInsecure: flags.insecure === true })
  const place = chooseDatabase(flags, settings)
  const interrupted = interruption()
  const store = await openPatiently(place, log)
  try {
    const broker = await startBroker({
      listen,
      store,
      settings,
      tokens,
      isInsecure: flags.insecure === true,
      allowedOrigins: flags.allowOrigin ?? [],
      version,
      clock: systemClock,
      log,
    })
    io.out(startLine(broker.url, place, store))
    for (const notice of store.notices) io.out(`${notice}\n`)
    const ending = await Promise.race([interrupted, store.lost])
    if (typeof ending === 'string') log.info({ signal: ending }, 'the broker ends')
    await broker.stop()
    if (typeof ending === 'string') return 0
    throw new Failure(ending.code, `${ending.message}; what was acknowledged is kept, start the broker again`, ending)
  } catch (error) {
    await store.close()
    throw error
  }
}

function parseListen(text: string): { readonly address: string; readonly port: number } {
  const parsed = parseEndpoint(text.replace(/^localhost:/, '127.0.0.1:'))
  if (parsed?.port !== undefined) return { address: printIp(parsed.ip), port: parsed.port }
  throw new Failure(
    'usage.bad-argument',
    `--listen ${text}: write IP:PORT such as 127.0.0.1:8090, or [IP]:PORT for IPv6`,
  )
}

function flagsOf(flags: BrokerFlags): GivenFlags {
  return Object.fromEntries(settingNames.map((name) => [name, textOf(flags, numberSettings[name].flag)]))
}

/** commander keeps `--late-resolve-interval` as lateResolveInterval. */
function textOf(flags: BrokerFlags, flag: string): string | undefined {
  const value = flags[flag.replace(/-([a-z])/g, (_dash, letter: string) => letter.toUpperCase())]
  return typeof value === 'string' ? value : undefined
}

function tokensOfFlags(flags: BrokerFlags): readonly GivenToken[] {
  return scopes.flatMap((scope) => {
    const [plain, file] = [`token-${scope}`, `token-${scope}-file`]
    const [value, path] = [textOf(flags, plain), textOf(flags, file)]
    return [
      ...(value === undefined ? [] : [{ source: `--${plain}`, value, scopes: tokenFlags[scope] }]),
      ...(path === undefined ? [] : [{ source: `--${file}`, value: readToken(file, path), scopes: tokenFlags[scope] }]),
    ]
  })
}

type Place = { readonly options: StoreOptions; readonly name: string }

function chooseDatabase(
  { data, database }: BrokerFlags,
  { poolSize, batchConnections, statementTimeoutMs }: Settings,
): Place {
  if (data !== undefined && database !== undefined) {
    throw new Failure('usage.bad-argument', '--data and --database are two places for one database; leave one out')
  }
  const url = database ?? (data === undefined ? process.env.DATABASE_URL?.trim() : undefined)
  if (url === undefined || url === '') {
    const directory = data ?? defaultData
    requireFolder(dirname(resolve(directory)), '--data')
    return { options: { data: directory }, name: `embedded in ${directory}` }
  }
  if (!/^postgres(ql)?:\/\//.test(url)) {
    const source = database === undefined ? 'DATABASE_URL' : '--database'
    throw new Failure('usage.bad-argument', `${source} ${hidePasswords(url)}: write postgres://user@host:5432/name`)
  }
  return {
    options: { database: url, poolSize, batchConnections, statementTimeoutMillis: statementTimeoutMs },
    name: hidePasswords(url),
  }
}

const mostTries = 10
const pauseMs = 2000

/** A database that starts beside the broker may take a while. */
async function openPatiently({ options, name }: Place, log: Logger): Promise<Store> {
  for (let tries = 1; ; tries++) {
    try {
      return await openStore(options)
    } catch (error) {
      const isAway = error instanceof Failure && error.code === 'database-unavailable'
      if (!isAway || tries === mostTries) throw error
      log.warn({ database: name, tries, reason: hidePasswords(error.message) }, 'the database is away; trying again')
      await sleep(pauseMs)
    }
  }
}

function startLine(url: string, { name }: Place, { engine }: Store): string {
  const kind = engine === 'postgres' ? 'PostgreSQL ' : ''
  return `portolan broker ${version} answers on ${url} (API at ${url}/docs); database: ${kind}${name}\n`
}

function interruption(): Promise<string> {
  return new Promise((done) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => done(signal))
  })
}
