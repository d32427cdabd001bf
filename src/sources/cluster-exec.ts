/** Credential plugins: the program that a kubeconfig names runs, and prints a token or a certificate. */
import { type ChildProcess, spawn } from 'node:child_process'
import { isAbsolute, join } from 'node:path'
import { Failure } from '#base/failure'
import { plainText } from '#base/text'
import { isRecord, type RawRecord } from '#manifests/text/raw-object'
import { type ConfigEntry, type Environment, flagAt, parseAsKubectl, textAt } from './cluster-config'
import { openPluginWords } from './cluster-exec-words'
import { codeOf } from './system-error'

export type ExecPlugin = {
  readonly user: string
  readonly command: string
  readonly args: readonly string[]
  readonly env: Environment
  readonly apiVersion: string
  readonly providesCluster: boolean
  readonly interactive: 'Never' | 'IfAvailable' | 'Always'
  readonly installHint: string
}

/** `expires` is a wall-clock time in milliseconds. */
export type Credential = {
  readonly token?: string
  readonly certificate?: string
  readonly key?: string
  readonly expires: number
}

export type PluginRun = {
  readonly environment: Environment
  readonly say: (sentence: string) => void
  /** The cluster's entry of the kubeconfig. */
  readonly cluster: RawRecord
  /** As base64; empty where the kubeconfig names none. */
  readonly authority: string
  /** That leads to the server; empty for none. */
  readonly proxyUrl: string
  readonly patienceMilliseconds?: number
}

/** One that may ask its user waits for an answer. */
const patience = { silent: 60_000, interactive: 300_000 }
const mostCharacters = 1_000_000

/** client-go, tools/clientcmd/api/v1 ExecConfig; a command with a slash is relative to the kubeconfig. */
export function readExecPlugin({ name, fields, folder }: ConfigEntry): ExecPlugin | undefined {
  const { exec } = fields
  if (exec === undefined || exec === null) return undefined
  const user = plainText(name)
  if (!isRecord(exec)) throw badPlugin(user, 'exec is no map')
  const command = textAt(exec, 'command')
  if (command === '') throw badPlugin(user, 'exec has no command')
  const mode = textAt(exec, 'interactiveMode') || 'IfAvailable'
  if (mode !== 'Never' && mode !== 'IfAvailable' && mode !== 'Always') {
    throw badPlugin(user, 'exec.interactiveMode is none of Never, IfAvailable and Always')
  }
  const env = listAt(exec, { key: 'env', user }).map((one) => (isRecord(one) ? one : {}))
  if (env.some((one) => textAt(one, 'name') === '')) throw badPlugin(user, 'exec.env holds what has no name')
  return {
    user,
    command: command.includes('/') && !isAbsolute(command) ? join(folder, command) : command,
    args: listAt(exec, { key: 'args', user }).map(String),
    env: Object.fromEntries(env.map((one) => [textAt(one, 'name'), textAt(one, 'value')])),
    apiVersion: textAt(exec, 'apiVersion') || 'client.authentication.k8s.io/v1',
    providesCluster: flagAt(exec, 'provideClusterInfo'),
    interactive: mode,
    installHint: textAt(exec, 'installHint'),
  }
}

function listAt(fields: RawRecord, { key, user }: { readonly key: string; readonly user: string }): readonly unknown[] {
  const list = fields[key] ?? []
  if (Array.isArray(list)) return list
  throw badPlugin(user, `exec.${key} is no list`)
}

function badPlugin(user: string, fact: string): Failure {
  return new Failure('cluster.bad-config', `user "${user}" of the kubeconfig cannot be used: ${fact}; mend it there`)
}

export async function runExecPlugin(plugin: ExecPlugin, run: PluginRun): Promise<Credential> {
  const isTerminal = process.stdin.isTTY === true
  if (plugin.interactive === 'Always' && !isTerminal) {
    throw refused(plugin, 'wants to ask its user, and standard input is no terminal', 'log in with it first')
  }
  const asks = plugin.interactive !== 'Never' && isTerminal
  const output = await runProgram(plugin, run, asks)
  return readCredential(plugin, output)
}

function runProgram(plugin: ExecPlugin, run: PluginRun, asks: boolean): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = startProgram(plugin, run, asks)
    const words = openPluginWords({ command: plugin.command, say: run.say, secrets: secretsOf(plugin) })
    const milliseconds = run.patienceMilliseconds ?? (asks ? patience.interactive : patience.silent)
    // A child of the plugin may hold its output open for ever.
    const giveUp = (failure: Failure): void => {
      clearTimeout(timer)
      words.end()
      child.kill('SIGKILL')
      child.stdout?.destroy()
      child.stderr?.destroy()
      reject(failure)
    }
    const timer = setTimeout(
      () => giveUp(refused(plugin, `gave no answer in ${milliseconds / 1000} s`, 'run it by hand to see why')),
      milliseconds,
    )
    let output = ''
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      output += text
      if (output.length > mostCharacters)
        giveUp(refused(plugin, 'printed more than a credential', 'check its arguments'))
    })
    child.stderr?.setEncoding('utf8').on('data', words.take)
    child.on('error', (error) => giveUp(notStarted(plugin, error)))
    child.on('close', (code, signal) => {
      clearTimeout(timer)
      words.end()
      if (code === 0) return resolve(output)
      const end = code === null ? `was ended by ${signal}` : `ended with code ${code}`
      return reject(refused(plugin, end, 'log in with it again, or run it by hand to see why'))
    })
  })
}

