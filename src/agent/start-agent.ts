/** The node's loop: reconciles at once when something changes, again every five minutes, and sooner where something is not ready. */
import { type Finding, printFinding } from '#base/finding'
import type { NodeView } from '#enforce/node-view'
import type { NodePlan } from '#enforce/plan-node'
import { type WantedInterface, wantedOfNode } from '#enforce/wanted-node'
import type { ObjectsRead } from '#sources/watch-source'
import type { AgentClock } from './agent-clock'
import type { AgentLog } from './agent-log'
import type { AgentOptions } from './agent-options'
import { viewInterface } from './build-view'
import { openHolder } from './datapath-holder'
import { keepPathPrefixes } from './path-prefix-keeper'
import { newMemory, reconcile } from './reconcile'
import { openReporter } from './report-status'
import { guardStatuses } from './status-guard'
import { sentenceOfTrouble } from './system-error'

export type RunningAgent = {
  readonly view: () => NodeView
  /** Why the agent cannot do its work; undefined where it can, and of what failed once and is only tried again. */
  readonly trouble: () => string | undefined
  /** Waits until there is nothing to do before the next event or timer. */
  readonly settled: () => Promise<void>
  /** Everything stays as it is bound: a dead agent leaves enforcement standing. */
  readonly stop: () => Promise<void>
}

const resyncMs = 5 * 60_000
const retryMs = 5000
/** Of one reading: what a whole cluster's objects may have wrong must not drown the log. */
const mostFindings = 50
/** A moment that is past already must not make the loop spin. */
const shortestPauseMs = 100
const longestSleepMs = 60_000

/** So many times in a row are no chance. */
const troublingFailures = 2

/** A second agent of the same datapath is refused: the Failure is thrown. */
export async function startAgent(options: AgentOptions): Promise<RunningAgent> {
  const { node, clock, log } = options
  const reporter = await openReporter(options)
  const holder = openHolder(options)
  const memory = newMemory()
  const { book } = memory
  const loop = openLoop(clock, log, pass)
  let read: ObjectsRead | undefined
  let wanted: readonly WantedInterface[] = []
  let plan: NodePlan | undefined
  let resyncAt = clock.now()
  let passedAt = 0
  let mayBeGone = true
  let counterReadErrors = 0
  let passesWithFailures = 0
  let isModeTold = false
  let told: ReadonlySet<string> = new Set()

  const pathPrefixes = keepPathPrefixes(options, loop.wake)
  const statuses = guardStatuses(options, reporter, loop.wake)

  const objects = options.objects({
    take(next) {
      noteFindings(next.findings)
      read = next
      wanted = wantedOfNode(next.cluster, node)
      loop.wake()
    },
    tell: (trouble) => log.warn(trouble),
  })
  const interfaces = options.interfaces((change) => {
    const isOurs = change.name === undefined || wanted.some((one) => one.interface === change.name)
    if (!isOurs && !change.mayBeGone) return
    mayBeGone ||= change.mayBeGone || change.mayBeUnhooked === true
    loop.wake()
  })

  /** Each is told once, for as long as it is so. */
  function noteFindings(findings: readonly Finding[]): void {
    const lines = findings.filter(({ severity }) => severity !== 'info').map(printFinding)
    for (const line of lines.filter((one) => !told.has(one)).slice(0, mostFindings)) log.warn(line)
    told = new Set(lines)
  }

  /** Nothing is decided before the objects were read once: an empty list would unbind everything. */
  async function pass(): Promise<number> {
    const now = clock.now()
    holder.retry(now)
    // A clock that was set back must not put the next round off by as much.
    if (now < passedAt) resyncAt = now
    passedAt = now
    interfaces.refresh()
    if (read === undefined) return holder.nextTry() ?? now + resyncMs
    const isResync = now >= resyncAt
    if (isResync) {
      resyncAt = now + resyncMs
      objects.refresh()
      pathPrefixes.refresh()
      await reporter.isAsWritten()
    }
    const hasPaths = pathPrefixes.settle(holder.datapath(), isResync)
    const done = reconcile({
      wanted,
      datapath: holder.datapath(),
      why: holder.why(),
      isPartial: read.isPartial,
      isResync,
      looksForGone: isResync || mayBeGone,
      now,
      memory,
      log,
    })
    plan = done.plan
    mayBeGone = false
    passesWithFailures = memory.failures.size > 0 ? passesWithFailures + 1 : 0
    const report = await reporter.report({
      cluster: read.cluster,
      isPartial: read.isPartial,
      states: done.states,
      mode: holder.mode(),
      now,
    })
    statuses.refresh()
    noteMode()
    const isReady = done.isReady && report.isWritten && hasPaths
    const times = [resyncAt, report.heartbeatAt, holder.nextTry(), isReady ? undefined : now + retryMs]
    return Math.min(...times.filter((time) => time !== undefined))
  }

  function noteMode(): void {
    const lost = modeTrouble()
    if (lost !== undefined && !isModeTold) log.error(lost)
    isModeTold = lost !== undefined
  }

  /** A datapath is off until somebody says otherwise: also the one that is made where another was lost. */
  function modeTrouble(): string | undefined {
    const { modeBefore } = reporter
    const datapath = holder.datapath()
    if (modeBefore === undefined || datapath === undefined || datapath.isModeChosen()) return undefined
    const word = modeBefore.toLowerCase()
    return `nothing is decided: the datapath is new and its mode off, and the one before it, whose mode was ${word}, is gone with its pins; set the mode with portolan agent mode ${word} (or --mode ${word}), and attach the interfaces again`
  }

  /** What is not pinned goes with this process: the last moment to make it good. */
  function lastPins(): string | undefined {
    try {
      const trouble = holder.datapath()?.restorePins(true).trouble
      if (trouble === undefined) return undefined
      const { why, isHeldAlone } = trouble
      return isHeldAlone
        ? `${why}; the agent ends before that, and programs that TCX links hold go with it: their interfaces are open until they are attached again`
        : `${why}; the agent ends, and the pins of its programs are there, so that what is bound stays`
    } catch (error) {
      const why = sentenceOfTrouble(error) ?? String(error)
      return `whether everything is pinned cannot be looked at: ${why}; what is not pinned goes with the agent, and an interface of which the next one says that it is not attached is open: attach it again`
    }
  }

  /** Failures of one pass that the next makes good are the log's alone. */
  function stepTrouble(): string | undefined {
    const [first] = memory.failures
    if (first === undefined || passesWithFailures < troublingFailures) return undefined
    const [place, failure] = first
    const held = plan?.interfaces.find(({ row }) => row !== undefined && place.startsWith(`${row.slot} `))
    const [slot, direction] = place.split(' ')
    return `a step keeps failing at ${held?.wanted.interface ?? `slot ${slot}`} ${direction}: ${failure}`
  }

  loop.wake()
  return {
    trouble: () =>
      holder.datapath() === undefined
        ? holder.why()
        : (loop.trouble() ??
          memory.lostPins ??
          modeTrouble() ??
          pathPrefixes.trouble() ??
          stepTrouble() ??
          reporter.trouble()),
    view: () => {
      const datapath = holder.datapath()
      const missed = (): void => {
        counterReadErrors += 1
      }
      const views =
        datapath === undefined
          ? []
          : (plan?.interfaces ?? []).flatMap((one) => viewInterface(one, { datapath, book, missed }) ?? [])
      return { node, mode: holder.mode(), interfaces: views, counterReadErrors }
    },
    settled: loop.settled,
    stop: async () => {
      objects.close()
      interfaces.close()
      pathPrefixes.close()
      statuses.close()
      await loop.stop()
      const lost = lastPins()
      if (lost !== undefined) log.error(lost)
      holder.close()
    },
  }
}

