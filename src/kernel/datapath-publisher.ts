/** Publishing: rows, snapshot, pin, swap, then the old pin and rows; each step may fail and leaves the old state whole. */
import { closeSync } from 'node:fs'
import { join } from 'node:path'
import { numberRows } from '#compile/traffic-policy/datapath-maps'
import type { Action, Direction, Entry } from '#compile/traffic-policy/entry'
import { ruleNameHash } from '#compile/traffic-policy/print-snapshot'
import type { Snapshot } from '#compile/traffic-policy/snapshot'
import { listPins, openPin, pin, unpin } from './bpffs'
import { createRowPool, type RowPool } from './counter-rows'
import { listHeld } from './datapath-interfaces'
import {
  bindPrepared,
  boundMapId,
  dropPrepared,
  type Place,
  type Prepared,
  pinNameOf,
  prepareSnapshot,
  readPins,
  rebind,
  type SnapshotTools,
  sweepPins,
  unbind,
} from './datapath-snapshots'
import { readNumber, writeNumber } from './datapath-tables'

export type PolicyContent = {
  readonly uid: string
  readonly generation: number
  readonly stateful: boolean
  readonly rules: readonly { readonly name: string; readonly action: Action }[]
  readonly entries: readonly Entry[]
}

export type PublishRequest = Place & {
  readonly token: bigint
  readonly policy: PolicyContent
  /** Takes new counter rows also for rules that had some: another compiler's counts are not continued. */
  readonly startsAtZero?: boolean
}

/** What is bound; the content is unknown when its pin was lost, until it is published anew. */
export type Published = Place & { readonly mapId: number; readonly snapshot?: Snapshot }

export type Publisher = {
  /** All of them with one swap. A Failure leaves every one of them as it was. */
  readonly publish: (requests: readonly PublishRequest[]) => readonly Published[]
  readonly unbind: (place: Place) => void
  readonly published: (place: Place) => Published | undefined
  /** Pins what is bound and has lost its pin, so that the next process can read it; tells how many. */
  readonly repin: () => number
  /** Removes pins of what is bound nowhere; tells how many. */
  readonly sweep: () => number
  /** The same at the first call, and later once five minutes are over; `now` is in milliseconds of any clock. */
  readonly sweepWhenDue: (now: number) => number
  readonly freeRows: () => number
  readonly close: () => void
}

const sweepMilliseconds = 5 * 60_000

const directions: readonly Direction[] = ['ingress', 'egress']

export function publisherOf(tools: SnapshotTools): Publisher {
  const rows = createRowPool(tools.bpf, tools.tables)
  const descriptors: State['descriptors'] = new Map()
  const bound = adopt(tools, { rows, descriptors })
  const state: State = { rows, bound, descriptors }
  const sweep = (): number => sweepPins(tools, new Set([...bound.values()].map(({ mapId }) => mapId)))
  let sweptAt: number | undefined
  return {
    publish: (requests) => publish(tools, state, requests),
    unbind(place) {
      unbind(tools, place)
      forget(tools, state, place)
    },
    published: (place) => lookAgain(tools, state, place),
    repin: () => repin(tools, state),
    sweep,
    sweepWhenDue(now) {
      if (sweptAt !== undefined && now - sweptAt < sweepMilliseconds) return 0
      sweptAt = now
      return sweep()
    },
    freeRows: rows.free,
    close() {
      for (const fd of descriptors.values()) closeSync(fd)
      descriptors.clear()
    },
  }
}

type State = {
  readonly rows: RowPool
  readonly bound: Map<string, Published>
  /** Of what is bound, by the id of its map: it is pinned by them again should its pin be lost. */
  readonly descriptors: Map<number, number>
}

/** After a restart: what is bound goes on, and its rows with it, where a pin of the same map tells of them. */
function adopt(tools: SnapshotTools, { rows, descriptors }: Omit<State, 'bound'>): Map<string, Published> {
  const pins = readPins(tools)
  const bound = new Map<string, Published>()
  for (const { slot } of listHeld(tools)) {
    for (const direction of directions) {
      const mapId = boundMapId(tools, { slot, direction })
      if (mapId === undefined) continue
      const { snapshot, pinName } = pins.get(mapId) ?? {}
      const fd = pinName === undefined ? undefined : openPin(tools.bpf, join(tools.folders.snapshots, pinName))
      if (fd !== undefined) descriptors.set(mapId, fd)
      bound.set(nameOf({ slot, direction }), {
        slot,
        direction,
        mapId,
        ...(snapshot === undefined ? {} : { snapshot }),
      })
      rows.claim(snapshot?.rules.map(({ counterRow }) => counterRow) ?? [])
    }
  }
  return bound
}

/** The kernel's table is asked: what another process unbound or bound there is not what was published. */
function lookAgain(tools: SnapshotTools, state: State, place: Place): Published | undefined {
  const known = state.bound.get(nameOf(place))
  const mapId = boundMapId(tools, place)
  if (known?.mapId === mapId) return known
  forget(tools, state, place)
  if (mapId === undefined) return undefined
  const { slot, direction } = place
  const foreign: Published = { slot, direction, mapId }
  state.bound.set(nameOf(place), foreign)
  return foreign
}

