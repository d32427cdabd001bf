/** The networks of path classes, from their setting into the datapath's table, and why they are not those of the setting. */
import { Failure } from '#base/failure'
import { pathClasses } from '#compile/traffic-policy/entry'
import { type PathPrefix, readPathPrefixes } from '#enforce/path-prefixes'
import { watchText } from '#sources/watch-text'
import type { AgentDatapath } from './agent-datapath'
import type { AgentOptions, WatchPathPrefixes } from './agent-options'

/** A file of them; one that is wrong is not used in part. */
export function pathPrefixFile(path: string): WatchPathPrefixes {
  return ({ take, tell }) =>
    watchText(path, {
      take(text) {
        const reading = readPathPrefixes(text)
        if (reading.kind === 'prefixes') return take(reading.prefixes)
        const [first, ...more] = reading.problems
        const others = more.length === 0 ? '' : ` (and ${more.length} more)`
        const place = first === undefined || first.path === '' ? '' : `${first.path}: `
        tell(
          `${path} is not used: ${place}${first?.message ?? 'it is no list'}${others}; ${first?.hint ?? 'write a list'}`,
        )
      },
      tell: (trouble) => tell(trouble),
    })
}

export type PathPrefixKeeper = {
  /** Brings the table to what was taken last, where it may differ; false where that is worth another try soon. */
  readonly settle: (datapath: AgentDatapath | undefined, mayDiffer: boolean) => boolean
  readonly trouble: () => string | undefined
  readonly refresh: () => void
  readonly close: () => void
}

type Options = Pick<AgentOptions, 'pathPrefixes' | 'log'>

export function keepPathPrefixes({ pathPrefixes, log }: Options, wake: () => void): PathPrefixKeeper {
  let wanted: readonly PathPrefix[] | undefined
  let settledFor: AgentDatapath | undefined
  let ofText: string | undefined
  let ofTable: string | undefined
  const watch = pathPrefixes?.({
    take(prefixes) {
      wanted = prefixes
      settledFor = undefined
      ofText = undefined
      wake()
    },
    tell(trouble) {
      const kept = `${trouble}; the networks of path classes that were read before count on`
      if (kept !== ofText) log.error(kept)
      ofText = kept
    },
  })
  return {
    settle(datapath, mayDiffer) {
      if (datapath === undefined || wanted === undefined) return true
      if (datapath === settledFor && !mayDiffer) return true
      const before = ofTable
      ofTable = attempt(() => {
        const rows =
          wanted?.map(({ vpc, prefix, path }) => ({ vpc, prefix, pathClass: pathClasses.indexOf(path) })) ?? []
        const changed = datapath.setPathPrefixes(rows)
        if (changed > 0) log.info({ changed, networks: rows.length }, 'networks of path classes are set')
        settledFor = datapath
      })
      if (ofTable !== undefined && ofTable !== before) log.error(ofTable)
      return ofTable === undefined
    },
    trouble: () => ofText ?? ofTable,
    refresh: () => watch?.refresh(),
    close: () => watch?.close(),
  }
}

function attempt(work: () => void): string | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    if (error instanceof Failure) return `networks of path classes cannot be set: ${error.message}`
    throw error
  }
}
