/** The background passes on the clock: each in its turn, none twice at once, and none that stops because one failed. */
import { type Instant, microsPerSecond } from '#flows/instant'
import type { PassAnswer } from '#store/store'
import type { Broker } from './broker'
import { repeat } from './clock'
import { judgeWaiting } from './judge-waiting'
import { rememberedDirectory } from './store-directory'

type Pass = {
  readonly name: string
  readonly run: (now: Instant) => Promise<PassAnswer<object>>
  /** What the metrics count, out of what the pass did. */
  readonly rows?: string
}

type Loop = { readonly firstAfterMs: number; readonly thenEveryMs: number; readonly passes: readonly Pass[] }

export type PassLoops = { readonly stop: () => Promise<void> }

export function startPasses(broker: Broker): PassLoops {
  const loops = planLoops(broker).map(({ passes, ...timing }) =>
    repeat(broker.clock, timing, async () => {
      for (const pass of passes) await runPass(broker, pass)
    }),
  )
  return {
    stop: async () => {
      await Promise.all(loops.map((loop) => loop.stop()))
    },
  }
}

const hourMs = 3_600_000

function planLoops(broker: Broker): readonly Loop[] {
  const { store, settings } = broker
  const { passes } = store
  const resolveMs = settings.lateResolveIntervalSeconds * 1000
  return [
    {
      firstAfterMs: resolveMs,
      thenEveryMs: resolveMs,
      passes: [
        ...when(settings.lateResolveWindowSeconds > 0, {
          name: 'late-resolve',
          rows: 'resolved',
          run: (now: Instant) => passes.lateResolve(now, { windowSeconds: settings.lateResolveWindowSeconds }),
        }),
        ...when(settings.staleAliveSeconds > 0, {
          name: 'stale-alive',
          rows: 'died',
          run: (now: Instant) => passes.sweepStale(now, { staleSeconds: settings.staleAliveSeconds }),
        }),
      ],
    },
    {
      firstAfterMs: settings.foldIntervalSeconds * 1000,
      thenEveryMs: settings.foldIntervalSeconds * 1000,
      passes: [{ name: 'fold-edges', rows: 'folded', run: (now) => passes.foldEdges(now) }],
    },
    {
      firstAfterMs: settings.auditIntervalSeconds * 1000,
      thenEveryMs: settings.auditIntervalSeconds * 1000,
      passes: [{ name: 'audit', rows: 'judged', run: auditRun(broker) }],
    },
    {
      firstAfterMs: hourMs,
      thenEveryMs: hourMs,
      passes: [{ name: 'partitions', rows: 'made', run: (now) => passes.ensurePartitions(now) }],
    },
    {
      // A broker that is restarted again and again does not spend its life on old rows.
      firstAfterMs: 60_000,
      thenEveryMs: settings.retentionIntervalSeconds * 1000,
      passes: [
        { name: 'retention', rows: 'deletedPods', run: (now) => passes.retain(now, retentionOf(settings)) },
        ...when(store.engine === 'embedded', { name: 'vacuum', run: () => passes.vacuum() }),
      ],
    },
  ]
}

/** A flow whose peer the late pass may still find waits for it. */
function auditRun({ store, clock, settings, metrics }: Broker): Pass['run'] {
  const directory = rememberedDirectory(store, clock)
  return async (now) => {
    const answer = await store.passes.audit(now, {
      windowSeconds: settings.lateResolveWindowSeconds,
      prepare: async (objects) => judgeWaiting(objects, await directory()),
    })
    if (answer.kind === 'done') metrics.auditDropped.inc(answer.done.lost)
    return answer
  }
}

function when(condition: boolean, pass: Pass): readonly Pass[] {
  return condition ? [pass] : []
}

/** Dead pods outlive a broker that keeps no verdicts by a week, as they do in the compatible API. */
const podDaysWithoutVerdicts = 7

export function retentionOf(settings: Broker['settings']) {
  return {
    flowDays: settings.flowRetentionDays,
    podDays: settings.verdictRetentionDays === 0 ? podDaysWithoutVerdicts : settings.verdictRetentionDays,
    verdictDays: settings.verdictRetentionDays,
    batchRows: settings.retentionBatchRows,
  }
}

async function runPass({ clock, metrics, log }: Broker, { name, run, rows }: Pass): Promise<void> {
  const started = clock.now()
  try {
    const answer = await run(started)
    metrics.passRuns.inc({ pass: name, outcome: answer.kind })
    if (answer.kind === 'done') {
      const count: unknown = rows === undefined ? 0 : (answer.done as Readonly<Record<string, unknown>>)[rows]
      if (typeof count === 'number') metrics.passRows.inc({ pass: name }, count)
      log.debug({ pass: name, ...answer.done }, 'a pass is done')
    }
  } catch (error) {
    metrics.passRuns.inc({ pass: name, outcome: 'failed' })
    log.warn({ pass: name, err: error }, 'a pass failed; it is tried again at its next turn')
  }
  metrics.passSeconds.inc({ pass: name }, Math.max(0, (clock.now() - started) / microsPerSecond))
}
