/** A node for a test: its kernel, or the model of one, its objects as they are set, its clock as it is turned, its statuses. */
import type { EnforcedMode } from '#compile/traffic-policy/datapath-maps'
import type { Direction } from '#compile/traffic-policy/entry'
import type { HeldInterface } from '#kernel/datapath'
import type { Fault } from '#kernel/faults'
import { buildCluster } from '#manifests/build-cluster'
import type { RawRecord } from '#manifests/text/raw-object'
import { type StatusPatch, statusFilePath } from '#wire/status-file'
import type { AgentDatapath } from '../../src/agent/agent-datapath'
import type { AgentOptions, InterfaceChange } from '../../src/agent/agent-options'
import { type RunningAgent, startAgent } from '../../src/agent/start-agent'
import type { StatusSink } from '../../src/agent/status-sink'
import type { WatchHandlers } from '../../src/sources/watch-source'
import { type TurnedClock, turnedClock } from './turned-clock'

/** Counter rows of the kernels of a suite, so that a policy of 40 rules never fits. */
export const fewRows = 24

/** What a suite asks of a kernel. */
export type NodeKernel = {
  readonly open: () => AgentDatapath
  /** Makes the link and attaches it, as a CNI chain does; again where it was deleted. */
  readonly attach: (name: string) => HeldInterface
  readonly unlink: (name: string) => void
  /** Whether a new connection of that direction gets its answer. */
  readonly passes: (name: string, direction: Direction) => boolean
  readonly faults: Set<Fault>
  readonly pins: () => readonly string[]
  readonly dropPin: (name: string) => void
  readonly strayPin: (name: string) => void
  /** As another process does, past the agent. */
  readonly setMode: (mode: EnforcedMode) => void
  readonly unbindBehind: (place: { readonly slot: number; readonly direction: Direction }) => void
  readonly close: () => void
}

export type AgentWorld = {
  readonly kernel: NodeKernel
  readonly clock: TurnedClock
  readonly statuses: Map<string, StatusPatch>
  /** Every write and removal, in order. */
  readonly writes: string[]
  readonly logged: string[]
  /** Objects as manifests; they count at once. */
  readonly set: (objects: readonly RawRecord[], isPartial?: boolean) => Promise<void>
  readonly start: (more?: Partial<AgentOptions>) => Promise<RunningAgent>
  readonly stop: () => Promise<void>
  readonly agent: () => RunningAgent
  readonly advance: (seconds: number) => Promise<void>
  /** Word of an interface, as rtnetlink gives it. */
  readonly hear: (change: InterfaceChange) => Promise<void>
  readonly entry: (binding: string) => StatusPatch['status']['nodes'][number] | undefined
}

export function agentWorld(kernel: NodeKernel, node = 'n1'): AgentWorld {
  const clock = turnedClock()
  const statuses = new Map<string, StatusPatch>()
  const writes: string[] = []
  const logged: string[] = []
  let objects: { readonly list: readonly RawRecord[]; readonly isPartial: boolean } | undefined
  let handlers: WatchHandlers | undefined
  let wake: ((change: InterfaceChange) => void) | undefined
  let running: RunningAgent | undefined

  const status: StatusSink = {
    load: async () => [...statuses.values()],
    watch: () => ({ refresh: () => {}, close: () => {} }),
    write: async (patch) => {
      const path = statusFilePath(node, patch.metadata)
      writes.push(`write ${path}`)
      statuses.set(path, patch)
    },
    remove: async (object) => {
      const path = statusFilePath(node, object)
      writes.push(`remove ${path}`)
      statuses.delete(path)
    },
  }
  const give = (): void => {
    if (objects === undefined || handlers === undefined) return
    const raw = objects.list.map((value, index) => ({
      kind: String(value.kind),
      apiVersion: String(value.apiVersion),
      value,
      origin: { file: 'test', index: `items[${index}]` },
    }))
    const { value: cluster, findings } = buildCluster(raw)
    handlers.take({ cluster, findings, isPartial: objects.isPartial })
  }
  const settle = async (): Promise<void> => running?.settled()
  return {
    kernel,
    clock,
    statuses,
    writes,
    logged,
    async set(list, isPartial = false) {
      objects = { list, isPartial }
      give()
      await settle()
    },
    async start(more = {}) {
      running = await startAgent({
        node,
        status,
        objects(next) {
          handlers = next
          give()
          return { refresh: () => {}, close: () => (handlers = undefined) }
        },
        open: kernel.open,
        modeWithout: () => 'unknown',
        interfaces(next) {
          wake = next
          return { refresh: () => {}, close: () => (wake = undefined) }
        },
        clock,
        log: listener(logged),
        ...more,
      })
      await settle()
      return running
    },
    async stop() {
      await running?.stop()
      running = undefined
    },
    agent() {
      if (running === undefined) throw new Error('the agent was started')
      return running
    },
    advance: (seconds) => clock.advance(seconds * 1000, settle),
    async hear(change) {
      wake?.(change)
      await settle()
    },
    entry: (binding) => {
      const [namespace = '', name = ''] = binding.split('/')
      return statuses.get(statusFilePath(node, { namespace, name }))?.status.nodes[0]
    },
  }
}

function listener(logged: string[]): AgentOptions['log'] {
  const note = (first: unknown, message?: string): void => {
    logged.push(message ?? String(first))
  }
  return { info: note, warn: note, error: note, debug: note } as AgentOptions['log']
}
