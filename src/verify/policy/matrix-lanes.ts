/** Connections between members of two ends, by their classes: asked once a pair of classes, as text once a set. */
import type { Family } from '#base/ip'
import { type ConnectionSet, portsBetween } from '#trace/policy/decide'
import type { Nearness, Party } from '#trace/policy/party'
import { commonFamily, familiesOf, nearnessOf, shareNoFamily } from '#trace/policy/party-facts'
import { classOf, type PolicyWorld } from '#trace/policy/world'
import { mark, printConnections } from './connection-text'

/** `text` is empty for no connection. */
export type Lanes = {
  readonly world: PolicyWorld
  readonly classOf: (party: Party, family?: Family) => number
  readonly text: (source: number, target: number) => string
  /** Over the family that is told or that both have, where they stand to each other. */
  readonly betweenParties: (source: Party, target: Party, family?: Family) => ConnectionSet
  readonly textOf: (source: Party, target: Party) => string
  /** Of two ends of which one is on the nodes' own network: what only pods and nodes that meet on one node have is `partly`. */
  readonly textOnHost: (source: readonly Party[], target: readonly Party[]) => string
}

export function lanesOf(world: PolicyWorld): Lanes {
  const texts = new Map<ConnectionSet, string>()
  const between = (source: number, target: number): ConnectionSet => portsBetween(world, source, target)
  const print = (set: ConnectionSet): string => {
    const known = texts.get(set)
    if (known !== undefined) return known
    const printed = printConnections(set)
    texts.set(set, printed)
    return printed
  }
  return {
    world,
    classOf: (party, family) => classOf(world, party, family).id,
    text: (source, target) => print(between(source, target)),
    betweenParties: (source, target, family) => betweenParties(world, source, target, family),
    textOf: (source, target) => print(betweenParties(world, source, target)),
    textOnHost: (source, target) => textOnHost(world, source, target),
  }
}

export function betweenParties(world: PolicyWorld, source: Party, target: Party, told?: Family): ConnectionSet {
  if (shareNoFamily(world.cluster, source, target)) return noConnection
  const family = told ?? commonFamily(world.cluster, source, target)
  const [from, to] = [classOf(world, source, family).id, classOf(world, target, family).id]
  return portsBetween(world, from, to, nearnessOf(source, target))
}

const noConnection: ConnectionSet = { allowed: new Map(), unknown: new Map() }

const nearnesses: readonly Nearness[] = ['apart', 'perhaps-same-node', 'same-node']

function textOnHost(world: PolicyWorld, sources: readonly Party[], targets: readonly Party[]): string {
  const texts = new Map<Nearness, string>()
  for (const source of sources) {
    for (const target of targets) {
      const nearness = nearnessOf(source, target)
      if (texts.has(nearness)) continue
      texts.set(nearness, printConnections(betweenParties(world, source, target)))
    }
  }
  const [usual = '', ...others] = [...new Set(nearnesses.flatMap((one) => texts.get(one) ?? []))]
  const partly = others.map((text) => mark('partly', text))
  return [usual, ...partly].filter((text) => text !== '').join('; ')
}

/** A pod without any address may get one of either family. */
export function mayHaveFamily({ cluster }: PolicyWorld, party: Party, family: Family): boolean {
  const families = familiesOf(cluster, party)
  return families.length === 0 || families.includes(family)
}
