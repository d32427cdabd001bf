/** Connections between members of two ends, by their classes: asked once a pair of classes, as text once a set. */
import type { Family } from '#base/ip'
import { type ConnectionSet, portsBetween } from '#trace/policy/decide'
import type { Nearness, Party } from '#trace/policy/party'
import { commonFamilies, commonFamily, familiesOf, nearnessOf, shareNoFamily } from '#trace/policy/party-facts'
import { classOf, type PolicyWorld } from '#trace/policy/world'
import { mark, printConnections } from './connection-text'

/** `text` is empty for no connection. */
export type Lanes = {
  readonly world: PolicyWorld
  readonly classOf: (party: Party, family?: Family) => number
  readonly text: (source: number, target: number) => string
  /** Over the family that is told or that both have, where they stand to each other. */
  readonly betweenParties: (source: Party, target: Party, family?: Family) => ConnectionSet
  /** Over every family that both have: what only one of them allows is `partly`. */
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
  const textOf = (source: Party, target: Party): string => {
    const families = commonFamilies(world.cluster, source, target)
    if (families.length < 2) return print(betweenParties(world, source, target))
    const [first = '', ...others] = new Set(families.map((one) => print(betweenParties(world, source, target, one))))
    if (others.length === 0) return first
    return [first, ...others].flatMap((text) => (text === '' ? [] : [mark('partly', text)])).join('; ')
  }
  return {
    world,
    classOf: (party, family) => classOf(world, party, family).id,
    text: (source, target) => print(between(source, target)),
    betweenParties: (source, target, family) => betweenParties(world, source, target, family),
    textOf,
    textOnHost: (source, target) => textOnHost(textOf, source, target),
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

function textOnHost(textOf: Lanes['textOf'], sources: readonly Party[], targets: readonly Party[]): string {
  const texts = new Map<Nearness, string>()
  for (const source of sources) {
    for (const target of targets) {
      const nearness = nearnessOf(source, target)
      if (texts.has(nearness)) continue
      texts.set(nearness, textOf(source, target))
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
