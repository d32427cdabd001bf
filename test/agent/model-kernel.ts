/** A working model of a node's kernel and its datapath: what outlives a process, and what a process makes of it. */
import { Failure } from '#base/failure'
import { parseIp } from '#base/ip'
import type { EnforcedMode } from '#compile/traffic-policy/datapath-maps'
import type { Direction } from '#compile/traffic-policy/entry'
import { evaluateEntries } from '#compile/traffic-policy/evaluate-entries'
import { ruleNameHash } from '#compile/traffic-policy/print-snapshot'
import { type FallbackReason, fallbackReasons } from '#compile/traffic-policy/reasons'
import type { Snapshot } from '#compile/traffic-policy/snapshot'
import type { HeldInterface } from '#kernel/datapath'
import type { Published, PublishRequest } from '#kernel/datapath-publisher'
import type { Fault } from '#kernel/faults'
import type { AgentDatapath } from '../../src/agent/agent-datapath'
import { fewRows, type NodeKernel } from './agent-world'

type Place = { readonly slot: number; readonly direction: Direction }

/** A map of the kernel: unreadable to whoever finds no pin of it. */
type SnapshotMap = { readonly id: number; readonly snapshot: Snapshot }

export type ModelKernel = {
  readonly faults: Set<Fault>
  /** By name. */
  readonly pins: Map<string, SnapshotMap>
  readonly attach: (name: string) => HeldInterface
  /** The link is deleted: its programs go with it, its row stays until somebody looks. */
  readonly unlink: (name: string) => void
  /** Whether a new connection of that direction gets its answer; counts as the datapath does. */
  readonly passes: (name: string, direction: Direction) => boolean
  readonly open: () => AgentDatapath
  readonly strayPin: (name: string) => void
  readonly setMode: (mode: EnforcedMode) => void
  /** A row that another process takes out of the table. */
  readonly unbindBehind: (place: Place) => void
}

const directions = ['ingress', 'egress'] as const

