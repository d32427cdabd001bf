/** Carries a plan out: what is to go goes first, the rest is bound by one swap, and what fails spoils nothing else. */
import { Failure } from '#base/failure'
import type { Direction } from '#compile/traffic-policy/entry'
import type { DirectionState, Step } from '#enforce/plan-direction'
import type { NodePlan, Place, PlannedDirection, PlannedInterface } from '#enforce/plan-node'
import type { AgentDatapath } from './agent-datapath'

type Publication = Place & { readonly token: bigint; readonly step: Extract<Step, { do: 'publish' }> }

/** What became of the plan. */
export type CarriedOut = {
  readonly published: number
  readonly unbound: readonly Place[]
  /** By place, why a step did not succeed. */
  readonly failures: ReadonlyMap<string, string>
}

export function carryOut(datapath: AgentDatapath, plan: NodePlan): CarriedOut {
  const failures = new Map<string, string>()
  const unbound: Place[] = []
  const unbind = (place: Place): void => {
    const failure = attempt(() => datapath.unbind(place))
    if (failure === undefined) unbound.push(place)
    else failures.set(placeName(place), failure)
  }
  for (const place of [...plan.unclaimed, ...placesToUnbind(plan)]) unbind(place)
  const publications = listPublications(plan)
  publishAll(datapath, publications, (one, failure) => {
    failures.set(placeName(one), failure)
  })
  for (const one of publications) {
    const isLost = failures.has(placeName(one)) && one.step.onFailure === 'unbind'
    if (isLost && datapath.published(one) !== undefined) unbind(one)
  }
  return { published: publications.filter((one) => !failures.has(placeName(one))).length, unbound, failures }
}

export function placeName({ slot, direction }: Place): string {
  return `${slot} ${direction}`
}

/** What is said of each direction, once its step was tried. */
export function settle(
  one: PlannedInterface,
  failures: ReadonlyMap<string, string>,
): Record<Direction, DirectionState> {
  const stateOf = ({ direction, outcome }: PlannedDirection): DirectionState =>
    outcome(one.row === undefined ? undefined : failures.get(placeName({ slot: one.row.slot, direction })))
  return Object.fromEntries(one.directions.map((planned) => [planned.direction, stateOf(planned)])) as Record<
    Direction,
    DirectionState
  >
}

function placesToUnbind({ interfaces }: NodePlan): readonly Place[] {
  return interfaces.flatMap(({ row, directions }) =>
    directions.flatMap(({ direction, step }) =>
      row !== undefined && step.do === 'unbind' ? [{ slot: row.slot, direction }] : [],
    ),
  )
}

function listPublications({ interfaces }: NodePlan): readonly Publication[] {
  return interfaces.flatMap(({ row, directions }) =>
    directions.flatMap(({ direction, step }) =>
      row !== undefined && step.do === 'publish' ? [{ slot: row.slot, token: row.token, direction, step }] : [],
    ),
  )
}

/** A failed batch has left everything as it was: its halves are tried apart, until those that cannot be are alone. */
function publishAll(
  datapath: AgentDatapath,
  publications: readonly Publication[],
  fail: (one: Publication, failure: string) => void,
): void {
  const [first, ...others] = publications
  if (first === undefined) return
  const requests = publications.map(({ slot, token, direction, step }) => ({
    slot,
    token,
    direction,
    policy: step.compiled,
    startsAtZero: step.startsAtZero,
  }))
  const failure = attempt(() => datapath.publish(requests))
  if (failure === undefined) return
  if (others.length === 0) {
    fail(first, failure)
    return
  }
  const half = Math.ceil(publications.length / 2)
  publishAll(datapath, publications.slice(0, half), fail)
  publishAll(datapath, publications.slice(half), fail)
}

/** The kernel's refusal as a sentence; a bug stays a bug. */
function attempt(work: () => unknown): string | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    if (error instanceof Failure) return error.message
    throw error
  }
}
