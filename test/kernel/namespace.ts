/** Network namespaces that belong to this process, and their end: on close, on exit, on an exception and on a signal. */
import type { ChildProcess } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { mustRun, runCommand } from './run-command'

const folder = '/run/netns'
const prefix = 'portolan-'
const names = new Set<string>()
const children = new Set<ChildProcess>()
let count = 0
let isWatching = false

/** Makes one namespace a label; each name holds the process id, so that runs side by side cannot meet. */
export function createNamespaces(labels: readonly string[]): string[] {
  watchForTheEnd()
  count += 1
  const made = labels.map((label) => `${prefix}${process.pid}-${count}-${label}`)
  for (const name of made) names.add(name)
  mustRun(['ip', '-batch', '-'], made.map((name) => `netns add ${name}\n`).join(''))
  return made
}

export function removeNamespaces(gone: readonly string[]): void {
  const present = gone.filter((name) => existsSync(`${folder}/${name}`))
  if (present.length > 0)
    runCommand(['ip', '-force', '-batch', '-'], present.map((name) => `netns delete ${name}\n`).join(''))
  for (const name of gone) names.delete(name)
}

/** The command that runs another inside a namespace. */
export function inside(namespace: string, command: readonly string[]): string[] {
  return ['ip', 'netns', 'exec', namespace, ...command]
}

/** A long-lived child ends with this process at the latest: it would keep its namespace alive. */
export function endWithUs(child: ChildProcess): void {
  children.add(child)
  child.once('exit', () => children.delete(child))
}

/** What a process that was killed outright left behind is removed by the next one. */
function removeStale(): void {
  if (!existsSync(folder)) return
  const stale = readdirSync(folder).filter((name) => {
    const pid = new RegExp(`^${prefix}(\\d+)-`).exec(name)?.[1]
    return pid !== undefined && !existsSync(`/proc/${pid}`)
  })
  removeNamespaces(stale)
}

function removeAll(): void {
  for (const child of children) child.kill('SIGKILL')
  removeNamespaces([...names])
}

function watchForTheEnd(): void {
  if (isWatching) return
  isWatching = true
  removeStale()
  process.on('exit', removeAll)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => {
      removeAll()
      process.kill(process.pid, signal)
    })
  }
}
