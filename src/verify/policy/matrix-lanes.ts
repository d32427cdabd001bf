/** Connections between members of two ends, by their classes: asked once a pair of classes, as text once a set. */
import type { Family } from '#base/ip'
import type { Pod } from '#model/pod'
import { type ConnectionSet, portsBetween } from '#trace/policy/decide'
import type { Nearness, Party } from '#trace/policy/party'
import { commonFamily, nearnessOf } from '#trace/policy/party-facts'
import { classOf, type PolicyWorld } from '#trace/policy/world'
import { mark, printConnections } from './connection-text'

/** `text` is empty for no connection. */
export type Lanes = {
  readonly world: PolicyWorld
  readonly classOf: (party: Party, family?: Family) => number
  readonly between: (source: number, target: number) => ConnectionSet
  readonly text: (source: number, target: number) => string
  /** Over the family that both have. */
  readonly textOf: (source: Party, target: Party) => string
  /** Of two ends of which one is on the nodes' own network: what only pods and nodes that meet on one node have is `partly`. */
  readonly textOnHost: (source: readonly Party[], target: readonly Party[]) => string
}

export function lanesOf(world: PolicyWorld): Lanes {
  const texts = new Map<ConnectionSet, string>()
  const between = (source: number, target: number): ConnectionSet => portsBetween(world, source, target)
  const text = (source: number, target: number): string => {
    const set = between(source, target)
    const known = texts.get(set)
    if (known !== undefined) return known
    const printed = printConnections(set)
    texts.set(set, printed)
    return printed
  }
  return {
    world,
    classOf: (party, family) => classOf(world, party, family).id,
    between,
    text,
    textOf: (source, target) => {
      const family = commonFamily(world.cluster, source, target)
      return text(classOf(world, source, family).id, classOf(world, target, family).id)
    },
    textOnHost: (source, target) => textOnHost(world, source, target),
  }
}

const nearnesses: readonly Nearness[] = ['apart', 'perhaps-same-node', 'same-node']

function textOnHost(world: PolicyWorld, sources: readonly Party[], targets: readonly Party[]): string {
  const texts = new Map<Nearness, string>()
  for (const source of sources) {
    for (const target of targets) {
      const nearness = nearnessOf(source, target)
      if (texts.has(nearness)) continue
      const family = commonFamily(world.cluster, source, target)
      const [from, to] = [classOf(world, source, family).id, classOf(world, target, family).id]
      texts.set(nearness, printConnections(portsBetween(world, from, to, nearness)))
    }
  }
  const [usual = '', ...others] = [...new Set(nearnesses.flatMap((one) => texts.get(one) ?? []))]
  const partly = others.map((text) => mark('partly', text))
  return [usual, ...partly].filter((text) => text !== '').join('; ')
}

/** A pod without any address may get one of either family. */
export function hasFamily({ podIPs }: Pod, family: Family): boolean {
  return podIPs.length === 0 || podIPs.some((ip) => ip.includes(':') === (family === 'ipv6'))
}
