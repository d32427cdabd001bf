/** What is suspicious about the rules of one traffic policy: those that never decide, and items that do nothing. */
import type { Finding } from '#base/finding'
import { containsPrefix, type Prefix, parsePrefix } from '#base/prefix'
import { listOf } from '#base/text'
import type { TrafficPolicy } from '#model/traffic-policy'
import type { TrafficMatch, TrafficRule } from '#model/traffic-policy-schema'
import type { CompiledPolicy } from './compile-policy'
import type { Entry } from './entry'
import { trafficFinding } from './findings'
import { boxesOf, isCovered, type PacketBox } from './packet-box'

export function lintRules(policy: TrafficPolicy, compiled: CompiledPolicy): readonly Finding[] {
  const { meta, spec } = policy
  const rules = spec?.rules ?? []
  if (rules.length === 0) {
    const message = 'it has no rules, and what no rule matches is denied: it denies everything'
    return [
      trafficFinding('traffic-policy.denies-all', meta, {
        path: 'spec.rules',
        message,
        hint: 'add an Allow rule if that is not meant',
      }),
    ]
  }
  return [
    ...lintShadows(policy, rules, compiled),
    ...rules.flatMap((rule, index) => lintItems(policy, rule, { index, compiled })),
  ]
}

function lintShadows(
  { meta }: TrafficPolicy,
  rules: readonly TrafficRule[],
  { entries }: CompiledPolicy,
): readonly Finding[] {
  const boxes = rules.map((_, index) => entries.filter(({ rule }) => rule === index).flatMap(boxesOf))
  return rules.flatMap((rule, index) => {
    const own = boxes[index] ?? []
    const earlier = boxes.slice(0, index)
    if (!isWhollyCovered(own, earlier.flat())) return []
    const alone = earlier.findIndex((those) => isWhollyCovered(own, those))
    const told =
      alone < 0
        ? tellTogether(rules, earlier, own)
        : tellAlone(rules, alone, { rule, isSame: isWhollyCovered(boxes[alone] ?? [], own) })
    return [trafficFinding('traffic-policy.shadowed-rule', meta, { path: `spec.rules[${index}]`, ...told })]
  })
}

function isWhollyCovered(boxes: readonly PacketBox[], by: readonly PacketBox[]): boolean {
  return boxes.every((box) => isCovered(box, by) === true)
}

type Told = { readonly message: string; readonly hint: string }

function tellAlone(
  rules: readonly TrafficRule[],
  at: number,
  { rule, isSame }: { readonly rule: TrafficRule; readonly isSame: boolean },
): Told {
  const before = rules[at]
  const name = before?.name ?? ''
  const takes =
    Object.keys(before?.match ?? {}).length === 0
      ? `rule "${name}" before it takes every packet`
      : isSame
        ? `rule "${name}" before it matches the same packets`
        : `rule "${name}" before it takes every packet that it matches`
  const hint =
    before?.action === rule.action ? `delete it: nothing changes` : `put it before "${name}", or delete one of the two`
  return { message: `rule "${rule.name}" never decides: ${takes}`, hint }
}

function tellTogether(
  rules: readonly TrafficRule[],
  earlier: readonly (readonly PacketBox[])[],
  own: readonly PacketBox[],
): Told {
  // Those without which something of it would be left.
  const needed = earlier.flatMap((_, at) => {
    const rest = earlier.flatMap((those, other) => (other === at ? [] : those))
    return isWhollyCovered(own, rest) ? [] : [`"${rules[at]?.name}"`]
  })
  const who = needed.length === 0 ? 'the rules' : `rules ${listOf(needed)}`
  const name = rules[earlier.length]?.name
  return {
    message: `rule "${name}" never decides: ${who} before it take every packet that it matches`,
    hint: 'put it before them, or delete it',
  }
}

type Place = { readonly index: number; readonly compiled: CompiledPolicy }

