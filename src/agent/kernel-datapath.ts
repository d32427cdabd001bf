/** The kernel's datapath as the agent opens it, and word of interfaces that come and go beside it. */
import { type FSWatcher, watch } from 'node:fs'
import { Failure } from '#base/failure'
import type { NodeMode } from '#enforce/node-view'
import { openDatapath } from '#kernel/datapath'
import { foldersOf } from '#kernel/datapath-tables'
import type { Native } from '#kernel/native'
import { namespaceInode, ownNamespace } from '#kernel/network-namespace'
import { readNodeMode } from '#kernel/node-mode'
import { checkPreflight } from '#kernel/preflight'
import { watchLinks } from '#kernel/rtnetlink'
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
  checkPreflight({ folder, native: native() })
  const datapath = openDatapath({ folder, native: native() })
  const own = namespaceInode(ownNamespace)
  return { ...datapath, isHere: ({ namespace }) => namespace === own }
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
  return (wake) => {
    const links = attempt(log, () =>
      watchLinks(native(), (event) => {
        if (event.kind === 'lost') wake({ mayBeGone: true })
        else wake({ name: event.link.name, mayBeGone: event.kind === 'gone' })
      }),
    )
    let pins: FSWatcher | undefined
    // The folder is there once a datapath has been opened.
    const watchPins = (): FSWatcher => {
      const watcher = watch(foldersOf(folder).links, { persistent: false }, () => wake({ mayBeGone: false }))
      watcher.on('error', () => watcher.close())
      return watcher
    }
    try {
      pins = watchPins()
    } catch {
      log.debug('the folder of pinned links is not watched: it is not there yet')
    }
    return {
      close() {
        links?.close()
        pins?.close()
      },
    }
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
