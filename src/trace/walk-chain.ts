/** Walks one chain: every rule in order, into user chains and back, splitting a path where the packet does not decide. */
import type { Chain, Rule, Table } from '#compile/iptables/rule'
import { isKnownTarget } from '#compile/iptables/targets'
import { applyTarget } from './apply-target'
import { candidateRules } from './chain-index'
import { matchRule } from './match-rule'
import { isSamePacket, mergeParts } from './merge-paths'
import { type HopEvent, type Path, withHop } from './path'
import { endUnknown, hopAt, type Place } from './place'
import type { Answered } from './question'
import type { Hook } from './view'
import type { World } from './world'

/** One table at one hook. `budget.left` counts the splits that may still be made. */
export type TableWalk = {
  readonly world: World
  readonly hook: Hook
  readonly table: Table
  readonly budget: { left: number }
  /** Rejoin paths whose packets came out the same; off where every path is wanted apart. */
  readonly mayMerge: boolean
}

/** How a chain was entered. */
type Frame = {
  readonly chain: Chain
  readonly caller: Rule | undefined
  readonly conditions: readonly Answered[]
  readonly hasMarkGate: boolean
  /** The frame that jumped here; absent for a built-in chain. */
  readonly above: Frame | undefined
}

type WalkResult = { readonly live: Path[]; readonly done: Path[] }

/** Walks a built-in chain; what comes off its end meets the policy. All paths returned have an `end`. */
export function walkBaseChain(walk: TableWalk, chain: Chain, path: Path): readonly Path[] {
  const frame = { chain, caller: undefined, conditions: [], hasMarkGate: false, above: undefined }
  const { live, done } = walkChain(walk, frame, path)
  const policy = chain.policy ?? 'ACCEPT'
  const hop: HopEvent = {
    hook: walk.hook,
    table: walk.table.name,
    chain: chain.name,
    kind: 'policy',
    did: policy === 'ACCEPT' ? 'accepted by policy' : `dropped by policy ${policy}`,
    because: 'no rule of the chain ended the walk',
  }
  const kind = policy === 'ACCEPT' ? 'accept' : 'drop'
  return [...done, ...live.map((fallen): Path => ({ ...withHop(fallen, hop), end: { kind, place: hop } }))]
}

function walkChain(walk: TableWalk, frame: Frame, start: Path): WalkResult {
  const live: Path[] = []
  const done: Path[] = []
  let frontier: Path[] = [start]
  let hasMarkGate = frame.hasMarkGate
  for (const number of candidateRules(frame.chain, start.fields)) {
    const rule = frame.chain.rules[number]
    if (rule === undefined) continue
    hasMarkGate ||= testsMark(rule)
    const next: Path[] = []
    for (const path of frontier) {
      const step = takeRule(walk, { ...frame, hasMarkGate }, { rule, path })
      next.push(...step.next)
      live.push(...step.live)
      done.push(...step.done)
    }
    frontier = next
    if (frontier.length === 0) return { live, done }
  }
  const end: HopEvent = {
    hook: walk.hook,
    table: walk.table.name,
    chain: frame.chain.name,
    kind: 'return',
    did: 'returned at the end of the chain',
  }
  live.push(...(frame.above === undefined ? frontier : frontier.map((path) => withHop(path, end))))
  return { live, done }
}

const markTests = new WeakMap<Rule, boolean>()

function testsMark(rule: Rule): boolean {
  let tests = markTests.get(rule)
  if (tests === undefined) {
    tests = rule.clauses.some((clause) => clause.kind === 'match' && clause.name === 'mark')
    markTests.set(rule, tests)
  }
  return tests
}

type Step = { readonly rule: Rule; readonly path: Path }
type StepResult = { readonly next: readonly Path[]; readonly live: readonly Path[]; readonly done: readonly Path[] }

