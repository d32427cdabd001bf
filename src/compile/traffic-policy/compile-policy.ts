/** A policy as entries: rules in their order, and inside a rule one entry for each way to fill its lists, in a fixed order. */
import type { Family } from '#base/ip'
import type { PortRange } from '#base/port-range'
import { type Prefix, parsePrefix } from '#base/prefix'
import { readValue } from '#manifests/kinds/read-value'
import { type Problem, type TrafficPolicy, uidOf } from '#model/traffic-policy'
import {
  pathWords,
  type TrafficMatch,
  type TrafficPolicySpec,
  type TrafficRule,
  trafficPolicyKind,
} from '#model/traffic-policy-schema'
import { type Action, type Entry, type EntryProtocol, maxEntries, type PathClass } from './entry'

export type CompiledPolicy = {
  readonly uid: string
  readonly generation: number
  readonly stateful: boolean
  /** Each has one counter row, whatever the number of its entries. */
  readonly rules: readonly { readonly name: string; readonly action: Action }[]
  readonly entries: readonly Entry[]
}

/** A policy compiles whole or not at all. */
export type Compilation =
  | { readonly kind: 'compiled'; readonly compiled: CompiledPolicy }
  | { readonly kind: 'refused'; readonly problems: readonly Problem[] }

export function compilePolicy(policy: TrafficPolicy): Compilation {
  const { meta, generation, spec, problems } = policy
  if (spec === undefined) return { kind: 'refused', problems: problems.length > 0 ? problems : [noSpec] }
  const told: Problem[] = [...problems]
  readValue(trafficPolicyKind.spec, spec, 'spec', { told, isStrict: true })
  if (told.length > 0) return { kind: 'refused', problems: told }
  const entries = compileRules(spec, told)
  if (told.length > 0) return { kind: 'refused', problems: told }
  const rules = spec.rules.map(({ name, action }) => ({ name, action: actionOf(action) }))
  return {
    kind: 'compiled',
    compiled: { uid: uidOf(meta), generation, stateful: spec.stateful ?? true, rules, entries },
  }
}

/** For a status or a line on standard error. */
export function describeProblems(problems: readonly Problem[]): string {
  return problems.map(({ path, message, hint }) => `${path}: ${message}; ${hint}`).join('\n')
}

const noSpec: Problem = { path: 'spec', message: 'the policy has no spec', hint: 'add spec.rules' }

function compileRules({ rules }: TrafficPolicySpec, told: Problem[]): readonly Entry[] {
  const entries: Entry[] = []
  for (const [index, rule] of rules.entries()) {
    const path = `spec.rules[${index}]`
    const own = compileRule(rule, index)
    if (own.length === 0) {
      const message = `rule "${rule.name}" matches no packet: its networks, protocols and family exclude each other`
      told.push({ path, message, hint: 'give it networks and protocols of one family, or delete it' })
    }
    for (const entry of own) entries.push(entry)
    if (entries.length > maxEntries && entries.length - own.length <= maxEntries) {
      const message = `rule "${rule.name}" brings the policy to ${entries.length} compiled entries, where ${maxEntries} fit`
      told.push({ path, message, hint: 'shorten its lists: each combination of their items takes an entry' })
    }
  }
  return entries
}

export function actionOf(action: TrafficRule['action']): Action {
  return action === 'Allow' ? 'allow' : 'deny'
}

function compileRule({ action, match = {} }: TrafficRule, rule: number): readonly Entry[] {
  const addresses = product(networksOf(match.sources), networksOf(match.destinations))
  return addresses.flatMap(([source, destination]) =>
    protocolsOf(match).flatMap((protocol) => {
      const families = [familyOf(match), source?.ip.family, destination?.ip.family, familyOfProtocol(protocol)]
      const known = families.filter((family) => family !== undefined)
      // Networks of two families, or ICMP of the other one: no packet is both.
      if (new Set(known).size > 1) return []
      return transportsOf(match).map((transport) => ({
        ...(known[0] !== undefined && { family: known[0] }),
        ...(protocol !== undefined && { protocol }),
        ...(source !== undefined && { source }),
        ...(destination !== undefined && { destination }),
        ...transport,
        ...(match.paths !== undefined && match.paths.length > 0 && { paths: pathsOf(match.paths) }),
        action: actionOf(action),
        rule,
      }))
    }),
  )
}

function product<A, B>(left: readonly A[], right: readonly B[]): readonly (readonly [A, B])[] {
  return left.flatMap((one) => right.map((other) => [one, other] as const))
}

/** Undefined stands for any. */
function networksOf(cidrs: readonly string[] = []): readonly (Prefix | undefined)[] {
  return cidrs.length === 0 ? [undefined] : cidrs.map((cidr) => parsePrefix(cidr)?.prefix)
}

function familyOf({ ipFamily }: TrafficMatch): Family | undefined {
  return ipFamily === undefined ? undefined : ipFamily === 'IPv4' ? 'ipv4' : 'ipv6'
}

function familyOfProtocol(protocol: EntryProtocol | undefined): Family | undefined {
  return protocol === 'icmp' ? 'ipv4' : protocol === 'icmpv6' ? 'ipv6' : undefined
}

function protocolsOf({ protocols = [] }: TrafficMatch): readonly (EntryProtocol | undefined)[] {
  return protocols.length === 0 ? [undefined] : protocols.map((word) => word.toLowerCase() as EntryProtocol)
}

type Transport = Pick<Entry, 'sourcePorts' | 'destinationPorts' | 'icmpType' | 'icmpCode'>

function transportsOf({ sourcePorts, destinationPorts, icmp = [] }: TrafficMatch): readonly Transport[] {
  const ofIcmp = icmp.map(({ type, code }) => ({ icmpType: type, ...(code !== undefined && { icmpCode: code }) }))
  if (ofIcmp.length > 0) return ofIcmp
  return product(rangesOf(sourcePorts), rangesOf(destinationPorts)).map(([source, destination]) => ({
    ...(source !== undefined && { sourcePorts: source }),
    ...(destination !== undefined && { destinationPorts: destination }),
  }))
}

function rangesOf(ranges: TrafficMatch['sourcePorts'] = []): readonly (PortRange | undefined)[] {
  return ranges.length === 0 ? [undefined] : ranges.map(({ from, to }) => ({ from, to: to ?? from }))
}

/** In the order of their bits, so that the order of the list changes nothing. */
function pathsOf(paths: NonNullable<TrafficMatch['paths']>): readonly PathClass[] {
  return pathWords.filter((path) => paths.includes(path))
}