function lintItems(
  { meta }: TrafficPolicy,
  { name, match = {} }: TrafficRule,
  { index, compiled }: Place,
): readonly Finding[] {
  const path = `spec.rules[${index}].match`
  const entries = compiled.entries.filter(({ rule }) => rule === index)
  const redundant = redundantItems(match).map(({ at, item, within }) =>
    trafficFinding('traffic-policy.redundant-item', meta, {
      path: `${path}.${at}`,
      message: `rule "${name}": ${item} lies within ${within}`,
      hint: 'leave it out: nothing changes',
    }),
  )
  const idle = idleItems(match, entries).map(({ at, item }) =>
    trafficFinding('traffic-policy.idle-item', meta, {
      path: `${path}.${at}`,
      message: `rule "${name}": ${item} matches nothing, as nothing in the rule's other lists is of its family`,
      hint: 'leave it out, or give the other lists an item of its family',
    }),
  )
  return [...redundant, ...idle]
}

type Redundant = { readonly at: string; readonly item: string; readonly within: string }

function redundantItems(match: TrafficMatch): readonly Redundant[] {
  const networks = (['sources', 'destinations'] as const).flatMap((list) =>
    within(list, match[list] ?? [], { print: (cidr) => cidr, isWithin: isNetworkWithin }),
  )
  const ranges = (['sourcePorts', 'destinationPorts'] as const).flatMap((list) =>
    within(list, match[list] ?? [], {
      print: ({ from, to }) => (to === undefined || to === from ? `port ${from}` : `ports ${from} to ${to}`),
      isWithin: (one, other) => other.from <= one.from && (one.to ?? one.from) <= (other.to ?? other.from),
    }),
  )
  const icmp = within('icmp', match.icmp ?? [], {
    print: ({ type, code }) => `type ${type}${code === undefined ? '' : ` code ${code}`}`,
    isWithin: (one, other) => one.type === other.type && (other.code === undefined || one.code === other.code),
  })
  return [...networks, ...ranges, ...icmp]
}

type Comparing<T> = { readonly print: (item: T) => string; readonly isWithin: (one: T, other: T) => boolean }

function within<T>(list: string, items: readonly T[], { print, isWithin }: Comparing<T>): readonly Redundant[] {
  return items.flatMap((item, index) => {
    // Of two that are the same, the later one is told.
    const outer = items.findIndex(
      (other, at) => at !== index && isWithin(item, other) && (at < index || !isWithin(other, item)),
    )
    const found = items[outer]
    return found === undefined ? [] : [{ at: `${list}[${index}]`, item: print(item), within: print(found) }]
  })
}

function isNetworkWithin(one: string, other: string): boolean {
  const [inner, outer] = [parsePrefix(one)?.prefix, parsePrefix(other)?.prefix]
  return inner !== undefined && outer !== undefined && containsPrefix(outer, inner)
}

function idleItems(
  match: TrafficMatch,
  entries: readonly Entry[],
): readonly { readonly at: string; readonly item: string }[] {
  const isUsed = (key: 'source' | 'destination', cidr: string): boolean => {
    const prefix = parsePrefix(cidr)?.prefix
    return entries.some(({ [key]: of }) => of !== undefined && prefix !== undefined && isSame(of, prefix))
  }
  const idle = (list: string, items: readonly string[], uses: (item: string) => boolean) =>
    items.flatMap((item, index) => (uses(item) ? [] : [{ at: `${list}[${index}]`, item }]))
  return [
    ...idle('sources', match.sources ?? [], (cidr) => isUsed('source', cidr)),
    ...idle('destinations', match.destinations ?? [], (cidr) => isUsed('destination', cidr)),
    ...idle('protocols', match.protocols ?? [], (word) =>
      entries.some(({ protocol }) => protocol === word.toLowerCase()),
    ),
  ]
}

function isSame(one: Prefix, other: Prefix): boolean {
  return containsPrefix(one, other) && containsPrefix(other, one)
}
