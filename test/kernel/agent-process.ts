/** `portolan agent` as a process of its own in a namespace, with its files, and what it says. */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RawRecord } from '#manifests/text/raw-object'
import { type StatusPatch, statusFilePath } from '#wire/status-file'
import { endWithUs, inside } from './namespace'

export type AgentFiles = {
  readonly from: string
  readonly status: string
  /** Replaces what the agent reads, as an editor does: beside it, then by a rename. */
  readonly write: (objects: readonly RawRecord[], name?: string) => void
  readonly entry: (binding: string) => StatusPatch['status']['nodes'][number] | undefined
  readonly remove: () => void
}

export function agentFiles(node = 'n1'): AgentFiles {
  const folder = mkdtempSync(join(tmpdir(), 'portolan-agent-'))
  const [from, status] = [join(folder, 'from'), join(folder, 'status')]
  mkdirSync(from)
  return {
    from,
    status,
    write(objects, name = 'objects.json') {
      const beside = join(folder, 'beside')
      writeFileSync(beside, JSON.stringify(objects))
      renameSync(beside, join(from, name))
    },
    entry(binding) {
      const [namespace = '', name = ''] = binding.split('/')
      const path = join(status, statusFilePath(node, { namespace, name }))
      return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as StatusPatch).status.nodes[0] : undefined
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

export type AgentProcess = {
  readonly child: ChildProcess
  readonly output: () => string
  /** Its exit code, or the signal that ended it. */
  readonly ended: Promise<number | string>
}

export type ProcessOptions = {
  readonly namespace?: string | undefined
  readonly before?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
}

/** `argv` is what stands after `portolan agent`. */
export function spawnAgent(argv: readonly string[], options: ProcessOptions = {}): AgentProcess {
  const { namespace, before = [], environment = {} } = options
  const command = [...before, process.execPath, '--import', 'tsx', 'src/cli/main.ts', 'agent', ...argv]
  const [program = '', ...args] = namespace === undefined ? command : inside(namespace, command)
  const child = spawn(program, args, { env: { ...process.env, ...environment }, stdio: ['ignore', 'pipe', 'pipe'] })
  endWithUs(child)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (bytes) => {
      output += String(bytes)
    })
  }
  const ended = new Promise<number | string>((resolve) =>
    child.once('close', (code, signal) => resolve(code ?? signal ?? '')),
  )
  return { child, output: () => output, ended }
}

/** Asks again until it is so, and lets the streams of children be read meanwhile; says what it waited for. */
export async function until(
  what: string,
  isSo: () => boolean,
  milliseconds = 20_000,
  context = () => '',
): Promise<number> {
  const start = performance.now()
  while (!isSo()) {
    if (performance.now() - start > milliseconds)
      throw new Error(`waited ${milliseconds} ms in vain: ${what}\n${context()}`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  return performance.now() - start
}
