/**
 * Installed and Enforcing of one binding, from what the attachment's node says of it. Sheet: traffic policy on a node,
 * "conditions derived by the controller". Applied alone is never enough for either.
 */
import type { TrafficPolicyBindingStatus } from '#model/traffic-policy-binding-schema'
import type { Judgement } from './condition'

/** What one node says of a binding. */
export type NodeEntry = NonNullable<TrafficPolicyBindingStatus['nodes']>[number]

/** Two missed heartbeats of ten minutes, and one resync of five; an entry of exactly this age is stale. */
export const staleAfterMs = 25 * 60_000

export type InstalledFacts = {
  /** The binding's. */
  readonly generation: number
  /** The attachment's as `namespace/name`, for messages. */
  readonly attachment: string
  /** `status.node` of the attachment. */
  readonly node: string | undefined
  /** Why the status of the attachment, or of the binding, could not be read; undefined where it could. */
  readonly unread?: { readonly attachment?: string; readonly binding?: string }
  /** Of that node; what other nodes say is of no matter. */
  readonly entry: NodeEntry | undefined
  /** Milliseconds since the epoch. */
  readonly now: number
}

type Answer = Pick<Judgement, 'reason' | 'message'>
type Test = (facts: InstalledFacts & { readonly node: string; readonly entry: NodeEntry }) => Answer | undefined

const directions = ['ingress', 'egress'] as const

/** The first that holds decides: an entry that is stale describes nothing any more, also where it says Failed. */
const tests: readonly Test[] = [testStale, testFailed, testPending]

export function judgeInstalled(facts: InstalledFacts): Judgement {
  const { reason, message } = whyNotInstalled(facts) ?? {
    reason: 'Installed',
    message: `${facts.node} has both directions installed, as generation ${facts.generation} of the binding says`,
  }
  return { type: 'Installed', status: reason === 'Installed' ? 'True' : 'False', reason, message }
}

function whyNotInstalled(facts: InstalledFacts): Answer | undefined {
  const { attachment, node, entry, unread } = facts
  if (unread?.attachment !== undefined) {
    const message = `the status of VPCAttachment ${attachment} cannot be read, so that its node is not known: ${unread.attachment}`
    return { reason: 'NoNodes', message }
  }
  if (node === undefined)
    return {
      reason: 'NoNodes',
      message: `VPCAttachment ${attachment} is on no node; whoever places the workload writes status.node`,
    }
  if (entry === undefined && unread?.binding !== undefined) {
    return { reason: 'Pending', message: `what ${node} says of the binding cannot be read: ${unread.binding}` }
  }
  if (entry === undefined)
    return {
      reason: 'Pending',
      message: `${node} has not said anything about the binding yet; is portolan agent --node ${node} running there, and does its status come here?`,
    }
  for (const test of tests) {
    const answer = test({ ...facts, node, entry })
    if (answer !== undefined) return answer
  }
  return undefined
}

function testStale({ node, entry, now }: Parameters<Test>[0]): Answer | undefined {
  const staleAt = momentOfStaleness(entry)
  if (staleAt !== undefined && now < staleAt) return undefined
  const since = entry.heartbeatTime === undefined ? 'gives no sign of life' : `was last heard of ${entry.heartbeatTime}`
  return {
    reason: 'Stale',
    message: `${node} ${since}; whether it still holds what it said is not known; look after portolan agent there, and compare the clocks`,
  }
}

/** When the entry turns stale, in milliseconds since the epoch; undefined where it has no readable heartbeat. */
export function momentOfStaleness({ heartbeatTime }: NodeEntry): number | undefined {
  const beat = Date.parse(heartbeatTime ?? '')
  return Number.isNaN(beat) ? undefined : beat + staleAfterMs
}

function testFailed({ node, entry }: Parameters<Test>[0]): Answer | undefined {
  const failed = directions.filter((direction) => entry[direction]?.state === 'Failed')
  if (failed.length === 0) return undefined
  const reasons = failed.map((direction) => `${direction} failed${withMessage(entry[direction]?.message)}`)
  return { reason: 'Failed', message: `${node}: ${reasons.join('; ')}` }
}

function testPending({ node, entry, generation }: Parameters<Test>[0]): Answer | undefined {
  const reasons = directions.flatMap((direction) => {
    const said = entry[direction]
    if (said === undefined) return [`nothing is said of ${direction}`]
    if (said.state !== 'Applied') return [`${direction} is pending${withMessage(said.message)}`]
    if (said.observedGeneration === generation) return []
    return [
      `${direction} is of generation ${said.observedGeneration} of the binding, which is at ${generation}; its agent has still to read that one`,
    ]
  })
  return reasons.length === 0 ? undefined : { reason: 'Pending', message: `${node}: ${reasons.join('; ')}` }
}

function withMessage(message: string | undefined): string {
  return message === undefined || message === '' ? '' : `: ${message}`
}

type Mode = NonNullable<NodeEntry['mode']>

const modeMessages: Readonly<Record<Mode, string>> = {
  Enforce: 'drops what the policies deny',
  Audit: 'decides and counts, and drops nothing (mode Audit); portolan agent mode enforce there makes it drop',
  Off: 'decides nothing (mode Off); portolan agent mode enforce there makes it decide and drop',
  Unsupported:
    'was told to decide, and its kernel cannot: nothing is protected; portolan agent mode there says what is missing',
  Unknown: 'does not know its mode; portolan agent mode there says why',
}

/** Only True means protected. An entry without a mode is of an older writer: unknown. */
export function judgeEnforcing(installed: Judgement, { node, entry }: InstalledFacts): Judgement {
  if (installed.status !== 'True') return { ...installed, type: 'Enforcing' }
  const mode = entry?.mode ?? 'Unknown'
  const isEnforcing = mode === 'Enforce'
  return {
    type: 'Enforcing',
    status: isEnforcing ? 'True' : 'False',
    reason: isEnforcing ? 'Enforcing' : mode,
    message: `${node} ${modeMessages[mode]}`,
  }
}
