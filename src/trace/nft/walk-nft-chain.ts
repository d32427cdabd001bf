/** Walks one nftables chain: each rule's statements in order, into other chains and back, splitting where the packet does not decide. */
import type { Chain, Table } from '#compile/nftables/ruleset'
import type { Rule, Statement } from '#compile/nftables/statement'
import { isSamePacket, mergeParts } from '../merge-paths'
import { type HopEvent, type Path, withHop } from '../path'
import type { Answered } from '../question'
import type { Hook } from '../view'
import type { World } from '../world'
import { applyStatement } from './apply-statement'
import { type NftPlace, nftHop } from './nft-place'
import type { Part } from './split'

export type NftWalk = {
  readonly world: World
  readonly hook: Hook
  readonly table: Table
  /** Of the base chain. */
  readonly priority: number
  readonly budget: { left: number }
  readonly mayMerge: boolean
}

type Frame = {
  readonly chain: Chain
  readonly caller: Rule | undefined
  readonly conditions: readonly Answered[]
  readonly hasMarkGate: boolean
  readonly above: Frame | undefined
}

/** NF_IP_PRI_CONNTRACK. */
const trackingPriority = -200

type WalkResult = { readonly live: readonly Path[]; readonly done: readonly Path[] }

/** All paths returned have an `end`; what comes off the chain's end meets its policy. */
export function walkNftBase(walk: NftWalk, chain: Chain, path: Path): readonly Path[] {
  const { live, done } = walkChain(
    walk,
    { chain, caller: undefined, conditions: [], hasMarkGate: false, above: undefined },
    path,
  )
  const kind = chain.base?.policy === 'drop' ? 'drop' : 'accept'
  const hop: HopEvent = {
    hook: walk.hook,
    table: tableName(walk.table),
    chain: chain.name,
    kind: 'policy',
    did: kind === 'accept' ? 'accepted by policy' : 'dropped by policy',
    because: 'no rule of the chain ended the walk',
  }
  return [...done, ...live.map((fallen): Path => ({ ...withHop(fallen, hop), end: { kind, place: hop } }))]
}

export function tableName(table: Table): string {
  return `${table.family} ${table.name}`
}

function walkChain(walk: NftWalk, frame: Frame, start: Path): WalkResult {
  const live: Path[] = []
  const done: Path[] = []
  let frontier: readonly Path[] = [start]
  let { hasMarkGate } = frame
  for (const rule of frame.chain.rules) {
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
    table: tableName(walk.table),
    chain: frame.chain.name,
    kind: 'return',
    did: 'returned at the end of the chain',
  }
  live.push(...(frame.above === undefined ? frontier : frontier.map((path) => withHop(path, end))))
  return { live, done }
}

const markText = /\bmark\b/

function testsMark(rule: Rule): boolean {
  return rule.statements.some(
    (statement) => statement.kind === 'match' && markText.test(JSON.stringify(statement.left)),
  )
}

type StepResult = { readonly next: readonly Path[]; readonly live: readonly Path[]; readonly done: readonly Path[] }

/** `next` go on to the following rule, `live` leave the chain as if it had ended, `done` leave the base chain. */
function takeRule(
  walk: NftWalk,
  frame: Frame,
  { rule, path }: { readonly rule: Rule; readonly path: Path },
): StepResult {
  const run: Run = { walk, frame, rule, next: [], live: [], done: [] }
  runStatements(run, 0, { path, conditions: [] })
  const isSplit = run.next.length + run.live.length + run.done.length > 1
  if (isSplit && walk.budget.left-- <= 0) return { next: [], live: [], done: [giveUp(run, path)] }
  if (
    isSplit &&
    walk.mayMerge &&
    run.live.length === 0 &&
    run.done.length === 0 &&
    run.next.every((one) => isSamePacket(path, one))
  ) {
    return { next: [mergeParts(path, run.next)], live: [], done: [] }
  }
  return run
}

function giveUp(run: Run, path: Path): Path {
  const hop = nftHop(placeOf(run, []), 'gave up')
  return {
    ...withHop(path, hop),
    end: { kind: 'unknown', why: 'too many ways depend on what is not known of the packet', place: hop },
  }
}

type Run = {
  readonly walk: NftWalk
  readonly frame: Frame
  readonly rule: Rule
  readonly next: Path[]
  readonly live: Path[]
  readonly done: Path[]
}

