/** The lock of a data directory: one process opens it, and a second one is told which. */
import { linkSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { Failure } from '#base/failure'

/** Who holds the lock: the start of the process tells it from a later one of the same number, as after a restart in a container. */
type Owner = { readonly pid: number; readonly started: string; readonly host: string }

export type DirectoryLock = { readonly release: () => void }

/** A lock of another host is judged by its age; its holder touches it this often. */
const touchMillis = 10_000
const silentMillis = 60_000

/** The lock lies beside the directory, so that moving the directory aside does not move it. */
export function lockDirectory(directory: string): DirectoryLock {
  const path = `${directory}.lock`
  const mine: Owner = { pid: process.pid, started: startOf(process.pid) ?? '', host: hostname() }
  const draft = `${path}.${process.pid}`
  try {
    writeFileSync(draft, `${JSON.stringify(mine)}\n`)
    take(path, draft, directory)
  } finally {
    rmSync(draft, { force: true })
  }
  const timer = setInterval(() => touch(path), touchMillis)
  timer.unref()
  return {
    release: () => {
      clearInterval(timer)
      if (isSame(readOwner(path), mine)) rmSync(path, { force: true })
    },
  }
}

/** A link is made by one process alone. A lock that nobody living holds is moved away first, and looked at again there. */
function take(path: string, draft: string, directory: string): void {
  for (let tries = 0; tries < 10; tries++) {
    if (link(draft, path)) return
    const owner = readOwner(path)
    if (owner === undefined || isLiving(owner, path)) throw locked(directory, path, owner)
    const stale = `${path}.stale-${process.pid}`
    try {
      renameSync(path, stale)
    } catch {
      continue
    }
    const moved = readOwner(stale)
    // Another process may have taken the lock between the look and the move; then it gets it back.
    if (moved !== undefined && isLiving(moved, stale)) link(stale, path)
    rmSync(stale, { force: true })
  }
  throw locked(directory, path, readOwner(path))
}

function link(from: string, to: string): boolean {
  try {
    linkSync(from, to)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false
    throw error
  }
}

function readOwner(path: string): Owner | undefined {
  try {
    const owner: Partial<Owner> = JSON.parse(readFileSync(path, 'utf8'))
    if (typeof owner.pid !== 'number') return undefined
    return { pid: owner.pid, started: owner.started ?? '', host: owner.host ?? '' }
  } catch {
    return undefined
  }
}

function isLiving(owner: Owner, path: string): boolean {
  if (owner.host !== hostname()) return Date.now() - modified(path) < silentMillis
  if (!isRunning(owner.pid)) return false
  const started = startOf(owner.pid)
  return started === undefined || owner.started === '' || started === owner.started
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

/** Clock ticks since boot, the 22nd field of /proc/PID/stat, after the command's name, which may hold anything. */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  } catch {
    return undefined
  }
}

function modified(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
}

function touch(path: string): void {
  try {
    const now = new Date()
    utimesSync(path, now, now)
  } catch {
    // The directory may be gone; whoever removed it knows.
  }
}

function isSame(left: Owner | undefined, right: Owner): boolean {
  return left?.pid === right.pid && left.started === right.started && left.host === right.host
}

function locked(directory: string, path: string, owner: Owner | undefined): Failure {
  const holder = owner === undefined ? 'a process that its lock does not name' : `process ${owner.pid} on ${owner.host}`
  return new Failure(
    'data-directory-locked',
    `the data directory ${directory} is in use by ${holder}; stop it, or give this one a directory of its own. ` +
      `If nothing runs there, remove ${path}.`,
  )
}