function publish(tools: SnapshotTools, state: State, requests: readonly PublishRequest[]): readonly Published[] {
  const prepared: Prepared[] = []
  const taken: number[] = []
  try {
    let publication = reservePublications(tools, requests.length)
    for (const request of requests) {
      const snapshot = buildSnapshot(state, request, { publication, taken })
      prepared.push(prepareSnapshot(tools, request, snapshot))
      publication += 1
    }
    bindPrepared(tools, prepared)
  } catch (error) {
    for (const one of prepared) restore(tools, state, one)
    for (const one of prepared) dropPrepared(tools, one)
    state.rows.release(taken)
    throw error
  }
  return prepared.map((one) => replace(tools, state, one))
}

/** A swap of many may have failed after some: those go back to what they had, or to nothing, which denies. */
function restore(tools: SnapshotTools, { bound }: State, one: Prepared): void {
  if (boundMapId(tools, one) !== one.mapId) return
  const before = bound.get(nameOf(one))
  if (before?.snapshot === undefined || !rebind(tools, one, { ...before, snapshot: before.snapshot }))
    unbind(tools, one)
}

/** Written before they are used: the number of an attempt that failed is not given again. */
function reservePublications({ bpf, tables }: SnapshotTools, count: number): number {
  const first = Number(readNumber(bpf, tables, numberRows.publication)) + 1
  writeNumber(bpf, tables, numberRows.publication, BigInt(first + count - 1))
  return first
}

type Numbers = { readonly publication: number; readonly taken: number[] }

/** A rule keeps its row while its policy, name and action stay; everything else starts at zero. */
function buildSnapshot({ rows, bound }: State, request: PublishRequest, { publication, taken }: Numbers): Snapshot {
  const { policy, token, direction } = request
  const before = bound.get(nameOf(request))?.snapshot
  const isSame = before?.policyUid === policy.uid && before.token === token
  const isCountedOn = isSame && request.startsAtZero !== true
  const kept = new Map(isCountedOn ? before.rules.map((rule) => [keyOf(rule), rule.counterRow]) : [])
  const hashed = policy.rules.map(({ name, action }) => ({ nameHash: ruleNameHash(name), action }))
  const fresh = [...rows.take(hashed.filter((rule) => !kept.has(keyOf(rule))).length)]
  taken.push(...fresh)
  return {
    token,
    direction,
    policyUid: policy.uid,
    generation: policy.generation,
    binding: isSame ? before.binding : publication,
    publication,
    stateful: policy.stateful,
    rules: hashed.map((rule) => ({ ...rule, counterRow: kept.get(keyOf(rule)) ?? fresh.shift() ?? 0 })),
    entries: policy.entries,
  }
}

function keyOf({ nameHash, action }: { readonly nameHash: bigint; readonly action: Action }): string {
  return `${nameHash} ${action}`
}

function replace(tools: SnapshotTools, { rows, bound, descriptors }: State, one: Prepared): Published {
  const known = bound.get(nameOf(one))
  const before = known?.snapshot
  if (known !== undefined) letGo(descriptors, known)
  descriptors.set(one.mapId, one.map.fd)
  const published: Published = { slot: one.slot, direction: one.direction, mapId: one.mapId, snapshot: one.snapshot }
  bound.set(nameOf(one), published)
  if (before !== undefined) {
    unpin(join(tools.folders.snapshots, pinNameOf(before)))
    const still = new Set(one.snapshot.rules.map(({ counterRow }) => counterRow))
    rows.release(before.rules.map(({ counterRow }) => counterRow).filter((row) => !still.has(row)))
  }
  return published
}

/** By name alone: a pin in another's place is told at the next start. */
function repin({ bpf, folders }: SnapshotTools, { bound, descriptors }: State): number {
  const pinned = new Set(listPins(folders.snapshots))
  let made = 0
  for (const { mapId, snapshot } of bound.values()) {
    const fd = descriptors.get(mapId)
    if (snapshot === undefined || fd === undefined || pinned.has(pinNameOf(snapshot))) continue
    pin(bpf, fd, join(folders.snapshots, pinNameOf(snapshot)))
    made += 1
  }
  return made
}

function letGo(descriptors: State['descriptors'], { mapId }: Published): void {
  const fd = descriptors.get(mapId)
  if (fd !== undefined) closeSync(fd)
  descriptors.delete(mapId)
}

function forget(tools: SnapshotTools, { rows, bound, descriptors }: State, place: Place): void {
  const known = bound.get(nameOf(place))
  const before = known?.snapshot
  if (known !== undefined) letGo(descriptors, known)
  bound.delete(nameOf(place))
  if (before === undefined) return
  unpin(join(tools.folders.snapshots, pinNameOf(before)))
  rows.release(before.rules.map(({ counterRow }) => counterRow))
}

function nameOf({ slot, direction }: Place): string {
  return `${slot} ${direction}`
}