export function modelKernel({ counterRows }: { readonly counterRows: number }): ModelKernel {
  const faults = new Set<Fault>()
  const pins = new Map<string, SnapshotMap>()
  const bound = new Map<string, SnapshotMap>()
  const rows = new Map<number, HeldInterface>()
  const links = new Map<string, number>()
  const hits = new Map<number, number>()
  const fallbacks = new Map<string, bigint>()
  let mode: EnforcedMode = 'off'
  let isModeChosen = false
  let nextId = 1
  let nextToken = 100n
  let publication = 0
  let isLocked = false

  const kernel: ModelKernel = {
    faults,
    pins,
    attach(name) {
      const known = [...rows.values()].find((held) => held.name === name)
      if (known !== undefined && links.get(name) === known.slot) return known
      if (known !== undefined) clear(known)
      let slot = 1
      while (rows.has(slot)) slot += 1
      const held = { slot, token: nextToken++, name, index: slot, namespace: 1n, side: 'host' as const, vpc: 0 }
      rows.set(slot, held)
      links.set(name, slot)
      for (const key of [...fallbacks.keys()]) if (key.startsWith(`${slot} `)) fallbacks.delete(key)
      return held
    },
    unlink: (name) => void links.delete(name),
    passes(name, direction) {
      const slot = links.get(name) ?? 0
      const { isAllowed, count } = decide(slot, direction)
      count()
      // The answer of a connection that is allowed asks no rule, but its direction must be bound.
      const other = direction === 'ingress' ? 'egress' : 'ingress'
      const hasAnswer = bound.has(nameOf({ slot, direction: other }))
      return mode !== 'enforce' || (isAllowed && hasAnswer)
    },
    open() {
      if (isLocked) throw new Failure('kernel.in-use', 'another agent writes to the model; stop it')
      isLocked = true
      return openModel()
    },
    strayPin(name) {
      pins.set(name, { id: nextId++, snapshot: { ...emptySnapshot } })
    },
    setMode(next) {
      mode = next
      isModeChosen = true
    },
    unbindBehind: (place) => void bound.delete(nameOf(place)),
  }
  return kernel

  function clear(held: HeldInterface): void {
    for (const direction of directions) bound.delete(nameOf({ slot: held.slot, direction }))
    rows.delete(held.slot)
    if (links.get(held.name) === held.slot) links.delete(held.name)
  }

  function decide(slot: number, direction: Direction): { readonly isAllowed: boolean; readonly count: () => void } {
    if (mode === 'off') return { isAllowed: true, count: () => {} }
    const snapshot = bound.get(nameOf({ slot, direction }))?.snapshot
    const fall = (reason: FallbackReason) => (): void => {
      const key = `${slot} ${direction} ${reason}`
      fallbacks.set(key, (fallbacks.get(key) ?? 0n) + 1n)
    }
    if (snapshot === undefined) return { isAllowed: false, count: fall('policy_unavailable') }
    const decision = evaluateEntries(snapshot, echoRequest)
    const row = snapshot.rules[decision.rule ?? -1]?.counterRow
    const count = row === undefined ? fall('no_match') : (): void => void hits.set(row, (hits.get(row) ?? 0) + 1)
    return { isAllowed: decision.verdict === 'allow', count }
  }

  function openModel(): AgentDatapath {
    const used = new Set<number>()
    const known = new Map<string, Published>()
    let sweptAt: number | undefined
    for (const [key, map] of bound) {
      const isPinned = [...pins.values()].includes(map)
      known.set(key, { ...placeOf(key), mapId: map.id, ...(isPinned && { snapshot: map.snapshot }) })
      if (isPinned) for (const { counterRow } of map.snapshot.rules) used.add(counterRow)
    }
    const forget = (place: Place): void => {
      const before = known.get(nameOf(place))?.snapshot
      known.delete(nameOf(place))
      if (before === undefined) return
      pins.delete(pinNameOf(before))
      for (const { counterRow } of before.rules) used.delete(counterRow)
    }
    const take = (count: number): number[] => {
      if (counterRows - used.size < count) {
        throw new Failure(
          'kernel.exhausted',
          `${count} counter rows are needed and ${counterRows - used.size} are free`,
        )
      }
      const taken: number[] = []
      for (let row = 0; taken.length < count; row++) if (!used.has(row)) taken.push(row)
      for (const row of taken) {
        used.add(row)
        hits.set(row, 0)
      }
      return taken
    }
    const failAt = (...names: readonly Fault[]): void => {
      for (const name of names) if (faults.has(name)) throw new Failure('kernel.refused', `a step failed: (${name})`)
    }

    function prepare(request: PublishRequest, taken: number[]): Snapshot {
      publication += 1
      failAt('failed-create', 'failed-fill')
      const before = known.get(nameOf(request))?.snapshot
      const isSame = before?.policyUid === request.policy.uid && before.token === request.token
      const hashed = request.policy.rules.map(({ name, action }) => ({ nameHash: ruleNameHash(name), action }))
      const rowOf = (rule: (typeof hashed)[number]): number | undefined =>
        isSame && request.startsAtZero !== true
          ? before.rules.find((one) => one.nameHash === rule.nameHash && one.action === rule.action)?.counterRow
          : undefined
      const fresh = take(hashed.filter((rule) => rowOf(rule) === undefined).length)
      taken.push(...fresh)
      failAt('failed-pin')
      return {
        token: request.token,
        direction: request.direction,
        policyUid: request.policy.uid,
        generation: request.policy.generation,
        binding: isSame ? before.binding : publication,
        publication,
        stateful: request.policy.stateful,
        rules: hashed.map((rule) => ({ ...rule, counterRow: rowOf(rule) ?? fresh.shift() ?? 0 })),
        entries: request.policy.entries,
      }
    }

    return {
      isHere: () => true,
      whyStrange: () => undefined,
      interfaces: () => [...rows.values()].sort((one, other) => one.slot - other.slot),
      dropGone() {
        const gone = [...rows.values()].filter(({ name, slot }) => links.get(name) !== slot)
        for (const held of gone) {
          for (const direction of directions) forget({ slot: held.slot, direction })
          clear(held)
        }
        return { gone, hookedAgain: [] }
      },
      hold: () => {},
      publish(requests) {
        const taken: number[] = []
        try {
          const prepared = requests.map((request) => prepare(request, taken))
          failAt('failed-swap')
          if (requests.length > 1) failAt('half-swap')
          return requests.map((request, at) => bind(request, prepared[at] ?? emptySnapshot))
        } catch (error) {
          for (const row of taken) used.delete(row)
          throw error
        }
      },
      unbind(place) {
        bound.delete(nameOf(place))
        forget(place)
      },
      published(place) {
        const map = bound.get(nameOf(place))
        if (known.get(nameOf(place))?.mapId === map?.id) return known.get(nameOf(place))
        forget(place)
        if (map !== undefined) known.set(nameOf(place), { ...place, mapId: map.id })
        return known.get(nameOf(place))
      },
      restorePins() {
        const lost = [...bound.values()].filter((map) => ![...pins.values()].includes(map))
        const own = lost.filter(({ id }) => [...known.values()].some((one) => one.mapId === id && one.snapshot))
        for (const map of own) pins.set(pinNameOf(map.snapshot), map)
        return { pins: own.length, takenOver: 0 }
      },
      isModeChosen: () => isModeChosen,
      sweepWhenDue(now) {
        if (sweptAt !== undefined && now - sweptAt < 300_000) return 0
        sweptAt = now
        const strays = [...pins].filter(([, map]) => ![...bound.values()].includes(map))
        for (const [name] of strays) pins.delete(name)
        return strays.length
      },
      mode: () => mode,
      setMode: kernel.setMode,
      setPathMark: () => {},
      setPathPrefixes: ({ length }) => length,
      readRule: (row) => (row < counterRows ? { hits: BigInt(hits.get(row) ?? 0), bytes: 0n } : undefined),
      readFallbacks: (slot, direction) =>
        Object.fromEntries(
          fallbackReasons.map((reason) => [reason, fallbacks.get(`${slot} ${direction} ${reason}`) ?? 0n]),
        ) as Record<FallbackReason, bigint>,
      close() {
        isLocked = false
      },
    }

    function bind(request: PublishRequest, snapshot: Snapshot): Published {
      const { slot, direction } = request
      const before = known.get(nameOf(request))?.snapshot
      const map = { id: nextId++, snapshot }
      pins.set(pinNameOf(snapshot), map)
      bound.set(nameOf(request), map)
      if (before !== undefined) {
        pins.delete(pinNameOf(before))
        const still = new Set(snapshot.rules.map(({ counterRow }) => counterRow))
        for (const { counterRow } of before.rules) if (!still.has(counterRow)) used.delete(counterRow)
      }
      const published = { slot, direction, mapId: map.id, snapshot }
      known.set(nameOf(request), published)
      return published
    }
  }
}

