/** A PostgreSQL of its own for the tests: made in a temporary folder, reached over a free loopback port, ended by its process id. */
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export type TestPostgres = {
  readonly url: (database?: string) => string
  readonly pid: () => number
  readonly stop: (mode?: 'fast' | 'immediate') => void
  readonly start: () => void
  /** Ends the server and removes its folder. */
  readonly remove: () => void
}

type Found = { readonly ok: true; readonly bin: string } | { readonly ok: false; readonly reason: string }

/** PostgreSQL does not run as root, so root runs it as this one. */
const user = 'postgres'

export function findPostgres(): Found {
  const root = '/usr/lib/postgresql'
  const versions = existsSync(root) ? readdirSync(root).map(Number).filter(Number.isInteger) : []
  const newest = versions
    .sort((left, right) => right - left)
    .map((version) => join(root, String(version), 'bin'))
    .find((bin) => existsSync(join(bin, 'initdb')) && existsSync(join(bin, 'postgres')))
  if (newest === undefined) return { ok: false, reason: `no PostgreSQL under ${root}: apt-get install postgresql` }
  if (isRoot() && spawnSync('id', [user]).status !== 0)
    return { ok: false, reason: `there is no user ${user} to run it as` }
  return { ok: true, bin: newest }
}

export async function startPostgres(settings: readonly string[] = []): Promise<TestPostgres> {
  const found = findPostgres()
  if (!found.ok) throw new Error(found.reason)
  const { bin } = found
  const folder = mkdtempSync(join(tmpdir(), 'portolan-postgres-'))
  if (isRoot()) chownSync(folder, ...idsOf(user))
  const directory = join(folder, 'data')
  const password = randomBytes(12).toString('hex')
  run([join(bin, 'initdb'), '--no-sync', '--encoding=UTF8', '--locale=C', '--auth=trust', '-U', user, '-D', directory])
  const port = await freePort()
  const options = [
    `-p ${port}`,
    `-k ${folder}`,
    '-h 127.0.0.1',
    '-c max_connections=100',
    ...settings.map((one) => `-c ${one}`),
  ]
  const start = (): void => {
    run([join(bin, 'pg_ctl'), 'start', '-w', '-s', '-D', directory, '-l', join(folder, 'log'), '-o', options.join(' ')])
  }
  const stop = (mode: 'fast' | 'immediate' = 'fast'): void => {
    if (existsSync(join(directory, 'postmaster.pid')))
      run([join(bin, 'pg_ctl'), 'stop', '-w', '-s', '-m', mode, '-D', directory])
  }
  const remove = (): void => {
    stop('immediate')
    rmSync(folder, { recursive: true, force: true })
    process.off('exit', remove)
  }
  process.on('exit', remove)
  start()
  return {
    url: (database = 'postgres') => `postgres://${user}:${password}@127.0.0.1:${port}/${database}`,
    pid: () => Number(readFileSync(join(directory, 'postmaster.pid'), 'utf8').split('\n')[0]),
    start,
    stop,
    remove,
  }
}

function run(command: readonly string[]): void {
  const all = isRoot() ? ['runuser', '-u', user, '--', ...command] : command
  const [program = '', ...args] = all
  // The server inherits what it is given: with pipes, the wait for it would not end.
  const done = spawnSync(program, args, { stdio: ['ignore', 'ignore', 'ignore'], cwd: tmpdir() })
  if (done.status !== 0) throw new Error(`${all.join(' ')} failed with ${done.status ?? done.error?.message}`)
}

function isRoot(): boolean {
  return process.getuid?.() === 0
}

function idsOf(name: string): [number, number] {
  const id = (flag: string): number => Number(spawnSync('id', [flag, name], { encoding: 'utf8' }).stdout)
  return [id('-u'), id('-g')]
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(address !== null && typeof address === 'object' ? address.port : 0))
    })
  })
}