function placeOf({ walk, frame, rule }: Run, conditions: readonly Answered[]): NftPlace {
  return {
    world: walk.world,
    hook: walk.hook,
    table: tableName(walk.table),
    sets: walk.table.sets,
    chain: frame.chain.name,
    rule,
    conditions: conditions.length === 0 ? frame.conditions : [...frame.conditions, ...conditions],
    caller: frame.caller,
    hasMarkGate: frame.hasMarkGate,
    isBeforeTracking: walk.priority < trackingPriority,
  }
}

/** Statements from number `at` on, for the part of the packets that came so far. */
function runStatements(run: Run, at: number, part: Part): void {
  const statement = run.rule.statements[at]
  if (statement === undefined) {
    run.next.push(at === 0 ? part.path : noteRule(run, part))
    return
  }
  const effect = applyStatement(statement, part, placeOf(run, part.conditions))
  run.next.push(...effect.leaves.map((one) => one.path))
  run.done.push(...effect.ended.map((ended) => tagHop(ended, part)))
  for (const one of effect.goesOn) runStatements(run, at + 1, one)
  for (const led of effect.led) followVerdict(run, led.verdict, led.part)
}

type Leading = Extract<Statement, { readonly kind: 'accept' | 'drop' | 'continue' | 'return' | 'jump' | 'goto' }>

function followVerdict(run: Run, verdict: Leading, part: Part): void {
  const place = placeOf(run, part.conditions)
  const hop = (did: string): HopEvent => ({
    ...nftHop(place, did),
    ...(part.conditions.length === 0 ? {} : { when: part.conditions }),
  })
  switch (verdict.kind) {
    case 'accept':
    case 'drop': {
      const at = hop(verdict.kind === 'accept' ? 'accepted by this chain' : 'dropped')
      run.done.push({ ...withHop(part.path, at), end: { kind: verdict.kind, rule: run.rule, place: at } })
      return
    }
    case 'continue':
      run.next.push(withHop(part.path, hop('went on')))
      return
    case 'return':
      run.live.push(withHop(part.path, hop('returned to the calling chain')))
      return
    case 'jump':
    case 'goto':
      enterChain(run, verdict, {
        ...part,
        path: withHop(part.path, hop(`${verdict.kind === 'jump' ? 'jumped' : 'went'} to ${verdict.target}`)),
      })
      return
    default:
      verdict satisfies never
  }
}

function enterChain(run: Run, verdict: Extract<Leading, { readonly kind: 'jump' | 'goto' }>, part: Part): void {
  const { walk, frame } = run
  const chain = walk.table.chains.get(verdict.target)
  const place = placeOf(run, part.conditions)
  if (chain === undefined || isOpen(frame, chain)) {
    const at = nftHop(place, `jumped to ${verdict.target}`)
    const why =
      chain === undefined
        ? `chain ${verdict.target} is not in this dump`
        : `chain ${verdict.target} leads back to itself`
    run.done.push({ ...withHop(part.path, at), end: { kind: 'unknown', why, place: at } })
    return
  }
  const inner = walkChain(
    walk,
    { chain, caller: run.rule, conditions: place.conditions, hasMarkGate: frame.hasMarkGate, above: frame },
    part.path,
  )
  run.done.push(...inner.done)
  if (verdict.kind === 'jump') run.next.push(...inner.live)
  else run.live.push(...inner.live)
}

function isOpen(frame: Frame, chain: Chain): boolean {
  for (let one: Frame | undefined = frame; one !== undefined; one = one.above) if (one.chain === chain) return true
  return false
}

/** A rule whose statements all held and none of which led elsewhere is a hop too. */
function noteRule(run: Run, part: Part): Path {
  const did = run.rule.statements
    .map(didOf)
    .filter((text) => text !== '')
    .join(', ')
  const hop = nftHop(placeOf(run, part.conditions), did === '' ? 'counted, nothing more' : did)
  return withHop(part.path, part.conditions.length === 0 ? hop : { ...hop, when: part.conditions })
}

function didOf(statement: Statement): string {
  switch (statement.kind) {
    case 'log':
      return 'logged'
    case 'mangle':
      return 'packet changed'
    case 'set-update':
      return `noted in set ${statement.set}`
    case 'notrack':
      return 'not tracked'
    case 'flow':
      return `its connection may be offloaded to flowtable ${statement.flowtable}`
    default:
      return ''
  }
}

function tagHop(path: Path, part: Part): Path {
  const { log } = path
  if (log === undefined || part.conditions.length === 0 || log.hop.when !== undefined) return path
  return { ...path, log: { hop: { ...log.hop, when: part.conditions }, earlier: log.earlier } }
}
