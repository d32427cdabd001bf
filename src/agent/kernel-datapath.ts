/** The kernel's datapath as the agent opens it, and word of interfaces that come and go beside it. */
import { type FSWatcher, statSync, watch } from 'node:fs'
import { Failure } from '#base/failure'
import type { NodeMode } from '#enforce/node-view'
import { openBpf } from '#kernel/bpf-sys'
import { openDatapath } from '#kernel/datapath'
import { foldersOf } from '#kernel/datapath-tables'
import type { Native } from '#kernel/native'
import { namespaceInode, ownNamespace } from '#kernel/network-namespace'
import { readNodeMode } from '#kernel/node-mode'
import { checkPreflight } from '#kernel/preflight'
import { listInterfaces, watchLinks } from '#kernel/rtnetlink'
import { findStrangers } from '#kernel/strangers'
import type { AgentDatapath } from './agent-datapath'
import type { AgentLog } from './agent-log'
import type { AgentOptions } from './agent-options'

export type KernelPlace = {
  /** On a bpffs. */
  readonly folder: string
  /** Throws where this is no Linux that Portolan knows. */
  readonly native: () => Native
}

/** All that can be known to be missing is told at once, and before anything is made. */
export function openKernelDatapath({ folder, native }: KernelPlace): AgentDatapath {
  const { hooks } = checkPreflight({ folder, native: native() })
  const strangers = { bpf: openBpf(native()), folders: foldersOf(folder) }
  const datapath = openDatapath({ folder, native: native() })
  const own = namespaceInode(ownNamespace)
  return {
    ...datapath,
    isHere: ({ namespace }) => namespace === own,
    whyStrange: (name) => findStrangers(strangers, name, hooks),
  }
}

/** What the kernel holds goes on deciding, also where this process cannot open it. */
export function modeOfKernel({ folder, native }: KernelPlace): NodeMode {
  try {
    return readNodeMode({ folder, native: native() }).mode
  } catch (error) {
    if (error instanceof Failure) return 'unknown'
    throw error
  }
}

/**
 * By rtnetlink in the agent's own network namespace, and by the folder of pinned links for those that are attached in any
 * other. Either may be missing: then the agent's own second looks find what came and went.
 */
export function watchInterfaces({ folder, native }: KernelPlace, log: AgentLog): AgentOptions['interfaces'] {
  const folders = foldersOf(folder)
  return (wake) => {
    const links = attempt(log, () => {
      const names = new Map(listInterfaces(native()).map(({ index, name }) => [index, name]))
      return watchLinks(native(), (event) => {
        if (event.kind === 'lost') return wake({ mayBeGone: true })
        if (event.kind === 'unhooked') {
          const name = names.get(event.index)
          if (name !== undefined) wake({ name, mayBeGone: false, mayBeUnhooked: true })
          return
        }
        const { index, name } = event.link
        const before = names.get(index)
        if (event.kind === 'gone') names.delete(index)
        else names.set(index, name)
        // Whoever had it by its former name has it no more.
        if (before !== undefined && before !== name) wake({ name: before, mayBeGone: false })
        wake({ name, mayBeGone: event.kind === 'gone' })
      })
    })
    let pins: { readonly watcher: FSWatcher; readonly of: string } | undefined
    const forget = (): void => {
      pins?.watcher.close()
      pins = undefined
    }
    /** The folder is there once a datapath has been opened, goes with its bpffs, and is another one when that comes again. */
    const watchPins = (): void => {
      const of = identityOf(folders.links)
      if (of === pins?.of) return
      forget()
      // What is attached anew may have the name of one that went where nobody hears of it.
      const watcher = of === undefined ? undefined : watchFolder(folders.links, () => wake({ mayBeGone: true }))
      if (of === undefined || watcher === undefined) return
      watcher.on('error', forget)
      pins = { watcher, of }
    }
    watchPins()
    return {
      refresh: watchPins,
      close() {
        links?.close()
        forget()
      },
    }
  }
}

/** Numbers of inodes repeat on another mount. */
function identityOf(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path)
    return `${dev} ${ino}`
  } catch {
    return undefined
  }
}

/** Where the system gives no more watches, a second look finds what was attached. */
function watchFolder(folder: string, changed: () => void): FSWatcher | undefined {
  try {
    return watch(folder, { persistent: false }, changed)
  } catch {
    return undefined
  }
}

function attempt<T>(log: AgentLog, work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    log.warn(`interfaces that come and go are not heard of at once: ${error.message}`)
    return undefined
  }
}