/** `next` go on to the following rule, `live` leave the chain as if it had ended, `done` leave the table. */
function takeRule(walk: TableWalk, frame: Frame, { rule, path }: Step): StepResult {
  const { matched, unmatched } = matchRule(rule, path, walk)
  if (matched.length === 0 && unmatched.length === 1 && unmatched[0] === path)
    return { next: unmatched, live: [], done: [] }
  const isSplit = matched.length > 0 && unmatched.length > 0
  if (isSplit && walk.budget.left-- <= 0) {
    return {
      next: [],
      live: [],
      done: endUnknown(
        path,
        hopAt(placeOf(walk, frame, rule, []), 'gave up'),
        'too many ways depend on what is not known of the packet',
      ).paths,
    }
  }
  const next: Path[] = [...unmatched]
  const live: Path[] = []
  const done: Path[] = []
  for (const part of matched) {
    const place = placeOf(walk, frame, rule, part.conditions)
    const effect = enter(walk, frame, { place, path: part.path, conditions: part.conditions })
    next.push(...effect.next)
    live.push(...effect.live)
    done.push(...effect.done)
  }
  if (isSplit && walk.mayMerge && live.length === 0 && done.length === 0) {
    if (next.every((part) => isSamePacket(path, part))) return { next: [mergeParts(path, next)], live, done }
  }
  return { next, live, done }
}

function placeOf(walk: TableWalk, frame: Frame, rule: Rule, conditions: readonly Answered[]): Place {
  return {
    world: walk.world,
    hook: walk.hook,
    table: walk.table.name,
    chain: frame.chain.name,
    rule,
    conditions: conditions.length === 0 ? frame.conditions : [...frame.conditions, ...conditions],
    caller: frame.caller,
    hasMarkGate: frame.hasMarkGate,
  }
}

type Entry = { readonly place: Place; readonly path: Path; readonly conditions: readonly Answered[] }

function enter(walk: TableWalk, frame: Frame, { place, path, conditions }: Entry): StepResult {
  const { action } = place.rule
  const target = action === undefined ? undefined : walk.table.chains.get(action.target)
  if (action === undefined || target === undefined) {
    if (action !== undefined && !isKnownTarget(action.target)) {
      const why = `chain ${action.target} is not in this dump`
      return { next: [], live: [], done: endUnknown(path, hopAt(place, `jumped to ${action.target}`), why).paths }
    }
    return sortEffect(applyTarget(place, path), path, conditions)
  }
  const verb = action.kind === 'goto' ? 'went to' : 'jumped to'
  const jumped = withHop(path, { ...hopAt(place, `${verb} ${target.name}`), ...whenOf(conditions) })
  if (isOpen(frame, target)) {
    return {
      next: [],
      live: [],
      done: endUnknown(jumped, hopAt(place, 'gave up'), `chain ${target.name} leads back to itself`).paths,
    }
  }
  const inner = walkChain(
    walk,
    {
      chain: target,
      caller: place.rule,
      conditions: place.conditions,
      hasMarkGate: frame.hasMarkGate,
      above: frame,
    },
    jumped,
  )
  if (action.kind === 'goto') return { next: [], live: inner.live, done: inner.done }
  return { next: inner.live, live: [], done: inner.done }
}

/** The kernel takes no ruleset with a loop; a text with one was not saved by it. */
function isOpen(frame: Frame, chain: Chain): boolean {
  for (let one: Frame | undefined = frame; one !== undefined; one = one.above) if (one.chain === chain) return true
  return false
}

function whenOf(conditions: readonly Answered[]): { readonly when?: readonly Answered[] } {
  return conditions.length === 0 ? {} : { when: conditions }
}

function sortEffect(effect: ReturnType<typeof applyTarget>, before: Path, conditions: readonly Answered[]): StepResult {
  const paths = conditions.length === 0 ? effect.paths : effect.paths.map((path) => tagHop(path, before, conditions))
  if (effect.kind === 'continue') return { next: paths, live: [], done: [] }
  return effect.kind === 'return' ? { next: [], live: paths, done: [] } : { next: [], live: [], done: paths }
}

/** Puts the rule's conditions on the hop its target just added. */
function tagHop(path: Path, before: Path, conditions: readonly Answered[]): Path {
  const { log } = path
  if (log === undefined || log.earlier !== before.log) return path
  return { ...path, log: { hop: { ...log.hop, when: conditions }, earlier: log.earlier } }
}
