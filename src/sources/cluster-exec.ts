/** Credential plugins: the program that a kubeconfig names runs, and prints a token or a certificate. */
import { spawn } from 'node:child_process'
import { isAbsolute, join } from 'node:path'
import { Failure } from '#base/failure'
import { plainText } from '#base/text'
import { isRecord, type RawRecord } from '#manifests/text/raw-object'
import { type ConfigEntry, type Environment, textAt } from './cluster-config'
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
  readonly cluster: RawRecord
  readonly server: URL
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
  const env = Array.isArray(exec.env) ? exec.env.filter(isRecord) : []
  return {
    user,
    command: command.includes('/') && !isAbsolute(command) ? join(folder, command) : command,
    args: Array.isArray(exec.args) ? exec.args.map(String) : [],
    env: Object.fromEntries(env.map((one) => [textAt(one, 'name'), textAt(one, 'value')])),
    apiVersion: textAt(exec, 'apiVersion') || 'client.authentication.k8s.io/v1',
    providesCluster: exec.provideClusterInfo === true,
    interactive: mode,
    installHint: textAt(exec, 'installHint'),
  }
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
    const child = spawn(plugin.command, plugin.args, {
      env: { ...run.environment, ...plugin.env, KUBERNETES_EXEC_INFO: JSON.stringify(infoOf(plugin, run, asks)) },
      stdio: [asks ? 'inherit' : 'ignore', 'pipe', 'pipe'],
    })
    const milliseconds = run.patienceMilliseconds ?? (asks ? patience.interactive : patience.silent)
    // A child of the plugin may hold its output open for ever.
    const giveUp = (failure: Failure): void => {
      clearTimeout(timer)
      child.kill('SIGKILL')
      child.stdout.destroy()
      child.stderr.destroy()
      reject(failure)
    }
    const timer = setTimeout(
      () => giveUp(refused(plugin, `gave no answer in ${milliseconds / 1000} s`, 'run it by hand to see why')),
      milliseconds,
    )
    let output = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
      if (output.length > mostCharacters)
        giveUp(refused(plugin, 'printed more than a credential', 'check its arguments'))
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => tellLines(plugin, run, text))
    child.on('error', (error) => {
      clearTimeout(timer)
      reject(notStarted(plugin, error))
    })
    child.on('close', (code, signal) => {
      clearTimeout(timer)
      if (code === 0) return resolve(output)
      const end = code === null ? `was ended by ${signal}` : `ended with code ${code}`
      return reject(refused(plugin, end, 'log in with it again, or run it by hand to see why'))
    })
  })
}

/** A plugin speaks to its user on standard error; what looks like a token is not repeated. */
function tellLines({ command }: ExecPlugin, { say }: PluginRun, text: string): void {
  for (const line of text.split('\n')) {
    if (line.trim() !== '') say(`${plainText(command)}: ${plainText(line).replaceAll(/[\w+/=.-]{60,}/g, '…')}`)
  }
}

/** client-go, tools/auth/exec/exec.go. */
function infoOf({ apiVersion, providesCluster }: ExecPlugin, { cluster, server }: PluginRun, asks: boolean): object {
  const data = textAt(cluster, 'certificate-authority-data')
  const described = {
    server: server.href.replace(/\/$/, ''),
    ...(textAt(cluster, 'tls-server-name') !== '' && { 'tls-server-name': textAt(cluster, 'tls-server-name') }),
    ...(cluster['insecure-skip-tls-verify'] === true && { 'insecure-skip-tls-verify': true }),
    ...(data !== '' && { 'certificate-authority-data': data }),
    ...(textAt(cluster, 'proxy-url') !== '' && { 'proxy-url': textAt(cluster, 'proxy-url') }),
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
  const value = parseJson(output)
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
  const { token, clientCertificateData: certificate, clientKeyData: key, expirationTimestamp: expiry } = status
  if (typeof token !== 'string' && (typeof certificate !== 'string' || typeof key !== 'string')) {
    throw refused(plugin, 'printed neither a token nor a certificate with its key', 'log in with it again')
  }
  const time = typeof expiry === 'string' ? Date.parse(expiry) : Number.NaN
  return {
    ...(typeof token === 'string' && { token: token.trim() }),
    ...(typeof certificate === 'string' && typeof key === 'string' && { certificate, key }),
    expires: Number.isNaN(time) ? Number.MAX_VALUE : time,
  }
}

/** The parser's own message quotes the text, which holds a token. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
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