type Loop = {
  readonly wake: () => void
  readonly settled: () => Promise<void>
  readonly stop: () => Promise<void>
  /** Why passes keep failing. */
  readonly trouble: () => string | undefined
}

/** Passes never overlap; one that was woken meanwhile follows the other. `pass` returns when the next is due. */
function openLoop(clock: AgentClock, log: AgentLog, pass: () => Promise<number>): Loop {
  let isWanted = false
  let isStopped = false
  let running: Promise<void> | undefined
  let cancel = (): void => {}
  let failuresInARow = 0
  let failure = ''

  async function run(): Promise<void> {
    // Changes of one moment, such as the events of one burst, are one pass.
    await new Promise((resolve) => setImmediate(resolve))
    while (isWanted && !isStopped) {
      isWanted = false
      cancel()
      const next = await guarded()
      if (!isStopped && !isWanted) sleepUntil(next)
    }
    running = undefined
  }

  /** In short sleeps: a clock that is set forward or back meanwhile puts nothing off by more than one of them. */
  function sleepUntil(next: number): void {
    const now = clock.now()
    const pause = Math.min(longestSleepMs, Math.max(shortestPauseMs, next - now))
    cancel = clock.after(pause, () => {
      if (clock.now() >= next || clock.now() < now) wake()
      else sleepUntil(next)
    })
  }

  async function guarded(): Promise<number> {
    try {
      const next = await pass()
      failuresInARow = 0
      failure = ''
      return next
    } catch (error) {
      failuresInARow += 1
      const known = sentenceOfTrouble(error)
      // One thing that nobody thought of must not end the service of all the rest.
      if (known === undefined) log.error({ err: error }, 'reconciling failed: this is a bug of Portolan')
      else if (known !== failure) log.error(`reconciling failed: ${known}`)
      failure = known ?? String(error)
      return clock.now() + retryMs
    }
  }

  function wake(): void {
    isWanted = true
    if (!isStopped) running ??= run()
  }

  return {
    wake,
    trouble: () => (failuresInARow < troublingFailures ? undefined : `reconciling keeps failing: ${failure}`),
    settled: async () => {
      while (running !== undefined) await running
    },
    stop: async () => {
      isStopped = true
      cancel()
      while (running !== undefined) await running
    },
  }
}
