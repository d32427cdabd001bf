/** The datapath of an agent, or why there is none yet: it is tried again, less and less often. */
import { Failure } from '#base/failure'
import type { NodeMode } from '#enforce/node-view'
import type { AgentDatapath } from './agent-datapath'
import type { AgentOptions } from './agent-options'
import { sentenceOfTrouble } from './system-error'

export type DatapathHolder = {
  readonly datapath: () => AgentDatapath | undefined
  /** Why there is none. */
  readonly why: () => string
  readonly mode: () => NodeMode
  readonly retry: (now: number) => void
  /** When it is tried again; undefined while it is open. */
  readonly nextTry: () => number | undefined
  readonly close: () => void
}

const firstPauseMs = 5000
const longestPauseMs = 5 * 60_000

type Options = Pick<AgentOptions, 'open' | 'mode' | 'pathMark' | 'modeWithout' | 'clock' | 'log'>

/** One that another agent holds is refused; one that cannot be opened now leaves the rest of the agent at work. */
export function openHolder({ open, mode, pathMark, modeWithout, clock, log }: Options): DatapathHolder {
  let datapath: AgentDatapath | undefined
  let why = ''
  let pause = firstPauseMs
  let nextAt = 0
  let without: NodeMode = 'unknown'

  function attempt(now: number): void {
    try {
      const opened = open()
      try {
        if (pathMark !== undefined) opened.setPathMark(pathMark)
        if (mode !== undefined) opened.setMode(mode)
      } catch (error) {
        opened.close()
        throw error
      }
      datapath = opened
      log.info({ mode: opened.mode(), interfaces: opened.interfaces().length }, 'the datapath is open')
    } catch (error) {
      const known = sentenceOfTrouble(error)
      if (known === undefined || (error instanceof Failure && error.code === 'kernel.in-use')) throw error
      const message = `the datapath cannot be opened: ${known}`
      if (message !== why) log.error(message)
      why = message
      without = mode === 'audit' || mode === 'enforce' ? 'unsupported' : (mode ?? modeWithout())
      nextAt = now + pause
      pause = Math.min(2 * pause, longestPauseMs)
    }
  }

  attempt(clock.now())
  return {
    datapath: () => datapath,
    why: () => why,
    mode: () => (datapath === undefined ? without : (readMode(datapath) ?? 'unknown')),
    retry(now) {
      if (datapath === undefined && now >= nextAt) attempt(now)
    },
    nextTry: () => (datapath === undefined ? nextAt : undefined),
    close: () => datapath?.close(),
  }
}

function readMode(datapath: AgentDatapath): NodeMode | undefined {
  try {
    return datapath.mode()
  } catch (error) {
    if (error instanceof Failure) return undefined
    throw error
  }
}
