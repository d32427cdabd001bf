/** The hops of many paths as one list: what they share once, then each part in turn with its share. */
import type { Hop } from '#model/trace'
import { describeRule, textOfRule } from './hop-rule'
import type { HopEvent, Log, Path } from './path'
import { printConditions } from './print-conditions'

type Branching = { readonly hop: HopEvent; share: number; readonly children: Map<Log, Branching> }

export function flattenHops(paths: readonly Path[]): readonly Hop[] {
  const roots = new Map<Log, Branching>()
  for (const path of paths) {
    let level = roots
    for (const log of oldestFirst(path.log)) {
      let branch = level.get(log)
      if (branch === undefined) {
        branch = { hop: log.hop, share: 0, children: new Map() }
        level.set(log, branch)
      }
      branch.share += path.share
      level = branch.children
    }
  }
  const hops: Hop[] = []
  const stack = [...roots.values()].reverse()
  for (let branch = stack.pop(); branch !== undefined; branch = stack.pop()) {
    hops.push(printHop(branch.hop, branch.share))
    stack.push(...[...branch.children.values()].reverse())
  }
  return hops
}

function oldestFirst(log: Log | undefined): readonly Log[] {
  const logs: Log[] = []
  for (let entry = log; entry !== undefined; entry = entry.earlier) logs.push(entry)
  return logs.reverse()
}

export function roundShare(share: number): number {
  return Math.round(share * 1e4) / 1e4
}

function printHop(hop: HopEvent, share: number): Hop {
  const { hook, table, chain, rule } = hop
  const at = {
    hook,
    ...(table === undefined ? {} : { table }),
    ...(chain === undefined ? {} : { chain }),
    ...(rule?.line === undefined ? {} : { line: rule.line }),
  }
  const text = rule === undefined ? undefined : textOfRule(rule, table)
  const because = hop.because ?? (rule === undefined ? 'the chain has no more rules' : describeRule(rule, table))
  const when = hop.when === undefined ? '' : printConditions(hop.when)
  return {
    at,
    ...(text === undefined ? {} : { rule: text }),
    did: hop.did,
    because,
    ...(share > 1 - 1e-9 ? {} : { share: roundShare(share) }),
    ...(when === '' ? {} : { when }),
    ...(hop.before === undefined || hop.after === undefined ? {} : { before: hop.before, after: hop.after }),
  }
}
