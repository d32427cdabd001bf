/** The real program as a process of its own: started, asked where it listens, and ended by its id. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { clientOf } from './running-broker'

const root = join(fileURLToPath(import.meta.url), '../../..')

export type BrokerProcess = ReturnType<typeof clientOf> & {
  readonly pid: number
  readonly output: () => string
  /** Resolves with the exit code, or null after a kill, when the process is gone. */
  readonly end: (signal: NodeJS.Signals) => Promise<number | null>
}

/** The program as it is shipped: built when it is older than its sources. */
export function buildProgram(): void {
  const done = spawnSync(process.execPath, ['scripts/setup.mjs'], { cwd: root, encoding: 'utf8' })
  if (done.status !== 0) throw new RangeError(`the program was not built: ${done.stderr}`)
}

/** Of a process that lives for seconds, half the start would be optimising a database that is about to be killed. */
export const shortLived = ['--liftoff-only'] as const

export async function startProcess(
  args: readonly string[],
  env: Record<string, string> = {},
  nodeFlags: readonly string[] = [],
): Promise<BrokerProcess> {
  const program = [...nodeFlags, 'bin/portolan.js', 'broker', '--listen', '127.0.0.1:0', ...args]
  const child = spawn(process.execPath, program, {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const stop = (): void => void child.kill('SIGKILL')
  process.once('exit', stop)
  let output = ''
  const gone = exitOf(child)
  const url = await new Promise<string>((done, fail) => {
    const take = (chunk: Buffer): void => {
      output += chunk.toString()
      const found = /answers on (http:\/\/\S+)/.exec(output)?.[1]
      if (found !== undefined) done(found)
    }
    child.stdout.on('data', take)
    child.stderr.on('data', take)
    void gone.then((code) => fail(new RangeError(`the broker ended with ${code}: ${output}`)))
  })
  return {
    ...clientOf({ url }),
    pid: child.pid ?? 0,
    output: () => output,
    end: (signal) => {
      process.off('exit', stop)
      child.kill(signal)
      return gone
    },
  }
}

function exitOf(child: ChildProcess): Promise<number | null> {
  return new Promise((done) => child.once('close', (code) => done(code)))
}