/** With few counter rows, as the kernel's suite has. */
export function modelNode(): NodeKernel {
  const kernel = modelKernel({ counterRows: fewRows })
  const { pins } = kernel
  return { ...kernel, pins: () => [...pins.keys()].sort(), dropPin: (name) => void pins.delete(name), close: () => {} }
}

/** The packet of every question: an echo request between two addresses that no test's rule tells apart. */
const echoRequest = {
  source: parseIp('10.9.0.1') ?? { family: 'ipv4' as const, words: [0] },
  destination: parseIp('10.9.0.2') ?? { family: 'ipv4' as const, words: [0] },
  protocol: 'icmp',
  path: 'unclassified',
  icmpType: 8,
  icmpCode: 0,
} as const

const emptySnapshot: Snapshot = {
  token: 0n,
  direction: 'ingress',
  policyUid: '',
  generation: 0,
  binding: 0,
  publication: 0,
  stateful: true,
  rules: [],
  entries: [],
}

function pinNameOf({ token, direction, publication }: Snapshot): string {
  return `${token.toString(16).padStart(16, '0')}-${direction}-${publication}`
}

function nameOf({ slot, direction }: Place): string {
  return `${slot} ${direction}`
}

function placeOf(name: string): Place {
  const [slot = '', direction = ''] = name.split(' ')
  return { slot: Number(slot), direction: direction === 'ingress' ? 'ingress' : 'egress' }
}