/** Node's own message of a word that no program takes (one with a NUL) quotes the word. */
function startProgram(plugin: ExecPlugin, run: PluginRun, asks: boolean): ChildProcess {
  try {
    return spawn(plugin.command, plugin.args, {
      env: { ...run.environment, ...plugin.env, KUBERNETES_EXEC_INFO: JSON.stringify(infoOf(plugin, run, asks)) },
      stdio: [asks ? 'inherit' : 'ignore', 'pipe', 'pipe'],
    })
  } catch (error) {
    throw refused(plugin, `cannot be started (${codeOf(error)})`, 'check command, args and env of exec')
  }
}

/** `--client-secret=x`, `--client-secret x`, and `AWS_SECRET_ACCESS_KEY` of its environment. */
function secretsOf({ args, env }: ExecPlugin): readonly string[] {
  const name = /token|secret|passw|key/i
  const values = Object.entries(env).flatMap(([key, value = '']) => (name.test(key) ? [value] : []))
  const words = args.flatMap((word, index) => {
    const [flag = '', value] = word.split(/=(.*)/s)
    if (!flag.startsWith('-') || !name.test(flag)) return []
    const next = args[index + 1] ?? ''
    return value !== undefined ? [value] : next.startsWith('-') ? [] : [next]
  })
  return [...values, ...words].filter((value) => value.length >= 4)
}

/** client-go, rest/exec.go ConfigToExecCluster; `config` is what the cluster's extension of that name holds. */
function infoOf({ apiVersion, providesCluster }: ExecPlugin, { cluster, ...run }: PluginRun, asks: boolean): object {
  const name = textAt(cluster, 'tls-server-name')
  const extensions = Array.isArray(cluster.extensions) ? cluster.extensions.filter(isRecord) : []
  const own = extensions.find((one) => one.name === 'client.authentication.k8s.io/exec')
  const described = {
    server: textAt(cluster, 'server'),
    ...(name !== '' && { 'tls-server-name': name }),
    ...(flagAt(cluster, 'insecure-skip-tls-verify') && { 'insecure-skip-tls-verify': true }),
    ...(run.authority !== '' && { 'certificate-authority-data': run.authority }),
    ...(run.proxyUrl !== '' && { 'proxy-url': run.proxyUrl }),
    ...(flagAt(cluster, 'disable-compression') && { 'disable-compression': true }),
    ...(own !== undefined && { config: own.extension }),
  }
  const spec = { interactive: asks, ...(providesCluster && { cluster: described }) }
  return { apiVersion, kind: 'ExecCredential', spec }
}

function notStarted(plugin: ExecPlugin, error: Error): Failure {
  if (codeOf(error) !== 'ENOENT')
    return refused(plugin, `cannot be started (${codeOf(error)})`, 'check its permissions', error)
  const hint = plainText(plugin.installHint.trim().split('\n')[0] ?? '')
  return refused(plugin, 'is not installed', hint === '' ? 'install it, or put it into PATH' : hint, error)
}

function readCredential(plugin: ExecPlugin, output: string): Credential {
  const value = parseOutput(output)
  const status = isRecord(value) && value.kind === 'ExecCredential' && isRecord(value.status) ? value.status : undefined
  if (!isRecord(value) || status === undefined) {
    throw refused(plugin, 'printed no ExecCredential with a status', 'run it by hand to see what it prints')
  }
  if (value.apiVersion !== plugin.apiVersion) {
    const own = plainText(String(value.apiVersion))
    throw refused(
      plugin,
      `answers in ${own}, and the kubeconfig asks for ${plugin.apiVersion}`,
      'write the version that it speaks into exec.apiVersion',
    )
  }
  const { expirationTimestamp: expiry } = status
  const [token, certificate, key] = ['token', 'clientCertificateData', 'clientKeyData'].map((name) =>
    typeof status[name] === 'string' && status[name] !== '' ? status[name] : undefined,
  )
  if (token === undefined && (certificate === undefined || key === undefined)) {
    throw refused(plugin, 'printed neither a token nor a certificate with its key', 'log in with it again')
  }
  const time = typeof expiry === 'string' ? Date.parse(expiry) : Number.NaN
  return {
    ...(token !== undefined && { token: token.trim() }),
    ...(certificate !== undefined && key !== undefined && { certificate, key }),
    expires: Number.isNaN(time) ? Number.MAX_VALUE : time,
  }
}

/** JSON, or YAML, which client-go decodes as well. The parser's own message quotes the text, which holds a token. */
function parseOutput(text: string): unknown {
  try {
    return parseAsKubectl(text)
  } catch {
    return undefined
  }
}

function refused({ command, user }: ExecPlugin, fact: string, remedy: string, cause?: unknown): Failure {
  return new Failure(
    'cluster.refused',
    `the credential plugin ${plainText(command)} of user "${user}" ${fact}; ${remedy}`,
    cause,
  )
}
