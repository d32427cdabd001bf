/** One pass over a node: looks at what is there, plans, carries out, and says what each direction came to. */
import type { Direction } from '#compile/traffic-policy/entry'
import type { DirectionState } from '#enforce/plan-direction'
import {
  bothDirections,
  type NodePlan,
  type NodeRow,
  type Place,
  planNode,
  planWithoutDatapath,
} from '#enforce/plan-node'
import type { WantedInterface } from '#enforce/wanted-node'
import type { Published } from '#kernel/datapath-publisher'
import type { AgentDatapath } from './agent-datapath'
import type { AgentLog } from './agent-log'
import { learnNames, type NameBook } from './build-view'
import { type CarriedOut, carryOut, placeName, settle } from './carry-out'

export type PassFacts = {
  readonly wanted: readonly WantedInterface[]
  readonly datapath: AgentDatapath | undefined
  /** Why there is no datapath. */
  readonly why: string
  readonly isPartial: boolean
  readonly isResync: boolean
  readonly looksForGone: boolean
  readonly now: number
  readonly memory: Memory
  readonly log: AgentLog
}

/** From one pass to the next: names, and what was told already. */
export type Memory = {
  readonly book: NameBook
  readonly unreadable: Set<number>
  /** Lifetimes whose links are held. */
  tokens: ReadonlySet<bigint>
  /** By place. */
  readonly failures: Map<string, string>
  /** By edge attachment and direction, why nothing is bound. */
  closedGates: ReadonlyMap<string, string>
  /** Why not everything is pinned, and what to do. */
  lostPins: string | undefined
}

export function newMemory(): Memory {
  return {
    book: new Map(),
    unreadable: new Set(),
    tokens: new Set(),
    failures: new Map(),
    closedGates: new Map(),
    lostPins: undefined,
  }
}

export type InterfaceState = {
  readonly wanted: WantedInterface
  readonly directions: Readonly<Record<Direction, DirectionState>>
}

export type Pass = {
  readonly plan: NodePlan
  readonly states: readonly InterfaceState[]
  /** False where something is worth another try soon: an interface without its row, a step that failed. */
  readonly isReady: boolean
}

export function reconcile(facts: PassFacts): Pass {
  const { wanted, datapath, why, memory } = facts
  if (datapath === undefined) return finish(planWithoutDatapath(wanted, why), nothingDone)
  restorePins(facts, datapath)
  dropGone(facts, datapath)
  const rows = readRows(datapath)
  holdNew(facts, datapath, rows)
  const boundAt = askOnce(datapath)
  noteUnreadable(facts, boundAt, rows)
  const { isPartial, isResync } = facts
  const plan = planNode(wanted, { rows, boundAt, isPartial, isResync, whyStrange: datapath.whyStrange })
  const done = carryOut(datapath, plan)
  learnNames(memory.book, plan, boundUids(boundAt, rows))
  sweepPins(facts, datapath)
  noteWork(facts, done, rows)
  noteClosedGates(facts, plan)
  return finish(plan, done, memory.lostPins)
}

/** What lost its pin would be lost with this process: it is pinned again, or told until it is. */
function restorePins({ memory, isResync, looksForGone, log }: PassFacts, datapath: AgentDatapath): void {
  const before = memory.lostPins
  const { pins, takenOver, trouble } = datapath.restorePins(isResync || looksForGone || before !== undefined)
  memory.lostPins = trouble?.why
  if (trouble !== undefined && trouble.why !== before) log.error(trouble.why)
  if (trouble === undefined && before !== undefined) log.info('everything is pinned again')
  if (pins > 0) log.warn({ pins }, 'pins that were gone are made again, of what is held')
  if (takenOver > 0) log.warn('interfaces of another datapath in the same folder are taken over; its mode is not')
}

const nothingDone: CarriedOut = { published: 0, unbound: [], failures: new Map() }

function finish(plan: NodePlan, { failures }: CarriedOut, lostPins?: string): Pass {
  const states = plan.interfaces.map((one) => {
    const directions = settle(one, failures)
    return { wanted: one.wanted, directions: lostPins === undefined ? directions : warn(directions, lostPins) }
  })
  const isWaiting = plan.interfaces.some(({ wanted, row }) => row === undefined && wanted.takenBy === undefined)
  return { plan, states, isReady: !isWaiting && failures.size === 0 && lostPins === undefined }
}

