/** One direction of one interface: from what it is to have and what is bound to it, the step and what it comes to. */
import { buildSnapshot, snapshotContent } from '#compile/traffic-policy/build-snapshot'
import type { CompiledPolicy } from '#compile/traffic-policy/compile-policy'
import type { Snapshot } from '#compile/traffic-policy/snapshot'
import type { Wanted } from './wanted-node'

export type Bound = {
  /** Absent where it cannot be read, as its pin was lost before this process began. */
  readonly snapshot?: Snapshot
}

/** The interface's row in the datapath, and what is bound to the direction. */
export type Found = {
  readonly token: bigint
  readonly bound?: Bound
  /** Objects were read in part, so that what is missing may be there: nothing is taken away for it then. */
  readonly isPartial: boolean
}

export type Step =
  /** What is bound is what is wanted, or what is to stay. */
  | { readonly do: 'nothing' }
  | {
      readonly do: 'publish'
      readonly compiled: CompiledPolicy
      /** Other entries for a generation that was bound already, by another compiler: its rules start at zero. */
      readonly startsAtZero: boolean
      /** An update of the same policy leaves the last one in force; another policy's grants are never kept. */
      readonly onFailure: 'keep' | 'unbind'
    }
  | { readonly do: 'unbind' }

export type InstalledPolicy = { readonly name: string; readonly uid: string; readonly generation: number }

/** What is said of a direction: `policy` is what is installed. */
export type DirectionState = {
  readonly state: 'Applied' | 'Pending' | 'Failed'
  readonly policy?: InstalledPolicy
  readonly message?: string
}

/** `failure` is told where a step did not succeed. */
export type Outcome = (failure: string | undefined) => DirectionState

export type DirectionPlan = { readonly step: Step; readonly outcome: Outcome }

export function planDirection(wanted: Wanted, found: Found): DirectionPlan {
  const { token, bound, isPartial } = found
  // What another lifetime of the interface had is none of this one's.
  const isOwn = bound?.snapshot === undefined || bound.snapshot.token === token
  const own = isOwn ? bound : undefined
  switch (wanted.kind) {
    case 'policy':
      return planPolicy(wanted, own, isPartial)
    case 'uncompilable':
      return planUncompilable(wanted, own, bound)
    case 'nothing': {
      if (bound === undefined) return stay({ state: 'Pending', message: wanted.message })
      const mayBeIt = isPartial && own !== undefined && mayBeOf(wanted, own)
      if (mayBeIt) return stay({ state: 'Pending', message: `${wanted.message}; ${whyItStays}` })
      return { step: { do: 'unbind' }, outcome: () => ({ state: 'Pending', message: wanted.message }) }
    }
  }
  return wanted satisfies never
}

const whyItStays =
  'what is bound stays, since it may be among the objects that could not be read; the log of the agent names what to mend'

function stay(state: DirectionState): DirectionPlan {
  return { step: { do: 'nothing' }, outcome: () => state }
}

/** One policy is never kept in the place of another: what is bound may be what is named unless it is known to be another. */
function mayBeOf({ absent }: Extract<Wanted, { readonly kind: 'nothing' }>, { snapshot }: Bound): boolean {
  return absent !== undefined && !(snapshot !== undefined && absent.others.has(snapshot.policyUid))
}

type WantedPolicy = Extract<Wanted, { readonly kind: 'policy' }>

function planPolicy(wanted: WantedPolicy, own: Bound | undefined, isPartial: boolean): DirectionPlan {
  const { compiled, name, isUnnumbered, lacksBinding } = wanted
  const { uid, generation } = compiled
  const installed = { name, uid, generation }
  const applied: DirectionState = { state: 'Applied', policy: installed }
  const before = own?.snapshot
  if (lacksBinding === true && own !== undefined && before?.policyUid !== uid && isPartial) {
    return stay({ state: 'Pending', message: `the attachment has no binding; ${whyItStays}` })
  }
  const isSame = before?.policyUid === uid
  const isGeneration = isSame && before.generation === generation
  if (isGeneration && holdsContent(before, compiled)) return stay(applied)
  const step: Step = {
    do: 'publish',
    compiled,
    startsAtZero: isGeneration && !isUnnumbered,
    onFailure: isSame ? 'keep' : 'unbind',
  }
  const kept = isSame ? { policy: { name, uid, generation: before.generation } } : {}
  return {
    step,
    outcome: (failure) =>
      failure === undefined
        ? applied
        : { state: 'Failed', ...kept, message: `generation ${generation} cannot be installed: ${failure}` },
  }
}

function planUncompilable(
  { name, uid, message }: Extract<Wanted, { readonly kind: 'uncompilable' }>,
  own: Bound | undefined,
  bound: Bound | undefined,
): DirectionPlan {
  const before = own?.snapshot
  if (before?.policyUid === uid) {
    const policy = { name, uid, generation: before.generation }
    return stay({ state: 'Failed', policy, message })
  }
  const failed: DirectionState = { state: 'Failed', message }
  return bound === undefined ? stay(failed) : { step: { do: 'unbind' }, outcome: () => failed }
}

/** Bytes that were compared once are not compared at each pass: an adopted snapshot is read from the kernel once. */
const equal = new WeakMap<Snapshot['entries'], CompiledPolicy['entries']>()

function holdsContent(before: Snapshot, compiled: CompiledPolicy): boolean {
  const isKnown = before.entries === compiled.entries || equal.get(before.entries) === compiled.entries
  if (isKnown) return true
  const isEqual = hasSameBytes(before, compiled)
  if (isEqual) equal.set(before.entries, compiled.entries)
  return isEqual
}

/** Which rows count, and whose lifetime it is, is no part of the content. */
function hasSameBytes(before: Snapshot, compiled: CompiledPolicy): boolean {
  const place = { token: 0n, direction: before.direction, binding: 0, publication: 0, counterRows: [] }
  const [one, other] = [snapshotContent(before), snapshotContent(buildSnapshot(compiled, place))]
  for (let at = 0; at < one.length; at++) if (one[at] !== other[at]) return false
  return one.length === other.length
}
