/** One node: what all its interfaces are to have, held against what its datapath has, as steps and what they come to. */
import type { Direction } from '#compile/traffic-policy/entry'
import { type Bound, type DirectionPlan, type DirectionState, planDirection } from './plan-direction'
import type { Wanted, WantedInterface } from './wanted-node'

export const bothDirections = ['ingress', 'egress'] as const satisfies readonly Direction[]

/** An interface that the datapath holds. */
export type NodeRow = {
  readonly slot: number
  /** Of its lifetime: never zero, and another one for each. */
  readonly token: bigint
  readonly name: string
  /** In the network namespace of the agent. */
  readonly isHere: boolean
}

export type Place = { readonly slot: number; readonly direction: Direction }

export type NodeFacts = {
  readonly rows: readonly NodeRow[]
  readonly boundAt: (place: Place) => Bound | undefined
  /** Why an interface without a row is under policy all the same; undefined where it is not. */
  readonly whyStrange: (interfaceName: string) => string | undefined
  /** Objects were read in part: what is missing may be there. */
  readonly isPartial: boolean
  /** What no attachment claims is unbound at a resync only, so that one that is moved about is not cut off at once. */
  readonly isResync: boolean
}

export type PlannedDirection = DirectionPlan & { readonly direction: Direction }

export type PlannedInterface = {
  readonly wanted: WantedInterface
  readonly row?: NodeRow
  readonly directions: readonly PlannedDirection[]
}

export type NodePlan = {
  readonly interfaces: readonly PlannedInterface[]
  /** To be unbound: their interfaces are no attachment's. */
  readonly unclaimed: readonly Place[]
}

export function planNode(wanted: readonly WantedInterface[], facts: NodeFacts): NodePlan {
  const interfaces = wanted.map((one) => planInterface(one, facts))
  const claimed = new Set(interfaces.map(({ row }) => row?.slot))
  const mayUnclaim = facts.isResync && !facts.isPartial
  const unclaimed = facts.rows
    .filter(({ slot }) => mayUnclaim && !claimed.has(slot))
    .flatMap(({ slot }) => bothDirections.map((direction) => ({ slot, direction })))
    .filter((place) => facts.boundAt(place) !== undefined)
  return { interfaces, unclaimed }
}

/** Without a datapath nothing can be installed, and each direction says why. */
export function planWithoutDatapath(wanted: readonly WantedInterface[], why: string): NodePlan {
  const interfaces = wanted.map((one) => ({
    wanted: one,
    directions: bothDirections.map((direction) => idle(direction, stateWithout(one.directions[direction], why))),
  }))
  return { interfaces, unclaimed: [] }
}

function stateWithout(wanted: Wanted, why: string): DirectionState {
  if (wanted.kind === 'nothing') return { state: 'Pending', message: wanted.message }
  return { state: 'Failed', message: wanted.kind === 'uncompilable' ? wanted.message : why }
}

function planInterface(wanted: WantedInterface, facts: NodeFacts): PlannedInterface {
  const { takenBy } = wanted
  if (takenBy !== undefined) {
    const message = `interface ${wanted.interface} is that of ${takenBy}, which is older or of a lesser name; correct status.hostInterface of one of them, or delete the one that is left over`
    return { wanted, directions: bothDirections.map((direction) => idle(direction, { state: 'Failed', message })) }
  }
  const found = findRow(wanted.interface, facts.rows)
  if (typeof found === 'string') {
    const { interface: name } = wanted
    const message = (name === undefined ? undefined : facts.whyStrange(name)) ?? found
    const state: DirectionState = { state: 'Pending', message }
    return { wanted, directions: bothDirections.map((direction) => idle(direction, state)) }
  }
  const { isPartial } = facts
  const directions = bothDirections.map((direction) => {
    const bound = facts.boundAt({ slot: found.slot, direction })
    const now = { token: found.token, isPartial, ...(bound !== undefined && { bound }) }
    return { direction, ...planDirection(wanted.directions[direction], now) }
  })
  return { wanted, row: found, directions }
}

/** The agent's own network namespace first: names repeat in others. */
export function findRow<Row extends NodeRow>(name: string | undefined, rows: readonly Row[]): Row | string {
  if (name === undefined)
    return 'the attachment names no interface yet; whoever makes the interface writes its name into status.hostInterface'
  const named = rows.filter((row) => row.name === name)
  const here = named.filter(({ isHere }) => isHere)
  const [row, ...others] = here.length > 0 ? here : named
  if (row === undefined)
    return `interface ${name} is not attached to the datapath yet; attach it (portolan agent attach ${name}, as a CNI chain does)`
  if (others.length === 0) return row
  const where = here.length > 0 ? '' : ' of other network namespaces'
  return `${others.length + 1} interfaces${where} are attached by the name ${name}, and which one is meant cannot be told; rename or detach the others`
}

function idle(direction: Direction, state: DirectionState): PlannedDirection {
  return { direction, step: { do: 'nothing' }, outcome: () => state }
}
