/** The way onto a hook for kernels before 6.6: a clsact queueing discipline and a filter that tc(8) puts there. */
import { spawnSync } from 'node:child_process'
import { Failure } from '#base/failure'
import type { Hook } from './links'

/** Ours alone, so that other filters of the hook stay what they are. */
const place = ['prio', '1', 'handle', '0x7070']

/** In the calling thread's network namespace, which a child inherits. */
export function attachByClsact(interfaceName: string, hook: Hook, pinPath: string): void {
  tc(['qdisc', 'replace', 'dev', interfaceName, 'clsact'], (why) =>
    /must match existing|Exclusivity|File exists/.test(why)
      ? `; ${interfaceName} has another queueing discipline in the place of clsact: remove that (tc qdisc delete dev ${interfaceName} ingress)`
      : '',
  )
  const program = ['bpf', 'direct-action', 'object-pinned', pinPath]
  tc(['filter', 'replace', 'dev', interfaceName, hook, 'protocol', 'all', ...place, ...program])
}

/** Whether our filter is there and runs that program: an interface made anew under its name has none. */
export function hasFilter(interfaceName: string, hook: Hook, programId: number): boolean {
  return filterProgram(interfaceName, hook) === programId
}

/** The id of the program in our place; undefined where there is no filter in it. */
export function filterProgram(interfaceName: string, hook: Hook): number | undefined {
  const done = spawnSync('tc', ['-j', 'filter', 'show', 'dev', interfaceName, hook], {
    encoding: 'utf8',
    env: environment,
  })
  if (done.status !== 0 || done.stdout.trim() === '') return undefined
  const filters = JSON.parse(done.stdout) as readonly Filter[]
  return filters.find(({ options }) => options?.handle === place.at(-1))?.options?.prog?.id
}

type Filter = { readonly options?: { readonly handle?: string; readonly prog?: { readonly id?: number } } }

/** An interface that is gone took its filters along. */
export function detachByClsact(interfaceName: string, hook: Hook): void {
  spawnSync('tc', ['filter', 'delete', 'dev', interfaceName, hook, 'protocol', 'all', ...place, 'bpf'], {
    env: environment,
  })
}

const environment = { ...process.env, LC_ALL: 'C', PATH: `${process.env.PATH ?? ''}:/usr/sbin:/sbin` }

function tc(args: readonly string[], remedyOf: (why: string) => string = () => ''): void {
  const done = spawnSync('tc', args, { encoding: 'utf8', env: environment })
  if (done.status === 0) return
  const why = done.error === undefined ? done.stderr.trim() : 'tc could not be started; install iproute2'
  throw new Failure(
    'system.command-failed',
    `tc ${args.slice(0, 5).join(' ')} failed: ${why}${remedyOf(why)}`,
    done.error,
  )
}