/** It is applied and decides, and would not outlive the agent. */
function warn(directions: InterfaceState['directions'], message: string): InterfaceState['directions'] {
  const told = (one: DirectionState): DirectionState => (one.state === 'Applied' ? { ...one, message } : one)
  return { ingress: told(directions.ingress), egress: told(directions.egress) }
}

function dropGone({ looksForGone, log }: PassFacts, datapath: AgentDatapath): void {
  if (!looksForGone) return
  const { gone, hookedAgain } = datapath.dropGone()
  for (const { name, slot } of gone) log.info({ interface: name, slot }, 'an interface is gone, or its programs are')
  for (const { name, slot } of hookedAgain) {
    log.warn(
      { interface: name, slot },
      'another hand took programs off an interface, and they are put back; its packets were not decided meanwhile; find out who removes filters or the clsact queueing discipline there',
    )
  }
}

/** What others attached meanwhile keeps its programs from now on, even if the bpffs goes. */
function holdNew({ memory }: PassFacts, datapath: AgentDatapath, rows: readonly NodeRow[]): void {
  const { tokens } = memory
  memory.tokens = new Set(rows.map(({ token }) => token))
  if (memory.lostPins === undefined && rows.some(({ token }) => !tokens.has(token))) datapath.hold()
}

function readRows(datapath: AgentDatapath): readonly NodeRow[] {
  return datapath.interfaces().map((held) => {
    const { slot, token, name } = held
    return { slot, token, name, isHere: datapath.isHere(held) }
  })
}

type BoundAt = (place: Place) => Published | undefined

/** Each question is a call to the kernel, and nothing changes before the plan is made. */
function askOnce(datapath: AgentDatapath): BoundAt {
  const known = new Map<string, Published | undefined>()
  return (place) => {
    const name = placeName(place)
    if (!known.has(name)) known.set(name, datapath.published(place))
    return known.get(name)
  }
}

/** As they were before the plan was carried out. */
function boundUids(boundAt: BoundAt, rows: readonly NodeRow[]): ReadonlySet<string> {
  const bound = rows.flatMap(({ slot }) => bothDirections.map((direction) => boundAt({ slot, direction })))
  return new Set(bound.flatMap((one) => one?.snapshot?.policyUid ?? []))
}

/** Verdicts stay as they are until it is published anew, or unbound. */
function noteUnreadable({ memory, log }: PassFacts, boundAt: BoundAt, rows: readonly NodeRow[]): void {
  for (const { slot, name } of rows) {
    for (const direction of bothDirections) {
      const bound = boundAt({ slot, direction })
      if (bound === undefined || bound.snapshot !== undefined || memory.unreadable.has(bound.mapId)) continue
      memory.unreadable.add(bound.mapId)
      log.warn(
        { interface: name, direction },
        'what is bound has lost its pin and cannot be read: it counts as empty, decides on, and is published anew or unbound',
      )
    }
  }
}

function sweepPins({ now, log }: PassFacts, datapath: AgentDatapath): void {
  const swept = datapath.sweepWhenDue(now)
  if (swept > 0) log.info({ pins: swept }, 'pins of what is bound nowhere are removed')
}

function noteWork(
  { memory, log }: PassFacts,
  { published, unbound, failures }: CarriedOut,
  rows: readonly NodeRow[],
): void {
  if (published > 0 || unbound.length > 0) log.info({ published, unbound: unbound.length }, 'reconciled')
  for (const place of memory.failures.keys()) if (!failures.has(place)) memory.failures.delete(place)
  for (const [place, failure] of failures) {
    if (memory.failures.get(place) === failure) continue
    memory.failures.set(place, failure)
    const [slot, direction] = place.split(' ')
    const row = rows.find((one) => String(one.slot) === slot)
    log.warn({ interface: row?.name, direction, failure }, 'a step failed and is tried again')
  }
}

/** Edge links have no status: the log is where it is told why one has no policy. */
function noteClosedGates({ memory, log }: PassFacts, { interfaces }: NodePlan): void {
  const closed = new Map<string, string>()
  for (const { wanted } of interfaces) {
    const { kind, namespace, attachment, directions } = wanted
    if (kind !== 'EdgeAttachment') continue
    for (const direction of bothDirections) {
      const one = directions[direction]
      const name = `${namespace}/${attachment} ${direction}`
      if (one.kind === 'nothing') closed.set(name, one.message)
      if (one.kind !== 'nothing' || memory.closedGates.get(name) === one.message) continue
      log.warn({ attachment: `${namespace}/${attachment}`, interface: wanted.interface, direction }, one.message)
    }
  }
  memory.closedGates = closed
}
