/** Real C libraries against a nameserver, in a namespace of their own, as libc asks port 53 and reads /etc/resolv.conf. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { accessSync, constants, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe } from 'vitest'
import type { Libc } from '#compile/dns/resolver-settings'
import { describeKernel } from './describe-kernel'
import { createNamespaces, endWithUs, inside, removeNamespaces } from './namespace'
import { mustRun, toolEnvironment } from './run-command'

const here = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
const run = promisify(execFile)

/** `outcome` is `found` or what gai_strerror says; `questions` are `TYPE NAME.`, as the server saw them. */
export type LookedUp = {
  readonly outcome: string
  readonly seconds: number
  readonly addresses: readonly string[]
  readonly questions: readonly string[]
  /** The longest that this process had to wait for a processor meanwhile, in seconds: the library and the server may have, too. */
  readonly stall: number
}

export type Laboratory = {
  readonly lookUp: (libc: Libc, name: string, resolvConf: string) => Promise<LookedUp>
  /** Runs a tool beside the server. */
  readonly run: (...command: readonly string[]) => Promise<string>
  readonly close: () => void
}

/** Opens a suite that needs compilers for both libraries, or skips it with the reason. */
export function describeLibc(title: string, suite: () => void): void {
  const missing = ['gcc', 'musl-gcc', 'dig'].filter((tool) => !isOnPath(tool))
  if (missing.length === 0) describeKernel(title, suite)
  else describe.skip(`${title} (skipped: these tools are not installed: ${missing.join(', ')})`, suite)
}

function isOnPath(tool: string): boolean {
  return toolEnvironment.PATH.split(':').some((folder) => {
    try {
      accessSync(`${folder}/${tool}`, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

let programs: Readonly<Record<Libc, string>> | undefined

/** Compiled once a process. */
function clients(): Readonly<Record<Libc, string>> {
  if (programs !== undefined) return programs
  const folder = mkdtempSync(join(tmpdir(), 'portolan-libc-'))
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
  const built = { glibc: join(folder, 'glibc'), musl: join(folder, 'musl') }
  mustRun(['gcc', '-o', built.glibc, here('dns-look-up.c')])
  mustRun(['musl-gcc', '-static', '-o', built.musl, here('dns-look-up.c')])
  programs = built
  return built
}

/** A server that gives the replies it is told. */
export function scriptedServer(replies: Readonly<Record<string, string>>): readonly string[] {
  return [process.execPath, here('dns-server.mjs'), JSON.stringify(replies)]
}

function isScripted(server: readonly string[]): boolean {
  return server.includes(here('dns-server.mjs'))
}

/** What the scripted server says to SIGUSR2 when no question waits in its sockets: musl asks two and is content with one reply. */
const allRead = 'all read'

/** `portolan dns --serve` itself. */
export function portolanServer(...args: readonly string[]): readonly string[] {
  return [process.execPath, '--import', 'tsx', here('../../src/cli/main.ts'), 'dns', '--serve', '127.0.0.1:53', ...args]
}

export async function openLaboratory(server: readonly string[]): Promise<Laboratory> {
  const programs = clients()
  const [namespace = ''] = createNamespaces(['dns'])
  mustRun(['ip', '-n', namespace, 'link', 'set', 'lo', 'up'])
  const folder = mkdtempSync(join(tmpdir(), 'portolan-dns-'))
  const [program = '', ...args] = inside(namespace, server)
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env: toolEnvironment, cwd: here('../..') })
  endWithUs(child)
  const log = readLines(child)
  await log.until((line) => line === 'ready' || line.startsWith('answering on '))
  writeFileSync(join(folder, 'nsswitch.conf'), 'hosts: files dns\n')
  const enter = (command: readonly string[]): string[] => {
    const mounts = ['resolv.conf', 'nsswitch.conf'].map((name) => `mount --bind ${folder}/${name} /etc/${name}`)
    return inside(namespace, ['sh', '-c', `${mounts.join(' && ')} && exec "$@"`, 'sh', ...command])
  }
  return {
    run: async (...command) => (await runTool(inside(namespace, command))).stdout,
    lookUp: async (libc, name, resolvConf) => {
      writeFileSync(join(folder, 'resolv.conf'), resolvConf)
      log.take()
      const delay = monitorEventLoopDelay({ resolution: 10 })
      delay.enable()
      const { stdout } = await runTool(enter([programs[libc], name]))
      delay.disable()
      if (isScripted(server)) {
        child.kill('SIGUSR2')
        await log.until((line) => line === allRead)
      }
      await log.settle()
      const [outcome = '', seconds = '', ...addresses] = stdout.trim().split('\n')
      const questions = log.take().flatMap(questionOf)
      return { outcome, seconds: Number(seconds), addresses, questions, stall: delay.max / 1e9 }
    },
    close: () => {
      child.kill()
      rmSync(folder, { recursive: true, force: true })
      removeNamespaces([namespace])
    },
  }
}

function runTool([program = '', ...args]: readonly string[]): Promise<{ readonly stdout: string }> {
  return run(program, args, { env: toolEnvironment, timeout: 60_000 })
}

/** `A NAME.` of the scripted server, `127.0.0.1 udp A NAME. …` of Portolan's own. */
function questionOf(line: string): string[] {
  const match = /^(?:\S+ (?:udp|tcp) )?([A-Z0-9]+) (\S+\.)(?: |$)/.exec(line)
  return match === null ? [] : [`${match[1]} ${match[2]}`]
}

type Log = {
  readonly take: () => string[]
  readonly until: (isIt: (line: string) => boolean) => Promise<void>
  readonly settle: () => Promise<void>
}

function readLines(child: ChildProcess): Log {
  let lines: string[] = []
  let rest = ''
  let changes = 0
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      const parts = `${rest}${chunk.toString()}`.split('\n')
      rest = parts.pop() ?? ''
      lines.push(...parts)
      changes += 1
    })
  }
  const pause = (milliseconds: number): Promise<void> => new Promise((done) => setTimeout(done, milliseconds))
  return {
    take: () => {
      const taken = lines
      lines = []
      return taken
    },
    until: async (isIt) => {
      for (const end = Date.now() + 60_000; !lines.some(isIt); await pause(20)) {
        if (child.exitCode !== null || Date.now() > end)
          throw new Error(`the server ended or said nothing: ${lines.join('\n')}`)
      }
    },
    // The server writes its line before it replies: what it has written is here as soon as the pipe is read.
    settle: async () => {
      for (let before = -1; before !== changes; await pause(20)) before = changes
    },
  }
}
